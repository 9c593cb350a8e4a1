"""Tests that the metrics database holds the contents of the run files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, write_run_set

from tidemark.errors import AnalysisError
from tidemark.pipeline.build import build_database
from tidemark.runs.runset import RunSet


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = write_run_set(tmp_path_factory.mktemp("database"), [DUCKLAKE, ICEBERG_DUCKDB], window_s=5)
    build_database(results)
    return results


def test_every_operation_is_in_the_database(small: Path) -> None:
    run_set = RunSet.load(small)
    with duckdb.connect(str(small / "metrics.duckdb"), read_only=True) as database:
        found = dict(
            database.execute("SELECT label, count(*) FROM operations JOIN runs USING (run_id) GROUP BY ALL").fetchall()
        )
        order = database.execute("SELECT operation, first_id FROM operations WHERE run_id = 0").fetchall()
        machine = database.execute("SELECT count(*) FROM machine").fetchall()[0][0]
    assert found == {run.label: run.manifest.operations for run in run_set.runs}
    assert order == [(place, place) for place in range(len(order))]
    assert machine == sum(len(run.seconds().second) + 1 for run in run_set.runs)


def test_views_agree_with_the_columns(small: Path) -> None:
    run = RunSet.load(small).runs[1]
    with duckdb.connect(str(small / "metrics.duckdb"), read_only=True) as database:
        harness, system = database.execute(
            "SELECT harness_events_per_s, system_events_per_s FROM throughput WHERE run_id = 1"
        ).fetchall()[0]
        maximum, operations = database.execute(
            "SELECT max_ms, operations FROM write_times WHERE run_id = 1"
        ).fetchall()[0]
    assert harness == pytest.approx(run.manifest.events / run.elapsed_s)
    assert system == pytest.approx(run.manifest.events / (run.column("write_ns").sum() / 1e9))
    assert maximum == pytest.approx(run.column("write_ns").max() / 1e6)
    assert operations == run.manifest.operations


def test_refused_run_set_leaves_the_existing_database(small: Path, tmp_path: Path) -> None:
    before = (small / "metrics.duckdb").read_bytes()
    outcome = small / "runs" / DUCKLAKE.id / "outcome.json"
    outcome.rename(tmp_path / "outcome.json")
    try:
        with pytest.raises(AnalysisError):
            build_database(small)
    finally:
        (tmp_path / "outcome.json").rename(outcome)
    assert (small / "metrics.duckdb").read_bytes() == before
    assert not list(small.glob(".metrics*"))


@pytest.mark.parametrize("version", [1, 2])
def test_both_run_file_versions_share_one_schema(tmp_path: Path, version: int) -> None:
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=2.0, version=version)
    with duckdb.connect(str(build_database(results)), read_only=True) as connection:
        asked = (
            "SELECT state, disk_charged_bytes IS NULL, harness IS NULL, first_write_ns IS NULL FROM runs ORDER BY run"
        )
        rows = connection.execute(asked).fetchall()
        old = version == 1
        assert rows == [("cold start", old, old, old), ("hot", old, old, old), ("hot", old, old, old)]
        foreign = connection.execute("SELECT count(foreign_percent), count(cpu_percent) FROM machine").fetchone()
    assert foreign is not None and (foreign[0] == 0) == old and foreign[1] > 0


def test_a_study_without_a_run_has_no_view(tmp_path: Path) -> None:
    """The columns of a study's views come from its runs."""
    results = write_run_set(tmp_path, [replace(DUCKLAKE, status="failed", reason="refused", factors=())], window_s=1)
    build_database(results)
    with duckdb.connect(str(results / "metrics.duckdb"), read_only=True) as database:
        assert database.execute("SELECT status, reason FROM series").fetchall() == [("failed", "refused")]
        assert database.execute("SELECT count(*) FROM runs").fetchall() == [(0,)]
