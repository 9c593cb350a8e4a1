from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.engines.flink import Flink, last_checkpoint

NUMBERS = "CREATE TEMPORARY TABLE numbers (number INT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')"
NOWHERE = "CREATE TEMPORARY TABLE nowhere (number INT) WITH ('connector' = 'blackhole')"
OFTEN = {"execution.checkpointing.interval": "100 ms"}


@pytest.fixture(scope="module")
def flink(shared_workspace: Workspace) -> Iterator[Flink]:
    with Flink(shared_workspace, shared_workspace.work / "flink") as server:
        yield server


def test_job_listens_on_loopback_only_and_writes_checkpoints_to_resume_from(
    flink: Flink, listening: Callable[[Iterable[int]], set[str]]
) -> None:
    assert flink.version() == "2.1.1"
    statements = [NUMBERS, NOWHERE, "INSERT INTO nowhere SELECT number FROM numbers"]
    flink.run("copy", statements, OFTEN)
    assert listening(flink.pids()) == {"127.0.0.1"}
    kept = flink.data_directory / "copy" / "checkpoints"
    deadline = time.monotonic() + 30
    while last_checkpoint(kept) is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    flink.check_job()
    flink.cancel("copy")
    assert not kept.exists()


def test_failed_job_raises_its_cause(flink: Flink) -> None:
    statements = [NUMBERS, NOWHERE, "INSERT INTO nowhere SELECT 1 / (number - number) FROM numbers"]
    flink.run("division", statements, {"restart-strategy.type": "none"})
    with pytest.raises(ServiceError, match="/ by zero"):
        for _ in range(300):
            flink.check_job()
            time.sleep(0.1)


def test_statement_refused_by_flink_raises_the_reason(flink: Flink) -> None:
    with pytest.raises(ServiceError, match="Object 'numbers' not found"):
        flink.run("nothing", [NOWHERE, "INSERT INTO nowhere SELECT number FROM numbers"], {})


def test_last_checkpoint_is_the_complete_one_with_the_highest_number(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    for start, number in (("first", 9), ("first", 10), ("second", 11)):
        folder = tmp_path / start / f"chk-{number}"
        folder.mkdir(parents=True)
        if number < 11:
            (folder / "_metadata").touch()
    assert last_checkpoint(tmp_path) == tmp_path / "first" / "chk-10"
