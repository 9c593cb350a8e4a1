"""Tests of tables at several ages: the plan, the time limit, a client that fails, rows that are wrong, results."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.config import load
from tidemark.errors import ConfigError, SystemFailure
from tidemark.measure.workload import DoneWindow
from tidemark.pipeline.plan import make_plan
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import Fields, read, written
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.parts import part_name
from tidemark.studies.ingest.record import AgesRecord, SizeAtAge, Words
from tidemark.studies.ingest.settings import AGES, COMMITS_AT_AGE, AgesSettings
from tidemark.studies.ingest.study import Ingest
from tidemark.studies.ingest.tables import storage as results
from tidemark.studies.ingest.tables.storage import Age, aged_sentence
from tidemark.studies.ingest.window.one_client import COMMIT, PLAN, READ, READERS, AgesRunner, AtAge
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.registry import variant_of

SHIPPED = Path(__file__).parents[3] / "config.yaml"
SYSTEMS = "ducklake-inlined, delta-rs, lance, 'null'"


def planned(ages: str) -> list[Any]:
    sizes = f"{{writers: [], runs: 1, window_seconds: 1, ages: {{systems: [{SYSTEMS}], ages: [{ages}]}}}}"
    systems = f"ingest.systems={{{SYSTEMS.replace(',', ': {},')}: {{}}}}"
    given = ["studies=[ingest]", "protocol=own", f"ingest.protocols={{own: {sizes}}}", systems]
    every = make_plan(load(SHIPPED, given)).series
    return [each for each in every if part_name(each) == AGES]


def runner(table: DeltaRs, trips: Path, ages: str) -> AgesRunner:
    settings = AgesSettings(AGES, 1, 0, ages)
    spec = SimpleNamespace(settings=settings.pairs, mode=settings.label)
    bed = cast(Any, SimpleNamespace(spec=spec, servers=SimpleNamespace(check=lambda: None)))
    return AgesRunner(bed, table.place, table, batches(trips, 1, 0)(0), lambda _: None)


def done(run: AgesRunner, seconds: float = 60) -> DoneWindow[AtAge]:
    window = run.new_window()
    for _ in run.segments(window, seconds):
        run.execute(window, seconds)
    return window


def test_each_system_has_one_series_even_if_a_single_process_may_write_its_table() -> None:
    series = {each.name: each for each in planned("5, 20")}
    assert {each.mode for each in series.values()} == {"ages-5-20"} and "null" not in series
    refused = {name: Ingest.unavailable(each, variant_of(each)) for name, each in series.items()}
    assert refused["ducklake-inlined"] is refused["delta-rs"] is None
    assert "DuckDB does not read its table" in str(refused["lance"])
    with pytest.raises(ConfigError, match=r"own\.ages\.ages': found 14 after 5; allowed: ages in ascending order"):
        planned("5, 14")
    with pytest.raises(ConfigError, match=r"own\.ages\.ages"):
        planned("5, 100001")


def test_operations_are_done_at_each_age(table: DeltaRs, trips: Path) -> None:
    run = runner(table, trips, "1 12")
    window = done(run)
    for age in (1, 12):
        found = [each.what for each in window.done if each.age == age]
        assert found == [*[PLAN, READ] * READERS, *[COMMIT] * COMMITS_AT_AGE]
    assert [each.start_ns for each in window.done] == sorted(each.start_ns for each in window.done)
    assert window.rows == 2 * COMMITS_AT_AGE and table.commits() == 1 + 22
    checked = run.check(window, True, lambda _: None)
    assert checked.oracle.verdict and (checked.oracle.expected, checked.oracle.commits) == (22, 22)


def test_an_age_that_is_not_reached_has_its_reason(table: DeltaRs, trips: Path) -> None:
    run = runner(table, trips, "1 12")
    with pytest.raises(SystemFailure, match=r"1 commits were not reached within 0 min: 0 commits were made"):
        run.finish(done(run, 0))


def test_a_client_that_fails_ends_the_window_with_its_error(
    table: DeltaRs, trips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = table.write

    def until_the_fifteenth(rows: pa.Table) -> None:
        if table.commits() > 14:
            raise MemoryError("no more")
        write(rows)

    monkeypatch.setattr(table, "write", until_the_fifteenth)
    run = runner(table, trips, "1 12 30")
    window = done(run)
    run.finish(window)
    assert run._ended == "commit at 12 commits failed: MemoryError: no more"
    assert {each.age for each in window.done} == {1, 12} and run.check(window, True, lambda _: None).oracle.verdict


def test_a_row_that_is_left_out_is_named_at_its_age(
    table: DeltaRs, trips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = table.make_commits
    monkeypatch.setattr(table, "make_commits", lambda rows, ids: make(rows, range(ids.start, ids.stop - 1)))
    run = runner(table, trips, "1 12")
    window = done(run)
    assert not run.check(window, True, lambda _: None).oracle.verdict
    assert run._wrong[0].startswith("at 12 commits: 12 ids were acknowledged, the table holds 11 rows: 1 missing")


def measured(title: str, ended: str = "", right: bool = True) -> Any:
    """Return a series with a run at 1 and 100 commits before, whose commits take 2 and 5 ms."""
    settings = AgesSettings(AGES, 1, 0, "1 100 1000")
    rows = [(age, operation, ms) for age, ms in ((1, 2), (100, 5)) for operation in (PLAN, READ, *[COMMIT] * 10)]
    columns = {
        "age": np.array([age for age, _, _ in rows]),
        "what": np.array([operation for _, operation, _ in rows]),
        "elapsed_ns": np.array([ms * 1_000_000 for *_, ms in rows]),
    }
    found = AgesRecord(
        Words("exact"), 1, (SizeAtAge(1, 0.1, 1, 2, 3, None), SizeAtAge(100, 9, 100, 200, 300, 4)), ended
    )
    manifest = SimpleNamespace(oracle=SimpleNamespace(verdict=right))
    run = SimpleNamespace(label=title, manifest=manifest, record=lambda _: found, column=columns.get, words=columns.get)
    return SimpleNamespace(
        title=title, runs=(run,), settings=settings.pairs, mode=settings.label, missing=lambda: "not run"
    )


def test_results_give_reasons_and_compare_the_oldest_age_with_the_youngest(monkeypatch: pytest.MonkeyPatch) -> None:
    late = "1,000 commits were not reached within 5 min: 640 commits were made"
    series = [measured("DuckLake", late), measured("Wrong", right=False)]
    monkeypatch.setattr(results, "aged_series", lambda _: series)
    said = aged_sentence(cast(RunSet, None))
    assert "DuckLake 5.00 ms" in said and "at 100 (2.5 times that at 1)" in said and "Wrong" not in said
    oldest = Age(series[0].runs[0], 1000)
    for ask in (lambda: oldest.size, lambda: oldest.times_ms(READ)):
        with pytest.raises(NotAvailable, match="640 commits were made"):
            ask()
    with pytest.raises(NotAvailable, match="not comparable"):
        Age(series[1].runs[0], 1).median(COMMIT)
    record = oldest.found
    assert read(AgesRecord, Fields("run.json", written(record))) == record


def test_made_rows_have_the_columns_of_a_write(table: DeltaRs, trips: Path) -> None:
    row = batches(trips, 1, 0)(0)
    table.write(row)
    table.make_commits(row, range(1, 4))
    found = table.read().sort_by("id")
    assert found.column("id").to_pylist() == [0, 1, 2, 3]
    assert found.column("fare").to_pylist() == [pq.read_table(trips)["fare"][0].as_py()] * 4
