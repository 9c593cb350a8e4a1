"""Tests of the circumstances of runs: each fault planted in a model run set must be reported where it matters."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.results.compared import both
from tests.results.places import builder
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, INLINED, PYICEBERG, SYNC_BYTES, Model, write_run_set

from tidemark.analysis.formatting import MissingCell
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.pipeline.build import all_claims
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import unpack_archive
from tidemark.results.claims.claims import UNTESTED
from tidemark.results.claims.judge import judged
from tidemark.results.paper.method_text import setting
from tidemark.results.report.data import report_data
from tidemark.results.report.summary_table import Subject
from tidemark.results.tables import proofs as tables_proofs
from tidemark.results.tables import setup as tables_setup
from tidemark.results.tables.table import Table
from tidemark.runs.runset import RunSet
from tidemark.studies.streams import published as tables_thesis
from tidemark.studies.streams import storage_tables as tables_storage
from tidemark.studies.streams import tables as tables_beyond
from tidemark.studies.streams.metrics import (
    DISK_IQR,
    DISK_MEDIAN,
    FIRST_WRITE,
    QUANTITIES,
    WRITE_AMPLIFICATION,
    WRITE_MEDIAN,
)
from tidemark.studies.streams.paper import streaming
from tidemark.studies.streams.results import RESULTS

SHORT = 2.0  # seconds of a window
READS = {"sweeps": ["main", "reads"], "read_ahead": 64, "sweep": {"reads": {"axis": "read_ahead", "values": [1]}}}


def loaded(root: Path, *models: Model, **more: Any) -> Measures:
    return Measures(RunSet.load(write_run_set(root, models, window_s=SHORT, **more)), QUANTITIES)


def tables(measures: Measures, chapter: Any) -> dict[str, Table]:
    return {table.name: table for table in chapter.build(builder(measures))}


def cells(table: Table, **wanted: object) -> dict[str, Any]:
    """Return the first row that has the `wanted` cells, by column key."""
    keys = [column.key for column in table.columns]
    rows = [dict(zip(keys, row, strict=True)) for row in table.rows]
    return next(row for row in rows if all(row[key] == value for key, value in wanted.items()))


def edited(results: Path, change: Callable[[dict[str, Any]], None], pattern: str) -> None:
    for path in results.glob(f"runs/{pattern}/run.json"):
        values = json.loads(path.read_text())
        change(values)
        path.write_text(json.dumps(values))


def reported(measures: Measures) -> dict[str, Any]:
    return report_data(measures.run_set, [Subject(measures, ())], {})


def first_read(measures: Measures) -> list[str]:
    """Return the texts that the report shows before any number."""
    return [each["text"] for each in reported(measures)["read_first"]]


# The disk


def test_stream_bytes_are_not_charged_to_the_system(tmp_path: Path) -> None:
    """This was a fault of version 1: a log of 700 MB reaches the disk during the window."""
    plain = loaded(tmp_path / "a", DUCKLAKE)
    logged = loaded(tmp_path / "b", replace(DUCKLAKE, stream_bytes=700_000_000))
    run, other = (each.run_set.runs[1] for each in (plain, logged))
    assert run.manifest.disk.charged_bytes == other.manifest.disk.charged_bytes
    found = [each.of_run(WRITE_AMPLIFICATION, each.run_set.runs[1]).value for each in (plain, logged)]
    assert found[0] == found[1]
    # Bytes per second cannot be split by process, so they are not attributed to the system.
    assert plain.of_run(DISK_MEDIAN, run).value > 0
    with pytest.raises(NotAvailable, match="the stream wrote 700,000,000"):
        logged.of_run(DISK_MEDIAN, other)
    assert other.seconds().disk_bytes_per_s is None
    row = cells(tables(logged, tables_storage)["disk"], run=1)
    assert (row["stream"], row["sync"], row["sync_seconds"]) == (700.0, SYNC_BYTES / 1e6, 0.25)
    assert row["charged"] == pytest.approx(row["window"] + row["sync"] - 700.0)
    claims = {claim.id: claim for claim in all_claims()}
    found = judged(claims["disk-single-ducklake-pyiceberg"], RESULTS.claims, logged).first
    assert found.verdict == UNTESTED and "the stream wrote 700,000,000" in (found.reason or "")


def test_charged_bytes_are_never_negative(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=SHORT)
    edited(results, lambda m: m["disk"].update(window_bytes=10, sync_bytes=10, stream_bytes=50), "*/*/*/run-1")
    assert RunSet.load(results).runs[1].manifest.disk.charged_bytes == 0


def test_dirty_bytes_at_window_open_invalidate_write_amplification(tmp_path: Path) -> None:
    measures = loaded(tmp_path, replace(DUCKLAKE, left_bytes=400_000_000))
    with pytest.raises(NotAvailable, match="399,800,000 bytes from before the window"):
        measures.hot(WRITE_AMPLIFICATION, measures.run_set.series[0])
    assert cells(tables(measures, tables_storage)["disk"], run=1)["left"] == 400.0


def test_version_1_is_read_and_gives_no_disk_quantity(tmp_path: Path) -> None:
    measures = loaded(tmp_path, DUCKLAKE, PYICEBERG, version=1)
    series = measures.run_set.series[0]
    for metric in (WRITE_AMPLIFICATION, DISK_MEDIAN, DISK_IQR):
        with pytest.raises(NotAvailable, match="version 1 charge the system with the stream's log"):
            measures.hot(metric, series)
    assert measures.hot(WRITE_MEDIAN, series).value == pytest.approx(10.0, rel=0.1)
    with pytest.raises(NotAvailable, match="version 1"):
        measures.cold_start(FIRST_WRITE, series)
    assert [run.state for run in series.runs] == ["cold start", "hot", "hot"]
    assert isinstance(cells(tables(measures, tables_storage)["disk"], run=1)["charged"], MissingCell)
    assert isinstance(cells(tables(measures, tables_storage)["footprint"])["write_amplification"], MissingCell)
    assert "version 1" in " ".join(first_read(measures))
    assert "version 1" in tables(measures, tables_proofs)["attempts"].notes[-1]


# Cold


@pytest.mark.parametrize(
    ("cold_proof", "opening", "state"),
    [
        ("cold", "cold", "cold"),
        ("cold", "lukewarm", "cold start"),
        ("cold", "hot", "cold start"),
        ("lukewarm", "lukewarm", "first run"),
        ("unknown", "unknown", "first run"),
    ],
)
def test_run_state_follows_from_its_cold_proof(tmp_path: Path, cold_proof: str, opening: str, state: str) -> None:
    measures = loaded(tmp_path, replace(DUCKLAKE, cold_verdict=cold_proof, opening_verdict=opening))
    assert [run.state for run in measures.run_set.runs] == [state, "hot", "hot"]
    row = cells(tables(measures, tables_proofs)["cold-proof"], run=0)
    assert (row["state"], row["verdict"], row["opening"]) == (state, cold_proof, opening)
    assert cells(tables(measures, tables_beyond)["cold-effect"])["state"] == state
    facts = reported(measures)["series"][0]["runs"][0]["facts"]
    assert facts["Called"].startswith(f"{state}. ")
    assert facts["Cold proof"].startswith(f"before the servers start: {cold_proof}")
    assert facts["Opening"].startswith(f"when the window opens: {opening}") and "client libraries" in facts["Opening"]


def test_topic_log_is_excluded_from_the_resident_share(tmp_path: Path) -> None:
    measures = loaded(tmp_path, replace(DUCKLAKE, opening_verdict="cold"))
    opening = measures.run_set.runs[0].manifest.opening
    assert opening is not None and opening.resident_share == pytest.approx(0.004)


def test_first_write_is_compared_with_those_of_hot_runs(tmp_path: Path) -> None:
    measures = loaded(tmp_path, replace(DUCKLAKE, first_write=37.0), INLINED)
    assert measures.cold_start(FIRST_WRITE, measures.run_set.series[0]).value == pytest.approx(37.0)
    row = cells(tables(measures, tables_beyond)["cold-effect"], system="DuckLake")
    assert row["first_write"] == pytest.approx(370.0)
    assert row["first_write_ratio"].value == pytest.approx(37.0)


# Measuring code and machine


def test_mixed_harnesses_or_machines_are_reported(tmp_path: Path) -> None:
    one = loaded(tmp_path / "one", DUCKLAKE, INLINED)
    assert "WARNING" not in " ".join([*tables(one, tables_beyond)["throughput"].notes, *first_read(one)])
    assert setting(one.run_set)["mixture"] == ""
    for key, words in (("harness", "measuring code"), ("machine", "different machines")):
        mixed = loaded(tmp_path / key, DUCKLAKE, replace(INLINED, **{key: "b" * 64}))
        places = [
            *(tables(mixed, tables_setup)[name].notes for name in ("table-4.1", "table-4.2")),
            tables(mixed, tables_beyond)["throughput"].notes,
            first_read(mixed),
            [setting(mixed.run_set)["mixture"]],
        ]
        for notes in places:
            assert any("WARNING" in note and words in note and "b" * 12 in note for note in notes), (key, notes)


def test_table_4_2_names_the_measuring_code(tmp_path: Path) -> None:
    measures = loaded(tmp_path, DUCKLAKE, replace(INLINED, harness="c" * 64))
    rows = {(row[1], row[3]) for row in tables(measures, tables_setup)["table-4.2"].rows}
    assert {("Tidemark", "0.1.0"), ("Tidemark's run files, version", "2")} <= rows
    assert {("Tidemark's measuring code, SHA-256", letter * 64) for letter in "ac"} <= rows


def test_apache_polaris_is_recognised_as_polaris(tmp_path: Path) -> None:
    used = loaded(tmp_path, replace(ICEBERG_DUCKDB, versions={"Apache Polaris": "1.3.0-incubating"}))
    row = cells(tables(used, tables_setup)["table-4.2"], software="Apache Polaris")
    assert (row["asked"], row["thesis"]) == ("1.3.0-incubating", "1.3.0-incubating")
    assert not [row for row in tables(used, tables_setup)["table-4.2"].rows if row[1] == "Polaris"]


def test_comparison_reports_differing_harness_or_machine(tmp_path: Path) -> None:
    a = write_run_set(tmp_path / "a", [DUCKLAKE], window_s=SHORT)
    same = write_run_set(tmp_path / "same", [DUCKLAKE], window_s=SHORT, seed=2)
    assert "WARNING" not in " ".join(both(a, same).tables[0].notes)
    code = write_run_set(tmp_path / "code", [replace(DUCKLAKE, harness="d" * 64)], window_s=SHORT, seed=2)
    first = both(a, code).tables[0].notes[0]
    assert first.startswith("WARNING: the measuring code differs") and "a" * 12 in first and "d" * 12 in first
    place = write_run_set(tmp_path / "place", [replace(DUCKLAKE, machine="feed")], window_s=SHORT, seed=2)
    notes = " ".join(both(a, place).tables[0].notes)
    assert "identity feed" in notes and "identity 0123456789abcdef" in notes and "different machines" in notes


# Other load, and earlier failures


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a series that was killed, failed, and succeeded; one run was measured again, one stayed disturbed."""
    model = replace(
        DUCKLAKE,
        failures=(("killed", None), ("failed", "disk full at commit 17")),
        measured_again={1: "0.97 cores of other programs"},
        disturbed={2: "0.40 cores of other programs"},
        foreign_cores=0.4,
    )
    return write_run_set(tmp_path_factory.mktemp("survivor"), [model], window_s=SHORT)


def test_failures_are_kept_and_shown(survivor: Path) -> None:
    measures = Measures(RunSet.load(survivor), QUANTITIES)
    table = tables(measures, tables_proofs)["attempts"]
    assert [(row[4], row[8]) for row in table.rows[:2]] == [("1 of 3", "killed"), ("2 of 3", "failed")]
    assert cells(table, status="failed")["reason"] == "disk full at commit 17"
    assert [row[10] for row in table.rows[:2]] == [None, 7]
    lines = " ".join(reported(measures)["series"][0]["attempts"])
    assert "took 3 attempts" in lines and "disk full at commit 17" in lines
    assert "1 of 1 series took more than one attempt" in setting(measures.run_set)["attempts"]


def test_disturbed_run_is_kept_separately_and_does_not_count(survivor: Path) -> None:
    measures = Measures(RunSet.load(survivor), QUANTITIES)
    row = cells(tables(measures, tables_proofs)["attempts"], run=1)
    assert row["attempt"] == "3 of 3", "the attempt that came to its end"
    assert "0.97" in row["reason"] and row["kept"].endswith("disturbed/run-1-1")
    assert row["median"] == pytest.approx(1.5 * row["median_counted"], rel=0.1)
    assert len(measures.run_set.runs) == 3 and len(measures.run_set.kept_runs) == 1
    interference = tables(measures, tables_proofs)["interference"]
    assert cells(interference, run=2)["disturbed"] == "0.40 cores of other programs"
    assert cells(interference, run=1)["again"] == "yes" and cells(interference, run=1)["foreign"] == 0.4
    data = reported(measures)
    assert data["series"][0]["runs"][2]["disturbed"] and not data["series"][0]["runs"][1]["disturbed"]
    assert "1 of 3 counted runs were disturbed" in " ".join(first_read(measures))


def test_an_archive_has_the_failures_and_the_disturbed_runs(survivor: Path, tmp_path: Path) -> None:
    archive = write_archive(survivor, tmp_path / "a.zip")
    with zipfile.ZipFile(archive) as file:
        kept = [name for name in file.namelist() if "/disturbed/run-1-1/" in name]
    assert len(kept) == 3
    again = RunSet.load(unpack_archive(archive, tmp_path / "unpacked").parent)
    assert again.repeats[0].attempts == RunSet.load(survivor).repeats[0].attempts
    assert [run.label for run in again.kept_runs] == [run.label for run in RunSet.load(survivor).kept_runs]


# Reading


def test_claims_on_reads_need_runs_that_read_one_at_a_time(tmp_path: Path) -> None:
    ahead = [replace(DUCKLAKE, read_ahead=64, poll_ms=0.01), replace(ICEBERG_DUCKDB, read_ahead=64, poll_ms=0.01)]
    claims = {claim.id: claim for claim in all_claims()}
    measures = loaded(tmp_path / "ahead", *ahead, config={**READS, "sweeps": ["main"]})
    row = judged(claims["read-single-typical"], RESULTS.claims, measures)
    assert row.first.verdict == UNTESTED and "sweeps=[main, reads]" in (row.first.reason or "")
    assert "one read returns up to 64 events" in " ".join(tables(measures, tables_beyond)["latency"].notes)
    # The sweep's runs are used instead of those that read ahead, also if it has one run per series.
    for factors in ((1.0, 1.0, 1.0), (1.0,)):
        alone = [replace(model, read_ahead=1, sweep="reads", poll_ms=0.15, factors=factors) for model in ahead]
        measures = loaded(tmp_path / f"reads-{len(factors)}", *ahead, *alone, config=READS)
        found = judged(claims["read-single-typical"], RESULTS.claims, measures).first
        assert found.ours is not None and found.ours.value == pytest.approx(0.15, rel=0.1), factors


def test_configuration_that_reads_one_at_a_time_needs_no_sweep(tmp_path: Path) -> None:
    claims = {claim.id: claim for claim in all_claims()}
    found = judged(claims["read-single-typical"], RESULTS.claims, loaded(tmp_path, DUCKLAKE, INLINED)).first
    assert found.ours is not None and found.ours.value == pytest.approx(DUCKLAKE.poll_ms, rel=0.1)


# Durability, warm-up, stretches


def test_durability_other_than_the_default_is_in_the_title(tmp_path: Path) -> None:
    measures = loaded(tmp_path, DUCKLAKE, replace(INLINED, durability_level="full"))
    assert [series.title for series in measures.run_set.series] == [
        "DuckLake",
        "DuckLake + inlining (durability: full)",
    ]
    table = tables(measures, tables_setup)["systems"]
    assert cells(table, system="DuckLake + inlining (durability: full)")["durability_level"] == "full"
    assert {each["level"] for each in reported(measures)["durability"]} == {"default", "full"}
    assert any("durability: full" in str(row[0]) for row in tables(measures, tables_thesis)["table-5.2"].rows)


def test_warm_up_and_stretches_are_reported(tmp_path: Path) -> None:
    measures = loaded(tmp_path, replace(ICEBERG_DUCKDB, warm_up_s=12.5, steady=False, stretches=3), DUCKLAKE)
    table = tables(measures, tables_proofs)["cold-proof"]
    row = cells(table, system="Iceberg (DuckDB)", run=1)
    assert (row["warm_up"], row["steady"], row["stretches"]) == (12.5, "NO", 3)
    assert cells(table, system="Iceberg (DuckDB)", run=0)["warm_up"] is None
    assert cells(table, system="DuckLake", run=1)["stretches"] is None
    sentences = setting(measures.run_set)
    assert "2 ended unsteady" in sentences["warm-up"] and "3 stretches" in streaming(measures.run_set)["stretches"]
