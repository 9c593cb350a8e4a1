"""Tests of reading run files: valid content, invalid content, and refusals that name the file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.runs.runset import DUCKLAKE, NULL, Model, write_run_set

from tidemark.errors import AnalysisError
from tidemark.runs.manifest import Manifest
from tidemark.runs.outcome import Outcome
from tidemark.runs.plan import PlanFile
from tidemark.runs.run import MACHINE_COLUMNS, OPERATION_COLUMNS
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import written
from tidemark.studies.streams.samples import OPERATIONS


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, Path]:
    """Return a run set of one series, and the folder of that series."""
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


def test_second_hot_run_comes_from_the_second_repeat_if_each_has_one(tmp_path: Path) -> None:
    short = replace(DUCKLAKE, factors=(1.0, 1.0), repeats=(1.0, 1.0))
    series = RunSet.load(write_run_set(tmp_path, [short], window_s=1)).find("ducklake", "single")
    assert series is not None
    found = [series.nth_run(number) for number in range(4)]
    assert [(run.repeat, run.number) if run else None for run in found] == [(1, 0), (1, 1), (2, 1), None]


def test_failed_and_unrun_series_keep_their_reasons(results: Path) -> None:
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


def test_samples_are_read_only(small: tuple[Path, Path]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        RunSet.load(small[0]).runs[0].column("write_ns")[0] = 1


def test_results_folder_may_have_any_name(small: tuple[Path, Path], tmp_path: Path) -> None:
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
            "found no column start_ns, rows",
        ),
        (
            lambda folder: edit(folder.parents[2].parent / "plan.json", lambda v: v.update(schema_version=9)),
            "plan.json",
            "found 9",
        ),
        (
            lambda folder: edit(folder.parents[2].parent / "plan.json", lambda v: v["series"][0].pop("stack")),
            "plan.json",
            "series[0].stack': found nothing; allowed: a text",
        ),
        (
            lambda folder: edit(folder / "outcome.json", lambda v: v["attempts"][0].update(exit_code="7")),
            "outcome.json",
            "attempts[0].exit_code': found '7'; allowed: a whole number",
        ),
        (
            lambda folder: edit(folder / "run-0" / "run.json", lambda v: v["time_budget_ns"].update(poll=None)),
            "run-0/run.json",
            "time_budget_ns.poll': found None; allowed: a whole number",
        ),
        (
            lambda folder: edit(folder / "run-0" / "run.json", lambda v: v.update(opening=[])),
            "run-0/run.json",
            "key 'opening': found []; allowed: an object",
        ),
    ],
)
def test_missing_and_inconsistent_files_are_refused_by_name(
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


def test_model_run_sets_have_the_format_of_measured_ones(results: Path) -> None:
    """Run sets for tests have exactly the keys that measuring writes, and are read back unchanged."""
    plan = json.loads((results / "plan.json").read_text())
    assert json.loads(PlanFile.read(results / "plan.json").to_json()) == plan
    for item in plan["series"]:
        folder = results.parent / item["directory"]
        assert written(Outcome.read(folder / "outcome.json")) == json.loads((folder / "outcome.json").read_text())
        for path in folder.glob("run-*/run.json"):
            assert written(Manifest.read(path)) == json.loads(path.read_text()), path
            assert set(MACHINE_COLUMNS) <= set(pq.read_schema(path.with_name("machine.parquet")).names)
            assert pq.read_schema(path.with_name("operations.parquet")).names == OPERATIONS.names


def test_missing_column_is_named_when_it_is_requested(small: tuple[Path, Path]) -> None:
    results, folder = small
    path = folder / "run-1" / "operations.parquet"
    pq.write_table(pq.read_table(path).select([*OPERATION_COLUMNS, "write_ns"]), path)
    run = RunSet.load(results).runs[1]
    assert run.column("write_ns").shape == run.cycle_ns().shape == (run.manifest.operations,)
    with pytest.raises(AnalysisError, match=r"run-1/operations\.parquet: found no column 'poll_ns'; allowed: start_ns"):
        run.column("poll_ns")


def test_run_without_table_or_dataset_fails_only_when_they_are_requested(small: tuple[Path, Path]) -> None:
    results, folder = small
    for path in folder.glob("run-*/run.json"):
        edit(path, lambda v: [v.pop(key) for key in ("footprint", "dataset", "producer", "first_write_ns")])
        edit(path, lambda v: v["series"].update(workload="catalogs"))
    run_set = RunSet.load(results)
    run = run_set.runs[1]
    assert run_set.datasets == ()
    assert (run.manifest.producer_mode, run.manifest.stretches, run.manifest.series.workload) == ("none", 1, "catalogs")
    for asked in (lambda: run.footprint, lambda: run.dataset):
        with pytest.raises(AnalysisError, match=r"run-1/run\.json: key '.*': found nothing.*workload 'catalogs'"):
            asked()


def test_machines_are_distinguished_by_stable_properties(results: Path) -> None:
    """Free bytes differ in each run."""
    run_set = RunSet.load(results)
    assert len({run.manifest.machine.free_bytes for run in run_set.runs}) > 1
    assert len(run_set.machines) == 1


def test_the_harness_alone_is_a_run_set(tmp_path: Path) -> None:
    run_set = RunSet.load(write_run_set(tmp_path, [NULL], window_s=1))
    assert run_set.select(harness=False) == ()
    assert run_set.series[0].is_null_baseline


@pytest.mark.parametrize("directory", ["/any/where", "results/../../..", "results/runs/../../../x"])
def test_plan_with_a_path_outside_its_results_is_refused(small: tuple[Path, Path], directory: str) -> None:
    results, _ = small
    edit(results / "plan.json", lambda plan: plan["series"][0].update(directory=directory))
    with pytest.raises(AnalysisError, match=f"'series.directory': found '{directory}'"):
        RunSet.load(results)
