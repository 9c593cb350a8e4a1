"""A power cut loses exactly what was not flushed; nothing of the disk outlives the process that mounted it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidemark.code import PACKAGE
from tidemark.machine import power

needs_disk = pytest.mark.skipif(bool(power.why_not()), reason=f"no disk to cut: {power.why_not()}")

# Two writers, one of which flushes its writes; both are stopped when the power is cut.
CUT = """
import os, subprocess, sys, time
from pathlib import Path
from tidemark.machine.power import Disk, stop
folder = Path(sys.argv[1])
BEGIN = "import os, sys, time; file = open(sys.argv[1], 'wb')"
WRITER = BEGIN + "\\nwhile True:\\n file.write(b'tide' * 2500); file.flush()"
FLUSHES = WRITER + "; os.fsync(file.fileno())"
with Disk(folder / "disk", folder / "beside") as disk:
    (folder / "disk/before").write_bytes(b"tide" * 2500)
    disk.sync()
    disk.leave_witness()
    programs = [(FLUSHES, "flushed"), (WRITER + "; time.sleep(0.001)", "left")]
    writers = [subprocess.Popen([sys.executable, "-c", code, str(folder / "disk" / name)]) for code, name in programs]
    for path in (folder / "disk" / name for _, name in programs):
        while not path.exists() or path.stat().st_size < 100_000:
            time.sleep(0.01)
    if sys.argv[2:]:
        os.sync()
    stop(lambda: [each.pid for each in writers])
    sizes = {name: (folder / "disk" / name).stat().st_size for _, name in programs}
    copies = disk.cut()
    for each in writers:
        each.kill(); each.wait()
    disk.come_back()
    for name in ("before", "flushed", "left"):
        path = folder / "disk" / name
        print(name, sizes.get(name, 10_000), path.stat().st_size if path.exists() else 0)
    print("seen", int(disk.was_flushed()), 0)
"""
CUTS = 5
HOLDS = """
import sys, time
from pathlib import Path
from tidemark.machine.power import Disk
folder = Path(sys.argv[1])
with Disk(folder / "disk", folder / "beside"):
    (folder / "disk/file").write_text("x")
    print("mounted", flush=True)
    time.sleep(60)
"""


def program(code: str, folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "disk").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-c", code, str(folder), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def loops(folder: Path) -> list[str]:
    """Return the files below `folder` that back a loop device."""
    found = [path.read_text().strip() for path in Path("/sys/block").glob("loop*/loop/backing_file")]
    return [name for name in found if str(folder) in name]


@needs_disk
def test_power_cut_keeps_flushed_data_and_loses_data_only_in_the_kernel(tmp_path: Path) -> None:
    had, left = 0, 0
    for trial in range(CUTS):  # another process's sync(2), or memory filled with dirty pages, flushes this disk too
        found = cut_power(tmp_path / f"{trial}")
        flushed = found.pop("seen") == (1, 0)
        assert found["before"] == (10_000, 10_000)
        had, left = found["flushed"]
        assert had - 10_000 <= left <= had  # the last write may have been under way
        had, left = found["left"]
        assert had > 10_000 and flushed == (left > 0)
        if not flushed:
            break
    assert left == 0, f"in {CUTS} cuts, data that no process flushed outlived the cut"


@needs_disk
def test_witness_tells_that_the_whole_disk_was_flushed(tmp_path: Path) -> None:
    found = cut_power(tmp_path / "synced", "sync")
    assert found["seen"] == (1, 0) and found["left"][1] > 10_000


def cut_power(folder: Path, *words: str) -> dict[str, tuple[int, int]]:
    """Return each file's bytes when the power was cut and after; assert that nothing of the disk is left."""
    folder.mkdir()
    with program(CUT, folder, *words) as cut:
        said = cut.communicate(timeout=60)[0]
    assert cut.returncode == 0
    assert not loops(folder) and not list((folder / "disk").iterdir()) and not (folder / "beside").exists()
    return {name: (int(had), int(left)) for name, had, left in map(str.split, said.splitlines())}


@needs_disk
def test_a_killed_process_leaves_no_mount_and_no_loop_device(tmp_path: Path) -> None:
    with program(HOLDS, tmp_path) as holds:
        assert holds.stdout is not None and holds.stdout.readline() == "mounted\n"
        assert loops(tmp_path) and not list((tmp_path / "disk").iterdir())  # visible to that process only
        assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
        holds.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while loops(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not loops(tmp_path)


def test_missing_disk_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    assert power.why_not.__wrapped__() == "only root may mount a disk"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(power, "TOOLS", ("mkfs.nothing",))
    assert power.why_not.__wrapped__() == "mkfs.nothing is not here"


def test_stop_halts_the_given_process() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as sleeper:
        power.stop(lambda: [sleeper.pid])
        assert Path(f"/proc/{sleeper.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        sleeper.kill()
