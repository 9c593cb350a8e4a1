"""Tests of a program that exchanges lines with its parent: its words, its silence, and its end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tidemark.errors import StreamError, SystemFailure
from tidemark.services.programs import worker
from tidemark.services.programs.process import launched, server_environment
from tidemark.services.programs.worker import Worker

PARENT = """
import sys
from pathlib import Path
from tidemark.services.programs.process import launched
from tidemark.services.programs.worker import Worker
program = "import time; print('ready', flush=True); time.sleep(300)"
child = Worker("child", launched([sys.executable, "-c", program]), Path(sys.argv[1]))
child.heard("ready")
print(child.pid, flush=True)
input()
"""


@contextmanager
def running(folder: Path, program: str) -> Iterator[Worker]:
    command = launched([sys.executable, "-c", program])
    child = Worker("the child", command, folder / "log", env=server_environment(ONLY="this"), cwd=folder)
    try:
        yield child
    finally:
        child.end()
        child.end()
        assert child.process.poll() is not None


def test_lines_are_exchanged_in_turns(tmp_path: Path) -> None:
    program = "import os; print('ready', os.environ['ONLY'], flush=True); print('echo', input()); print('two words 3')"
    with running(tmp_path, program) as child:
        assert child.heard("ready") == "this"
        child.tell("a", 1)
        assert child.heard("echo") == "a 1"
        assert child.heard("two words") == "3"


@pytest.mark.parametrize("said", ["no", "ready-made", "readyness of it"])
def test_other_words_are_reported(said: str, tmp_path: Path) -> None:
    with (
        running(tmp_path, f"print({said!r}, flush=True); input()") as child,
        pytest.raises(SystemFailure, match=rf"the child sent '{said}' where 'ready' was expected\. Its log, .*/log, "),
    ):
        child.heard("ready")


def test_early_end_is_reported_with_the_log(tmp_path: Path) -> None:
    with running(tmp_path, "raise SystemExit('what went wrong')") as child:
        with pytest.raises(SystemFailure, match=r"(?s)the child ended on its own\. Its log, .*ends:\nwhat went wrong"):
            child.heard("ready")
        child.process.wait(10)
        with pytest.raises(SystemFailure, match="the child ended on its own"):
            child.tell("go")


@pytest.mark.parametrize("program", ["input()", "print('rea', end='', flush=True); input()"])
def test_silence_ends_at_the_deadline(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, program) as child:
        began = time.monotonic()
        assert child.hear("ready", began + 0.3) is None
        assert time.monotonic() - began >= 0.3
        monkeypatch.setattr(worker, "READY_S", 0.1)
        with pytest.raises(SystemFailure, match="the child did not say 'ready' within 0 s"):
            child.heard("ready")
        with pytest.raises(SystemFailure, match=r"^no answer in time$"):
            child.heard("ready", time.monotonic(), "no answer in time")


def test_failure_has_the_given_type(tmp_path: Path) -> None:
    child = Worker("it", ["/bin/true"], tmp_path / "log", StreamError)
    with pytest.raises(StreamError, match=r"it ended on its own.*\n\(it is empty\)"):
        child.heard("ready")
    child.end()


def test_killed_parent_takes_it_along(tmp_path: Path, wait_until_gone: Callable[[Iterable[int]], list[int]]) -> None:
    command = [sys.executable, "-c", PARENT, tmp_path / "log"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
        assert wait_until_gone([pid]) == []
