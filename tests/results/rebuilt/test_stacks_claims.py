"""Tests of claims and the paper's sentences under two stacks: each verdict follows from the runs of its own stack."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import typst
from tests.results.places import judge
from tests.results.slow.test_paper import complete
from tests.runs.runset import DELTA, DUCKLAKE, ICEBERG_DUCKDB, INLINED, PYICEBERG, batched, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.pipeline.build import (
    all_claims,
    build_claims,
    build_figures,
    build_paper,
    build_report,
    build_tables,
)
from tidemark.pipeline.build import claim as find_row
from tidemark.results.claims.claims import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED, UNTESTED
from tidemark.results.claims.export import describe, listed, overview
from tidemark.results.claims.judge import Row
from tidemark.results.paper.stacks import StackWriter
from tidemark.runs.runset import RunSet
from tidemark.studies.streams.metrics import QUANTITIES

NOW = {"stack": "current", "versions": {"duckdb": "1.5.5", "PyArrow": "22.0.0", "pyarrow": "22.0.0"}}
LAKE_NOW = {"settings": {"DuckLake version": "1.0"}, **NOW}
THEN = (
    replace(DUCKLAKE, median_ms=10.0, settings={"DuckLake version": "0.3"}),
    replace(INLINED, median_ms=8.0),
    replace(PYICEBERG, median_ms=50.0, slope_ms=0.0),
    replace(ICEBERG_DUCKDB, median_ms=100.0, slope_ms=0.0),
    replace(DELTA, status="complete", reason=None, exit_code=0, factors=(1.0, 1.0, 1.0)),
    batched(DUCKLAKE, median_ms=20.0),
)
# A tenth of the time for Iceberg with DuckDB, four fifths for DuckLake's batches, 1.5 times for PyIceberg.
AFTER = (
    replace(DUCKLAKE, median_ms=10.0, **LAKE_NOW),
    replace(INLINED, median_ms=8.0, **NOW),
    replace(PYICEBERG, median_ms=75.0, slope_ms=0.0, capabilities=("commit-retry", "read-back"), **NOW),
    replace(ICEBERG_DUCKDB, median_ms=10.0, slope_ms=0.0, **NOW),
    replace(DELTA, capabilities=("read-back",), **NOW),
    batched(replace(DUCKLAKE, **LAKE_NOW), median_ms=16.0),
)
WINDOW_S = 300.0  # of the thesis, as some claims need
CHANGED = "write-single-iceberg-duckdb-ducklake"  # a ratio of 10 then and of 1 now


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The order of a plan is random: the thesis's stack need not come first in it.
    results = write_run_set(tmp_path_factory.mktemp("both"), (*AFTER, *THEN), window_s=WINDOW_S)
    build_claims(results)
    return results


@pytest.fixture(scope="module")
def now_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = write_run_set(tmp_path_factory.mktemp("now"), AFTER, window_s=WINDOW_S)
    build_claims(results)
    return results


@pytest.fixture(scope="module")
def rows(both: Path) -> dict[str, Row]:
    return {row.claim.id: row for row in judge(both).rows}


def written(results: Path) -> dict[str, dict[str, object]]:
    return {row["id"]: row for row in json.loads((results / "claims.json").read_text())["claims"]}


@pytest.mark.parametrize(
    ("identity", "then", "now"),
    [
        (CHANGED, REPRODUCED, NOT_REPRODUCED),
        ("throughput-single-iceberg-clients", NOT_REPRODUCED, REPRODUCED),
        ("inlining-single", NOT_REPRODUCED, NOT_REPRODUCED),
        ("throughput-single-ducklake-pyiceberg", REPRODUCED, REPRODUCED),
        ("delta-between", REPRODUCED, UNTESTED),
        ("threads-no-gain", UNTESTED, UNTESTED),
    ],
)
def test_a_claim_has_a_verdict_for_each_stack(rows: dict[str, Row], identity: str, then: str, now: str) -> None:
    found = [(judgement.stack, judgement.verdict) for judgement in rows[identity].judgements]
    assert found == [("thesis", then), ("current", now)], [each.why for each in rows[identity].judgements]
    assert rows[identity].differs == (then != now)


def test_each_verdict_rests_on_runs_of_its_own_stack(rows: dict[str, Row], both: Path) -> None:
    stacks = {run.label: series.stack for series in RunSet.load(both).series for run in series.runs}
    for row in rows.values():
        for judgement in row.judgements:
            assert {stacks[label] for label in judgement.sources} <= {judgement.stack}


def test_a_second_stack_changes_nothing_about_the_first(rows: dict[str, Row], tmp_path: Path) -> None:
    alone = judge(write_run_set(tmp_path, THEN, window_s=WINDOW_S))
    for row in alone.rows:
        judgement, other = row.first, rows[row.claim.id].first
        assert (judgement.verdict, judgement.ours, judgement.reason) == (other.verdict, other.ours, other.reason)


def test_one_stack_has_no_columns_for_others(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, THEN[:2], window_s=3.0)
    build_claims(results)
    head = next(csv.reader((results / "claims.csv").open()))
    assert "stack" not in head and not [name for name in head if name.endswith("_current")]
    text = (results / "claims.md").read_text() + describe(find_row(results, "inlining-single"))
    assert "stack" not in text.replace("stacks/", "")
    assert "stacks=" not in find_row(results, "inlining-single").retest.command
    lines = overview(all_claims(), listed(results / "claims.json"))
    assert len(lines.splitlines()) == len(all_claims()) and "thesis  " not in lines


def test_every_format_of_the_ledger_has_both_stacks(both: Path) -> None:
    whole = json.loads((both / "claims.json").read_text())
    assert [each["stack"] for each in whole["stacks"]] == ["thesis", "current"]
    for each in whole["stacks"]:
        assert sum(each["counts"].values()) == len(whole["claims"])
    assert whole["counts"] == whole["stacks"][0]["counts"] != whole["stacks"][1]["counts"]
    with (both / "claims.csv").open() as file:
        cells = {row["id"]: row for row in csv.DictReader(file)}[CHANGED]
    assert (cells["stack"], cells["verdict"], cells["verdict_current"]) == ("thesis", REPRODUCED, NOT_REPRODUCED)
    assert float(cells["ours_low_current"]) < 1.1 < 9 < float(cells["ours_low"])
    text = (both / "claims.md").read_text()
    assert "| Verdict, stack thesis | Ours [95 %], stack current | Verdict, stack current |" in text
    (line,) = (line for line in text.splitlines() if line.startswith(f"| `{CHANGED}`"))
    assert line.count("|") == text.splitlines()[8].count("|") and "| not reproduced |" in line
    assert re.search(rf"verdict depends on the stack: \d+ of {len(whole['claims'])}: .*`{CHANGED}`", text)


def test_terminal_output_names_the_stack_of_a_verdict(both: Path) -> None:
    text = describe(find_row(both, CHANGED))
    then, now = text.index("with the software stack 'thesis'"), text.index("with the software stack 'current'")
    assert then < text.index("verdict     REPRODUCED") < now < text.index("verdict     NOT REPRODUCED")
    assert '\'stacks=["thesis", "current"]\'' in text
    lines = overview(all_claims(), listed(both / "claims.json")).splitlines()
    assert len(lines) == len(all_claims()) + len(written(both))  # one more line for each claim judged under both
    place = next(place for place, line in enumerate(lines) if line.startswith(CHANGED))
    assert re.search(r"thesis +reproduced", lines[place]) and re.search(r"current +not reproduced", lines[place + 1])


def test_single_stack_is_named(now_alone: Path) -> None:
    row = written(now_alone)[CHANGED]
    assert (row["stack"], row["verdict"], row["others"]) == ("current", NOT_REPRODUCED, [])
    with (now_alone / "claims.csv").open() as file:
        assert {line["stack"] for line in csv.DictReader(file)} == {"current"}
    assert "Verdict, stack current |" in (now_alone / "claims.md").read_text()
    assert "with the software stack 'current'" in describe(find_row(now_alone, CHANGED))
    assert "'stacks=[\"current\"]'" in describe(find_row(now_alone, CHANGED))


def sentences(results: Path) -> dict[str, str]:
    claims = json.loads((results / "claims.json").read_text())
    return StackWriter(Measures(RunSet.load(results), QUANTITIES), claims).sentences()


def test_sentences_name_versions_capabilities_and_verdicts(both: Path) -> None:
    said = sentences(both)
    assert "'thesis' (duckdb 1.4.4 and DuckLake 0.3)" in said["stacks"]
    assert "'current' (duckdb 1.5.5 and DuckLake 1.0)" in said["stacks"]
    assert said["stacks"].endswith("All of them use PyArrow 22.0.0.")
    assert "Iceberg (PyIceberg): a commit that loses against another writer's is retried" in said["stacks-abilities"]
    assert re.search(rf"from reproduced to not reproduced for [^;]*{CHANGED}", said["stacks-claims"])
    assert re.search(r"from reproduced to not tested yet for \d+ claims?\b", said["stacks-claims"])
    changed = sum(row["verdict"] != row["others"][0]["verdict"] for row in written(both).values())  # type: ignore[index]
    assert f"{len(written(both)) - changed} have the same verdict" in said["stacks-claims"]


def test_single_stack_has_no_comparison_sentences(now_alone: Path, tmp_path: Path) -> None:
    said = sentences(now_alone)
    assert said["stacks"].startswith("The runs use one software stack, 'current': duckdb 1.5.5")
    assert said["stacks-counts"] == "These verdicts are those of runs with the software stack 'current'."
    assert "Values are those of the software stack 'current'" in said["stacks-scope"]
    results = write_run_set(tmp_path, THEN[:2], window_s=3.0)
    build_claims(results)
    silent = sentences(results)
    assert silent.pop("stacks").startswith("The runs use one software stack, 'thesis'")
    assert set(silent.values()) == {""}


def test_equal_stacks_show_no_difference(tmp_path: Path) -> None:
    models = (*THEN[:2], *(replace(model, stack="current") for model in THEN[:2]))
    results = write_run_set(tmp_path, models, window_s=6.0)
    build_claims(results)
    said = sentences(results)
    ratios = StackWriter(Measures(RunSet.load(results), QUANTITIES), {}).table()["rows"]
    assert ratios and {row[5] for row in ratios} <= {"the same within 10 %"}
    assert "no system declares a capability" in said["stacks-abilities"]
    for row in written(results).values():
        pair = {row["verdict"], row["others"][0]["verdict"]}  # type: ignore[index]
        assert len(pair) == 1 or INCONCLUSIVE in pair


def test_paper_is_typeset_with_two_stacks_and_with_the_newer_alone(both: Path, now_alone: Path) -> None:
    for results, tables in ((both, 1), (now_alone, 0)):
        build_paper(complete(results))
        values = json.loads((results / "paper" / "values.json").read_text())
        assert (values["stacks"] is not None) == bool(tables)
        found = typst.query(results / "paper" / "main.typ", "<stacks>", root=results, ignore_system_fonts=True)
        assert len(json.loads(found)) == 1
    rows = {row[0]: row for row in json.loads((both / "paper" / "values.json").read_text())["stacks"]["rows"][:5]}
    assert rows["Iceberg (DuckDB)"][5].startswith("faster by at least")
    assert rows["Iceberg (PyIceberg)"][5].startswith("slower by at least")
    assert rows["Delta Lake (delta-rs)"][5] == "not comparable"


def test_the_paper_shows_the_figure_of_both_stacks(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, (*THEN[:2], *AFTER[:2]), window_s=3.0)
    build_tables(results)
    build_claims(results)
    build_figures(results)
    assert build_paper(results).stat().st_size > 50_000


def test_report_distinguishes_series_of_different_stacks(both: Path) -> None:
    page = build_report(both).read_text()
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    titles = [(each["title"], each["mode"]) for each in json.loads(data[1])["series"]]
    assert len(set(titles)) == len(titles)
    assert ("DuckLake, stack thesis", "batch") in titles and ("DuckLake, stack current", "batch") in titles
