"""Tests of stored resamples: equal to freshly computed ones, and used only for the runs that they were made from."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from tests.analysis.work import take, with_pid
from tests.runs.runset import DUCKLAKE, INLINED, batched, write_run_set

from tidemark.analysis import resampled
from tidemark.analysis.measures import Measures
from tidemark.analysis.parallel import FEWEST, spread
from tidemark.pipeline.build import build_database, build_tables
from tidemark.runs.runset import RunSet
from tidemark.studies.streams.metrics import QUANTITIES, WRITE_MEDIAN


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_run_set(tmp_path, [DUCKLAKE, batched(INLINED), batched(DUCKLAKE)], window_s=2.0)


def tables(results: Path) -> dict[str, bytes]:
    build_tables(results)
    return {path.name: path.read_bytes() for path in sorted((results / "tables").rglob("*.*"))}


def test_tables_from_stored_resamples_equal_tables_from_samples(results: Path) -> None:
    computed = tables(results)
    build_database(results)
    run_set = RunSet.load(results)
    assert {label for _, label in resampled.read(run_set, QUANTITIES)} == {run.label for run in run_set.runs}
    assert tables(results) == computed


def test_stored_resamples_equal_those_of_the_worker_processes(results: Path) -> None:
    build_database(results)
    run_set = RunSet.load(results)
    assert len(run_set.runs) >= FEWEST  # enough for worker processes to be used
    kept = resampled.read(run_set, QUANTITIES)
    (results / resampled.NAME).unlink()
    fresh = Measures(run_set, QUANTITIES).all_of(run_set.runs[-1])
    assert WRITE_MEDIAN.name in {name for name, _ in fresh}
    for key, each in fresh.items():
        assert (kept[key].centre, kept[key].n, kept[key].log, kept[key].bounds, kept[key].is_exact) == (
            each.centre, each.n, each.log, each.bounds, each.is_exact,
        ), key  # fmt: skip
        assert (kept[key].draws is None) is (each.draws is None), key
        if each.draws is not None:
            assert np.array_equal(kept[key].draws, each.draws), key


def test_changed_run_files_are_resampled_again(results: Path) -> None:
    build_database(results)
    changed = RunSet.load(results).runs[0]
    path = changed.directory / "operations.parquet"
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    run_set = RunSet.load(results)
    labels = {label for _, label in resampled.read(run_set, QUANTITIES)}
    assert labels == {run.label for run in run_set.runs} - {changed.label}


@pytest.mark.parametrize("content", [b"", b"not an Arrow file"])
def test_damaged_resample_file_is_ignored(results: Path, content: bytes) -> None:
    (results / resampled.NAME).write_bytes(content)
    assert resampled.read(RunSet.load(results), QUANTITIES) == {}


@pytest.mark.parametrize("count", [FEWEST - 1, 3 * FEWEST])
def test_results_keep_their_order_and_little_work_runs_in_process(count: int) -> None:
    with spread(with_pid, range(count), prepare=take, given=(100,), modules=()) as found:
        results = list(found)
    assert [value for _, value in results] == [100 + item for item in range(count)]
    alone = count < FEWEST or len(os.sched_getaffinity(0)) < 2
    assert ({pid for pid, _ in results} == {os.getpid()}) is alone


SPREAD = """
import time
from tests.analysis.work import say_and_wait, take
from tidemark.analysis.parallel import FEWEST, spread
with spread(say_and_wait, range(FEWEST), prepare=take, given=(0,), modules=("tidemark.analysis.statistics",)) as found:
    list(found)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one processor no other process is started")
def test_killing_the_parent_ends_all_of_its_worker_processes(tmp_path: Path) -> None:
    """This includes the workers, the fork server, and the semaphore tracker; the semaphores must be gone as well."""
    root, said = Path(__file__).parents[3], tmp_path / "said"
    with said.open("w") as output:  # not a pipe: surviving processes would keep it open
        process = subprocess.Popen([sys.executable, "-c", SPREAD], cwd=root, stdout=output, stderr=output)
    try:
        wait_until(lambda: said.read_text().count("at work") >= 2)
        helpers = psutil.Process(process.pid).children(recursive=True)
        assert len(helpers) >= 4
        maps = Path(f"/proc/{process.pid}/maps").read_text().split()
        semaphores = {Path(word) for word in maps if word.startswith("/dev/shm/sem.")}
        assert semaphores
    finally:
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(helpers, timeout=20)
    for each in alive:
        each.kill()
    assert alive == []
    assert [path for path in semaphores if path.exists()] == []


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_worker_exception_is_raised_in_the_parent() -> None:
    with (
        pytest.raises(ValueError, match="that fails"),
        spread(with_pid, [*range(FEWEST), -1], prepare=take, given=(0,), modules=()) as found,
    ):
        list(found)
