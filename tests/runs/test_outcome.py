"""Tests of a series' outcome: it records every attempt and each run that was measured again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.errors import RebootNeeded, ServiceError
from tidemark.runs.outcome import Disturbed, Outcome, SeriesRecord

BEGIN = """
import sys
from pathlib import Path
from tidemark.runs.outcome import SeriesRecord
with SeriesRecord(Path(sys.argv[1])).attempt():
    print("begun", flush=True)
    input()
"""


def test_every_kind_of_end_is_recorded(tmp_path: Path) -> None:
    with pytest.raises(ServiceError), SeriesRecord(tmp_path).attempt():
        raise ServiceError("PostgreSQL ended on its own")
    with pytest.raises(KeyboardInterrupt), SeriesRecord(tmp_path).attempt():
        raise KeyboardInterrupt
    with SeriesRecord(tmp_path).attempt():
        pass
    found = SeriesRecord(tmp_path).attempts()
    assert [each.status for each in found] == ["failed", "interrupted", "complete"]
    assert [each.number for each in found] == [1, 2, 3]
    assert [each.exit_code for each in found] == [5, 130, 0]
    assert found[0].reason == "PostgreSQL ended on its own" and found[0].exit_code == 5
    assert all(each.ended_at is not None for each in found)


def test_killed_attempt_is_recorded_as_killed(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", BEGIN, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline() == b"begun\n"
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    with SeriesRecord(tmp_path).attempt():
        pass
    killed, done = SeriesRecord(tmp_path).attempts()
    assert killed.status == "killed" and killed.ended_at is None and killed.exit_code is None
    assert done.status == "complete" and done.number == 2


def test_waiting_for_a_restart_is_no_attempt(tmp_path: Path) -> None:
    with pytest.raises(RebootNeeded), SeriesRecord(tmp_path).attempt():
        raise RebootNeeded("waits")
    assert SeriesRecord(tmp_path).attempts() == ()


def test_disturbed_runs_are_listed_separately_from_counted_runs(tmp_path: Path) -> None:
    for name, reasons in (("run-1", []), ("disturbed/run-1-1", ["steal: 0.4"]), ("disturbed/run-0-2", ["gap: 3 s"])):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").write_text(json.dumps({"interference": {"disturbed": reasons}}))
    assert SeriesRecord(tmp_path).finished() == [1]
    assert SeriesRecord(tmp_path).disturbed() == (
        Disturbed(0, 2, "disturbed/run-0-2", ("gap: 3 s",)),
        Disturbed(1, 1, "disturbed/run-1-1", ("steal: 0.4",)),
    )


def test_written_outcome_is_read_back_unchanged(tmp_path: Path) -> None:
    with SeriesRecord(tmp_path).attempt():
        pass
    outcome = Outcome(
        "complete", None, 0, (0, 1), SeriesRecord(tmp_path).attempts(), (Disturbed(1, 1, "x", ("a", "b")),)
    )
    outcome.write(tmp_path / "outcome.json")
    assert Outcome.read(tmp_path / "outcome.json") == outcome
    old = {"status": "failed", "reason": "x", "exit_code": 5, "runs": []}
    (tmp_path / "outcome.json").write_text(json.dumps(old))
    assert Outcome.read(tmp_path / "outcome.json") == Outcome("failed", "x", 5, ())
