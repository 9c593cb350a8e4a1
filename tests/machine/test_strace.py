"""Operations of programs are counted as they were made: each planted one is seen, and those elsewhere are not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tidemark.machine.strace import DOES, READS, between, completed, killing, operations, tracing, why_not

FOLDER = Path("/t")
RECORDED = """\
7 1.0 openat(AT_FDCWD</home>, "/t/a", O_WRONLY|O_CREAT|O_EXCL, 0666) = 5</t/a>
7 1.0 openat(AT_FDCWD</t>, "/etc/hosts", O_RDONLY) = 6</etc/hosts>
7 1.0 openat(AT_FDCWD</home>, "/t/b", O_RDONLY) = -1 ENOENT (No such file or directory)
7 1.1 openat(AT_FDCWD</home>, "/t/a", O_RDONLY <unfinished ...>
8 1.1 fsync(5</t/a> <unfinished ...>
7 1.2 <... openat resumed>) = 6</t/a>
8 1.2 <... fsync resumed>) = 0
7 1.2 pwrite64(5</t/a>, "PAR1\\25"..., 300, 0) = 300
7 1.2 write(1<pipe:[7]>, "wrote 10"..., 30) = 30
7 1.3 rename("/t/a", "/t/b") = 0
7 1.3 openat(AT_FDCWD</home>, "/t", O_RDONLY|O_DIRECTORY) = 7</t>
7 1.3 getdents64(7</t>, 0x55 /* 3 entries */, 32768) = 72
7 1.3 getdents64(7</t>, 0x55 /* 0 entries */, 32768) = 0
7 1.4 unlinkat(7</t>, "b", 0) = 0
7 1.4 unlink("/tmp/b") = 0
7 1.5 msync(0x7f, 4096, MS_ASYNC) = 0
9 1.5 execve("/usr/bin/chmod", ["chmod"], 0x7f) = 0
8 1.6 openat(AT_FDCWD</home>, "/t/c", O_RDWR|O_DSYNC) = 9</t/c>
"""
PROGRAM = """
import os, sys
folder = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
for name in "ab":
    file = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT)
    os.write(file, b"x" * 100)
    os.fsync(file)
    os.close(file)
os.rename(f"{folder}/a", f"{folder}/c")
os.listdir(folder)
for number in range(int(sys.argv[2])):
    os.remove(f"{folder}/{'bc'[number]}")
print("done", flush=True)
sys.stdin.readline()
"""


def test_calls_outside_of_a_stretch_of_time_are_left_out() -> None:
    found = [line.split()[1] for line in between([*RECORDED.splitlines(), "7"], 1.2, 1.3)]
    assert set(found) == {"1.2", "1.3"}
    assert operations(completed(between(RECORDED.splitlines(), 1.15, 9.0)), FOLDER)["fsync"] == 0, "it began before"


def test_operations_in_a_folder_are_told_by_arguments_and_results() -> None:
    found = operations(completed(RECORDED.splitlines()), FOLDER)
    assert found == {
        "create": 1,
        "open": 1,
        "open for synchronous writes": 1,
        "fsync": 1,
        "bytes written": 300,
        "rename": 1,
        "list folder": 1,
        "remove": 1,
        "program started": 1,
    }


def test_processes_that_serve_no_client_can_be_left_out() -> None:
    line = f"8 1.7 {READS}(4<socket>, 0x7f, 8192, 0, NULL, NULL) = 5"
    found = operations(completed([*RECORDED.splitlines(), line]), FOLDER, serving_only=True)
    assert found == {"fsync": 1, "open for synchronous writes": 1}


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_operations_of_a_running_program_are_counted(removed: int, tmp_path: Path) -> None:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    folder = tmp_path / "folder"
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(folder), str(removed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None and program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        with tracing({"it": [program.pid], "none": []}, tmp_path) as files:
            program.stdin.write("go\n")
            program.stdin.flush()
            assert program.stdout.readline() == "done\n"
        status = Path(f"/proc/{program.pid}/status").read_text()
        assert "TracerPid:\t0" in status and "T (" not in status
    assert files["none"].read_text() == ""
    found = operations(completed(files["it"].read_text().splitlines()), folder)
    made = {"create": 2, "bytes written": 200, "fsync": 2, "rename": 1, "list folder": 1, "remove": removed}
    assert found == +Counter(made)


@pytest.mark.parametrize(("fatal", "left", "made"), [("rename", ["a", "b"], []), ("remove", ["b", "c"], ["rename"])])
def test_program_is_killed_at_a_call_that_is_then_not_made(
    fatal: str, left: list[str], made: list[str], tmp_path: Path
) -> None:
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    folder, record = tmp_path / "folder", tmp_path / "record"
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(folder), "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None and program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        with killing(program.pid, [call for call, what in DOES.items() if what == fatal], DOES, record):
            program.stdin.write("go\n")
            program.stdin.flush()
            assert program.wait() == -signal.SIGKILL
    assert sorted(path.name for path in folder.iterdir()) == left
    assert [DOES[call.name] for call in completed(record.read_text().splitlines())] == made
