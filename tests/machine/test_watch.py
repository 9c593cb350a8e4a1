"""A window is watched for other programs, the hypervisor, clocks and the disk, each with a planted fault."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.config import DisturbanceConfig
from tidemark.machine import watch as watch_module
from tidemark.machine.disk import Settled
from tidemark.machine.processes import MachineTimes, Others, cpu_seconds
from tidemark.machine.sampler import Group
from tidemark.machine.watch import Watch, _Clocks

BOUNDS = DisturbanceConfig(foreign_cores=0.2, steal_cores=0.1, gap_seconds=0.05, disk_share=0.05, retries=0)
NO_BOUNDS = DisturbanceConfig(1e9, 1e9, 1e9, 1e9, 0)
BUSY = "import time\nend = time.perf_counter() + 60\nwhile time.perf_counter() < end: pass"
WRITE = "import os, sys; f = open(sys.argv[1], 'wb'); f.write(os.urandom(8 << 20)); f.flush(); input()"
HARNESS = Group(lambda: [os.getpid()], alone=True)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=".watch-", dir=Path(__file__).parent) as name:
        yield Path(name)


def stranger() -> subprocess.Popen[bytes]:
    """Start a busy process that is no descendant of this one: its parent ends at once."""
    busy = f"subprocess.Popen([sys.executable, '-c', {BUSY!r}], stdout=subprocess.DEVNULL)"
    code = f"import subprocess, sys; print({busy}.pid)"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def test_foreign_work_is_detected_and_named_and_that_of_a_group_is_not(folder: Path) -> None:
    parent = stranger()
    pid = int(parent.communicate()[0])
    try:
        watch = Watch(folder, {"harness": HARNESS}, ())
        with watch:
            time.sleep(1.2)
        seen = watch.interference(BOUNDS)
        assert seen.foreign_cores is not None and seen.foreign_cores > 0.2
        (said,) = [each for each in seen.disturbed if each.startswith("foreign processor time")]
        assert "python" in said
        known = Watch(folder, {"harness": HARNESS, "server": Group(lambda: [pid])}, ())
        with known:
            time.sleep(1.2)
        both = known.interference(NO_BOUNDS)
        assert both.disturbed == ()
        assert known.sampler.series.groups["server"][0] is not None
        assert max(each or 0 for each in known.sampler.series.groups["server"]) > 20
    finally:
        os.kill(pid, 9)


def test_work_of_a_killed_process_of_a_group_is_not_foreign(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing else use the machine: a process of the group runs for a second, is killed and waited for."""
    busy = subprocess.Popen([sys.executable, "-c", BUSY])

    def told() -> MachineTimes:
        spent, running = os.times(), [busy.pid] if busy.returncode is None else []
        ended = spent.children_user + spent.children_system
        return MachineTimes(programs=ended + sum(map(cpu_seconds, running)), interrupts=0.0, stolen=0.0, idle=0.0)

    monkeypatch.setattr(watch_module, "machine_times", told)
    monkeypatch.setattr(watch_module, "others", lambda _ours: Others({}, {}))
    watch = Watch(folder, {"harness": HARNESS, "writers": Group(lambda: [busy.pid] * (busy.returncode is None))}, ())
    with watch:
        time.sleep(1.2)
        busy.kill()
        busy.wait()
    assert watch.interference(BOUNDS).foreign_cores == pytest.approx(0, abs=0.05)


def test_share_of_the_hypervisor_is_steal_and_not_foreign_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()

    def told() -> MachineTimes:
        passed = time.monotonic() - began
        return MachineTimes(programs=0.0, interrupts=0.0, stolen=0.5 * passed, idle=1.5 * passed)

    monkeypatch.setattr(watch_module, "machine_times", told)
    watch = Watch(folder, {"harness": HARNESS}, ())
    with watch:
        time.sleep(1.5)  # long compared with the time between reading one clock and the other on a loaded machine
    seen = watch.interference(BOUNDS)
    assert 0.4 < seen.steal_cores < 0.6 and seen.foreign_cores == 0.0
    # This test does not control what others write to the disk meanwhile.
    assert [kind for each in seen.disturbed if (kind := each.partition(":")[0]) != "disk"] == ["steal"]


@pytest.mark.parametrize(
    ("boot", "wall", "said"),
    [(0.0, 0.0, []), (3.0, 3.0, ["suspended for 3.00 s"]), (0.0, -2.0, ["stepped by 2.00 s"])],
    ids=["steady", "suspended", "stepped"],
)
def test_clock_gaps_are_detected(
    folder: Path, monkeypatch: pytest.MonkeyPatch, boot: float, wall: float, said: list[str]
) -> None:
    told = iter([_Clocks(100.0, 150.0, 9_000.0), _Clocks(101.0, 151.0 + boot, 9_001.0 + wall)])
    monkeypatch.setattr(_Clocks, "now", classmethod(lambda _cls: next(told)))
    watch = Watch(folder, {}, ())
    with watch:
        pass
    seen = watch.interference(replace(NO_BOUNDS, gap_seconds=0.05))
    assert len(seen.disturbed) == len(said)
    assert all(words in found for words, found in zip(said, seen.disturbed, strict=True))


def test_unsettled_machine_is_reported(folder: Path) -> None:
    watch = Watch(folder, {}, ())
    watch.opens_after(Settled(7_000_000, 15.0, False))
    with watch:
        pass
    seen = watch.interference(NO_BOUNDS)
    assert seen.disturbed == ("unsettled: 7.0 MB still waited for a disk when the window opened",)
    assert watch.disk(0).left_bytes == 7_000_000


def test_writes_of_the_broker_are_counted_separately(folder: Path) -> None:
    broker = subprocess.Popen([sys.executable, "-c", "input();" + WRITE, folder / "log"], stdin=subprocess.PIPE)
    try:
        watch = Watch(folder, {"kafka": Group(lambda: [broker.pid]), "harness": HARNESS}, ["kafka"])
        with watch:
            assert broker.stdin is not None
            broker.stdin.write(b"\n")
            broker.stdin.flush()
            deadline = time.monotonic() + 20
            while (folder / "log").exists() is False or (folder / "log").stat().st_size < 8 << 20:
                assert time.monotonic() < deadline
                time.sleep(0.02)
        found = watch.disk(0)
        if found.device is None or found.stream_bytes is None:
            pytest.skip("this machine keeps no account of it")
        assert found.window_bytes is not None and found.sync_bytes is not None
        assert found.window_bytes + found.sync_bytes >= 8 << 20, "it is on the disk"
        assert found.stream_bytes >= 8 << 20, "and it is the broker's"
        assert dict(found.written_by) == {"kafka": found.stream_bytes}
    finally:
        broker.kill()
        broker.communicate()


@pytest.mark.alone(reason="it counts what the whole disk writes, other tests' files among it")
def test_foreign_writes_to_the_disk_are_detected(folder: Path) -> None:
    """Write from an orphan, which is no child of this process; it ends in the window, and is still counted."""
    alone = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WRITE!r}, sys.argv[1]])"
    code = f"import os, sys, time\nif os.fork() == 0:\n    input()\n    exec({alone!r})\n    time.sleep(8)"
    parent = subprocess.Popen([sys.executable, "-c", code, folder / "theirs"], stdin=subprocess.PIPE)
    assert parent.stdin is not None
    parent.wait()
    watch = Watch(folder, {"harness": HARNESS}, ())
    with watch:
        parent.stdin.write(b"\n")
        parent.stdin.close()
        deadline = time.monotonic() + 20
        while not (folder / "theirs").exists() or (folder / "theirs").stat().st_size < 8 << 20:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(0.2)
    seen = watch.interference(replace(NO_BOUNDS, disk_share=0.05))
    if seen.foreign_bytes is None:
        pytest.skip("this account may not ask what others write")
    assert seen.foreign_bytes >= 8 << 20
    (said,) = seen.disturbed
    assert said.startswith("disk: other programs wrote ")
    quiet = Watch(folder, {"harness": HARNESS}, ())
    with quiet:
        (folder / "ours").write_bytes(bytes(8 << 20))
    assert quiet.interference(replace(NO_BOUNDS, disk_share=0.05)).disturbed == ()


@pytest.mark.alone(reason="it counts what the whole disk writes, other tests' files among it")
def test_stretches_are_summed_and_the_time_between_them_does_not_count(folder: Path) -> None:
    watch = Watch(folder, {"harness": HARNESS}, ())
    for _ in range(2):
        with watch:
            time.sleep(0.3)
        (folder / "between").write_bytes(os.urandom(16 << 20))
        os.sync()
    found = watch.disk(0)
    if found.device is None:
        pytest.skip(str(found.reason))
    assert watch.sampler.series.second[-1] < 1.2
    assert found.window_bytes is not None and found.sync_bytes is not None
    assert found.window_bytes + found.sync_bytes < 16 << 20, "twice as much was written between them"
