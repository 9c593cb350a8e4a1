from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tidemark.errors import DiskFull, ServiceError
from tidemark.services.programs import process
from tidemark.services.programs.process import LAUNCHER, Child, free_ports, tail, wait_for_line

# Ignores SIGTERM, and has a child in a separate session that ignores it too.
STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["/bin/sleep", "300"], start_new_session=True)
print("ready", flush=True)
time.sleep(300)
"""


def start(folder: Path, *command: str, **env: str) -> Child:
    return Child.start("The test server", command, folder / "log", env=env, cwd=folder)


def python(folder: Path, program: str) -> Child:
    return start(folder, sys.executable, "-c", program)


def test_output_goes_to_the_log_and_the_environment_is_the_given_one(tmp_path: Path) -> None:
    start(tmp_path, "/bin/sh", "-c", "env; echo problem >&2; pwd; cat", ONLY="this").run_to_end(10)
    said = (tmp_path / "log").read_text()
    assert "ONLY=this" in said and "problem" in said and str(tmp_path) in said
    assert "HOME=" not in said


def test_stop_kills_processes_that_ignore_sigterm_and_their_children(tmp_path: Path) -> None:
    child = python(tmp_path, STUBBORN)
    wait_for_line(child, "ready", 10)
    pids = child.pids()
    assert len(pids) == 2
    child.stop(timeout_s=0.3)
    assert child.poll() == -signal.SIGKILL
    assert not any(psutil.pid_exists(pid) for pid in pids)
    child.stop()
    assert child.pids() == []


def test_stop_sends_the_given_signal_first(tmp_path: Path) -> None:
    program = "import signal, sys, time; signal.signal(signal.SIGINT, lambda *_: sys.exit(7)); "
    child = python(tmp_path, program + "print('ready', flush=True); time.sleep(300)")
    wait_for_line(child, "ready", 10)
    child.stop(signal.SIGINT)
    assert child.poll() == 7


def test_processor_time_of_a_child_includes_all_its_processes(tmp_path: Path) -> None:
    busy = "import subprocess, sys, time; "
    busy += "subprocess.Popen([sys.executable, '-c', 'while True: pass']); print('ready', flush=True); time.sleep(300)"
    child = python(tmp_path, busy)
    wait_for_line(child, "ready", 10)
    deadline = time.monotonic() + 20
    while child.cpu_seconds() < 0.5 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert child.cpu_seconds() >= 0.5
    child.stop(signal.SIGKILL, 0)
    assert child.cpu_seconds() == 0


def test_failures_report_status_and_log(tmp_path: Path) -> None:
    child = start(tmp_path, "/bin/sh", "-c", "echo what went wrong; exit 3")
    with pytest.raises(ServiceError) as caught:
        wait_for_line(child, "ready", 10)
    for expected in ("The test server", "exit status 3", str(tmp_path / "log"), "what went wrong"):
        assert expected in str(caught.value)
    with pytest.raises(ServiceError, match="exit status 3"):
        child.check()


def test_full_disk_is_recognised_from_the_log(tmp_path: Path) -> None:
    child = start(tmp_path, "/bin/sh", "-c", "echo 'write failed: No space left on device'; exit 1")
    with pytest.raises(DiskFull, match="The test server"):
        child.run_to_end(10)


def test_full_disk_is_recognised_when_the_log_had_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServiceError) as caught:
        start(tmp_path, "/bin/false").run_to_end(10)
    assert not isinstance(caught.value, DiskFull) and "no room" not in str(caught.value)
    monkeypatch.setattr(process, "LEAST_ROOM", shutil.disk_usage(tmp_path).total + 1)
    with pytest.raises(DiskFull, match=r"exit status 1\): no room left on the device"):
        start(tmp_path, "/bin/false").run_to_end(10)


def test_program_that_is_late_is_stopped(tmp_path: Path) -> None:
    child = start(tmp_path, "/bin/sleep", "300")
    with pytest.raises(ServiceError, match="not ready within"):
        wait_for_line(child, "ready", 0.2)
    with pytest.raises(ServiceError, match="did not end within"):
        child.run_to_end(0.2)
    assert child.poll() is not None


def test_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ServiceError, match="/no/such/program: No such file"):
        start(tmp_path, "/no/such/program").run_to_end(10)


def test_child_of_an_ended_parent_does_not_run(tmp_path: Path) -> None:
    stranger = subprocess.run(["/bin/sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    orphan = subprocess.run(
        [sys.executable, "-I", "-S", LAUNCHER, stranger.stdout.strip(), "-", "/bin/touch", tmp_path / "ran"],
        check=False,
    )
    assert orphan.returncode == -signal.SIGKILL
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root")
def test_root_is_given_up_except_for_entering_folders(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "secret").write_text("x")
    command = "id -u; id -G; grep ^Cap /proc/self/status; touch /root-was-here; test -r secret && echo reaches"
    child = Child.start(
        "id", ["/bin/sh", "-c", command], tmp_path / "log", env={"PATH": os.defpath}, cwd=tmp_path, account=65534
    )
    child.run_to_end(10)
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[:2] == ["65534", "65534"]
    held = {int(line.split()[1], 16) for line in lines if line.startswith(("CapEff", "CapPrm", "CapInh", "CapAmb"))}
    assert held in ({1 << 2}, {1 << 1}), "one right, and that to enter folders"
    if held == {1 << 2}:
        assert any("Permission denied" in line for line in lines) and not Path("/root-was-here").exists()
    assert lines[-1] == "reaches"


def test_ports_are_free_and_different() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", ports[0]))


def test_tail_reads_only_the_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\xff" * 1_000_000 + b"\nlast but one\nlast\n")
    assert tail(log, 2) == "last but one\nlast"
    assert tail(tmp_path / "none") == ""


def test_line_of_an_earlier_start_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("ready\n")
    child = start(tmp_path, "/bin/sleep", "300")
    try:
        with pytest.raises(ServiceError, match="not ready"):
            wait_for_line(child, "ready", 0.3, since=6)
        wait_for_line(child, "ready", 60)
    finally:
        child.stop()
