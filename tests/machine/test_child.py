"""Work in a child: its errors arrive, its imports do not; it neither outlives its parent nor is cut short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tidemark.errors import OracleError, TidemarkError
from tidemark.machine.child import in_a_child

PARENT = """
import sys, time
from pathlib import Path
from tidemark.process_lifetime import heed_interruptions
from tidemark.machine.child import in_a_child

def work() -> None:
    try:
        print("begun", flush=True)
        time.sleep(60)
    finally:
        time.sleep(1)
        Path(sys.argv[1]).write_text("tidied up")

heed_interruptions()
try:
    in_a_child(work)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def begin(path: Path) -> subprocess.Popen[str]:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, path], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None and parent.stdout.readline() == "begun\n"
    return parent


def test_work_is_done_and_its_imports_stay_in_the_child(tmp_path: Path) -> None:
    def work() -> None:
        import this  # noqa: F401

        (tmp_path / "done").touch()

    in_a_child(work)
    assert (tmp_path / "done").exists() and "this" not in sys.modules


def test_error_of_the_child_arrives_with_its_exit_code() -> None:
    def fail() -> None:
        raise OracleError("one row is missing")

    def break_down() -> None:
        raise ValueError("no such thing")

    def vanish() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(TidemarkError, match="one row is missing") as caught:
        in_a_child(fail)
    assert caught.value.exit_code == OracleError.exit_code
    with pytest.raises(TidemarkError, match="ValueError: no such thing"):
        in_a_child(break_down)
    with pytest.raises(TidemarkError, match=r"without a word .killed by SIGKILL"):
        in_a_child(vanish)


@pytest.mark.parametrize("to_both", [False, True], ids=["to the parent", "to its group"])
def test_child_cleans_up_when_its_parent_is_interrupted(tmp_path: Path, to_both: bool) -> None:
    parent = begin(tmp_path / "said")
    (os.killpg if to_both else os.kill)(parent.pid, signal.SIGINT)
    time.sleep(0.3)
    (os.killpg if to_both else os.kill)(parent.pid, signal.SIGINT)
    said, _ = parent.communicate(timeout=30)
    assert said == "interrupted\n" and (tmp_path / "said").read_text() == "tidied up"


def test_child_does_not_outlive_its_parent(tmp_path: Path) -> None:
    parent = begin(tmp_path / "said")
    (child,) = psutil.Process(parent.pid).children()
    parent.kill()
    parent.communicate()
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running() and not (tmp_path / "said").exists()
