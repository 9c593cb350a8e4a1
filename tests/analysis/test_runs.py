"""Reading run files: what is there, what must not be, and how each refusal names its file."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.analysis.runset import DUCKLAKE, NULL, Model, write_run_set

from tidemark.analysis.runs import RunSet
from tidemark.errors import AnalysisError
from tidemark.machine.cold import ColdProof
from tidemark.machine.inventory import Inventory
from tidemark.measure import runfiles
from tidemark.measure.oracle import Verdict
from tidemark.measure.outcome import Outcome
from tidemark.systems.base import Footprint


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """A run set of one series, and the folder of that series."""
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=3)
    return results, results / "runs" / DUCKLAKE.id


def test_series_come_in_the_order_of_tables_with_their_runs(results: Path) -> None:
    run_set = RunSet.load(results)
    systems = [series.system for series in run_set.select(mode="single")]
    assert systems[:4] == ["ducklake", "ducklake-inlined", "iceberg-pyiceberg", "iceberg-duckdb"]
    assert systems[-1] == "null"
    assert "null" not in [series.system for series in run_set.select(mode="single", harness=False)]
    ducklake = run_set.find("ducklake", "single")
    assert ducklake is not None
    assert [run.number for run in ducklake.cold_runs] == [0]
    assert [run.number for run in ducklake.hot_runs] == [1, 2]
    assert ducklake.runs[1].column("write_ns").shape == (ducklake.runs[1].manifest.operations,)


def test_what_failed_and_what_was_not_run_stay_with_their_reasons(results: Path) -> None:
    run_set = RunSet.load(results)
    failed, unavailable = run_set.find("delta-rs", "single"), run_set.find("delta-duckdb", "batch")
    assert failed is not None
    assert unavailable is not None
    assert (failed.status, failed.runs) == ("failed", ())
    assert "Airport_fee" in failed.missing()
    assert (unavailable.status, unavailable.missing()) == ("not-run", "the delta extension is not installed")


def test_runs_that_succeeded_before_a_failure_count(tmp_path: Path) -> None:
    model = Model("ducklake", "DuckLake", 10.0, status="failed", reason="the disk is full", factors=(1.0, 1.0))
    series = RunSet.load(write_run_set(tmp_path, [model], window_s=2)).series[0]
    assert [run.number for run in series.runs] == [0, 1]
    assert series.missing(2) == "the disk is full"


def test_a_partial_last_second_is_no_sample(small: tuple[Path, Path]) -> None:
    results, folder = small
    seconds = RunSet.load(results).runs[1].seconds()
    assert pq.read_metadata(folder / "run-1" / "machine.parquet").num_rows == len(seconds.second) + 1
    assert seconds.disk_bytes_per_s is not None
    assert seconds.disk_bytes_per_s.max() < 1e8  # the sync after the window is in the file


def test_cycles_add_up_to_the_window(small: tuple[Path, Path]) -> None:
    run = RunSet.load(small[0]).runs[0]
    assert run.cycle_ns().sum() == run.manifest.elapsed_ns
    assert (run.cycle_ns() >= run.column("write_ns")).all()


def test_samples_cannot_be_changed_by_who_reads_them(small: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        RunSet.load(small[0]).runs[0].column("write_ns")[0] = 1


def test_results_may_lie_under_any_name(small: tuple[Path, Path], tmp_path: Path) -> None:
    moved = tmp_path / "somewhere else"
    shutil.move(small[0], moved)
    assert len(RunSet.load(moved).runs) == 3


def test_a_batch_is_an_operation(results: Path) -> None:
    batch = RunSet.load(results).find("ducklake", "batch")
    assert batch is not None
    run = batch.runs[0]
    assert run.manifest.events == 1000 * run.manifest.operations == int(np.sum(run.column("rows")))


@pytest.mark.parametrize(
    ("damage", "file", "words"),
    [
        (lambda folder: (folder / "outcome.json").unlink(), "outcome.json", "not there"),
        (lambda folder: (folder / "outcome.json").write_text("{"), "outcome.json", "JSON"),
        (lambda folder: (folder / "run-1" / "run.json").unlink(), "run-1/run.json", "not there"),
        (lambda folder: (folder / "run-1" / "operations.parquet").unlink(), "operations.parquet", "not there"),
        (lambda folder: (folder / "run-1" / "machine.parquet").write_bytes(b"PAR1"), "machine.parquet", "Parquet"),
        (
            lambda folder: edit(folder / "run-2" / "run.json", lambda v: v.update(operations=7)),
            "operations.parquet",
            "counts 7",
        ),
        (
            lambda folder: edit(folder / "run-2" / "run.json", lambda v: v.update(events=7)),
            "operations.parquet",
            "counts 7",
        ),
        (
            lambda folder: edit(folder / "run-0" / "run.json", lambda v: v.update(schema_version=9)),
            "run-0/run.json",
            "schema_version",
        ),
        (
            lambda folder: edit(folder / "run-0" / "run.json", lambda v: v["oracle"].pop("found")),
            "run-0/run.json",
            "oracle.found",
        ),
        (lambda folder: edit(folder / "run-0" / "run.json", lambda v: v.update(run=1)), "run-0/run.json", "run 1"),
        (
            lambda folder: edit(folder / "outcome.json", lambda v: v.update(status="perhaps")),
            "outcome.json",
            "perhaps",
        ),
        (lambda folder: edit(folder / "outcome.json", lambda v: v.update(runs=[])), "outcome.json", "names none"),
        (
            lambda folder: shutil.copyfile(
                folder / "run-1" / "machine.parquet", folder / "run-1" / "operations.parquet"
            ),
            "operations.parquet",
            "first_id",
        ),
    ],
)
def test_what_is_absent_or_at_odds_is_refused_by_name(
    small: tuple[Path, Path], damage: Callable[[Path], object], file: str, words: str
) -> None:
    results, folder = small
    damage(folder)
    with pytest.raises(AnalysisError) as refused:
        RunSet.load(results)
    assert file in str(refused.value)
    assert words in str(refused.value)


def test_a_folder_without_a_plan_is_no_run_set(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match=r"plan\.json"):
        RunSet.load(tmp_path)


def test_the_models_write_what_measuring_writes(small: tuple[Path, Path]) -> None:
    """Every key and column that the analysis is tested with is one that the measuring side has."""
    # Until the measuring side writes version 2, the models of version 1 are held to it.
    root = small[0].parent / "as-measured"
    results = write_run_set(root, [DUCKLAKE], window_s=1, version=runfiles.SCHEMA_VERSION)
    folder = RunSet.load(results).runs[0].directory.parent
    values = json.loads((folder / "run-2" / "run.json").read_text())
    parts = {
        "system": runfiles.SystemPart,
        "series": runfiles.SeriesPart,
        "producer": runfiles.ProducerPart,
        "disk": runfiles.DiskPart,
        "merge": runfiles.MergePart,
        "oracle": Verdict,
        "footprint": Footprint,
        "cold_proof": ColdProof,
        "machine": Inventory,
    }
    for name, part in {**parts, None: runfiles.Manifest}.items():
        keys = set(values[name] if name else values)
        assert keys <= {field.name for field in dataclasses.fields(part)}, name
    assert pq.read_schema(folder / "run-2" / "operations.parquet").names == runfiles.OPERATIONS.names
    outcome = json.loads((folder / "outcome.json").read_text())
    assert set(outcome) == {field.name for field in dataclasses.fields(Outcome)}


def test_the_harness_alone_is_a_run_set(tmp_path: Path) -> None:
    run_set = RunSet.load(write_run_set(tmp_path, [NULL], window_s=1))
    assert run_set.select(harness=False) == ()
    assert run_set.series[0].is_harness
