"""The sampler and the clocks: the values sampled once a second, and a clock that cannot be stepped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tidemark.machine import sampler as sampler_module
from tidemark.machine.disk import DiskCounter
from tidemark.machine.processes import MachineTimes, children, cpu_seconds, proportional_bytes
from tidemark.machine.sampler import LEAST_SECONDS, Group, Sampler
from tidemark.studies.streams import loop

BUSY = "import time\nend = time.perf_counter() + 60\nwhile time.perf_counter() < end: pass"


def test_processor_time_of_killed_processes_still_counts() -> None:
    gone = Group(list, ended=lambda: 2.0)
    assert gone.cpu_seconds() == 2.0 and Group(list).cpu_seconds() is None
    own = Group(lambda: [os.getpid()], ended=lambda: 100.0).cpu_seconds()
    assert own is not None and own > 100


def test_each_sample_is_an_interval_and_a_short_remainder_is_dropped(tmp_path: Path) -> None:
    with Sampler(tmp_path, {}, interval_s=0.3) as sampler:
        while len(sampler.series.second) < 3:
            time.sleep(0.01)
        whole = len(sampler.series.second)
    series = sampler.series
    assert series.second[0] >= 0.3
    assert series.second == sorted(series.second)
    # The remainder after the last full interval is a sample only if a loaded machine made it a long one.
    assert all(later - earlier > LEAST_SECONDS for earlier, later in pairwise(series.second[whole - 1 :]))
    assert len(series.cpu_percent) == len(series.disk_written_bytes) == len(series.second)
    assert all(0 <= percent <= 100 for percent in series.cpu_percent)
    assert sampler.cpu_s > 0


def test_kernel_times_that_step_back_stay_between_0_and_100_percent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bound them: idle and iowait times are estimates that may decrease, as observed on a loaded virtual machine."""
    told = iter([MachineTimes(10.0, 0, 0, 90.0), MachineTimes(10.5, 0, 0, 89.9), MachineTimes(10.4, 0, 0, 90.4)])
    monkeypatch.setattr(sampler_module, "machine_times", lambda: next(told))
    with Sampler(tmp_path, {}, interval_s=60.0) as sampler:
        sampler._sample()
        sampler._sample()
    assert sampler.series.cpu_percent == [100.0, 0.0]


def test_busy_process_is_counted_only_in_its_group(tmp_path: Path) -> None:
    busy = subprocess.Popen([sys.executable, "-c", BUSY])
    idle = subprocess.Popen(["/bin/sleep", "60"])
    try:
        groups = {
            "busy": Group(lambda: [busy.pid]),
            "idle": Group(lambda: [idle.pid]),
            "absent": Group(list),
            "harness": Group(lambda: [os.getpid()], alone=True),
        }
        with Sampler(tmp_path, groups, interval_s=1.0) as sampler:
            time.sleep(2.2)
    finally:
        for process in (busy, idle):
            process.kill()
            process.wait()
    found = sampler.series.groups
    assert max(percent or 0 for percent in found["busy"]) > 5, "some processor time on however busy a machine"
    assert found["idle"] and all(percent == 0 for percent in found["idle"])
    assert found["absent"] and all(percent is None for percent in found["absent"])
    assert max(percent or 0 for percent in found["harness"]) < 50, "its children are other groups"


HOLDING = """
import mmap, os, time
shared = mmap.mmap(-1, 64 << 20)
shared.write(b"x" * (64 << 20))
if os.fork() == 0:
    sum(shared[::4096])  # the same pages, in the memory of both
    own = b"y" * (48 << 20)
    print("both", flush=True)
time.sleep(60)
"""


def test_memory_shared_by_several_processes_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Query it only when nothing is timed any more, because the query takes milliseconds."""
    asked: list[bool] = []

    def proportional(pid: int) -> int:
        asked.append(sampler._thread.is_alive())
        return proportional_bytes(pid)

    monkeypatch.setattr(sampler_module, "proportional_bytes", proportional)
    parent = subprocess.Popen([sys.executable, "-c", HOLDING], stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        parent.stdout.readline()
        pids = [parent.pid, *children(parent.pid)]
        resident = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids) * 4096
        groups = {"both": Group(lambda: [parent.pid]), "absent": Group(list)}
        sampler = Sampler(tmp_path, groups, interval_s=0.5)
        for _ in range(2):
            with sampler:
                time.sleep(1.2)
            sampler.add_shared_memory()
    finally:
        for pid in [*children(parent.pid), parent.pid]:
            os.kill(pid, 9)
        parent.communicate()
    found = sampler.series.memory
    assert len(found["both"]) == len(sampler.series.second) >= 4
    for size in found["both"]:
        assert size is not None and 112 << 20 <= size < resident - (48 << 20), "its 64 shared and 48 own MB, once"
    assert found["absent"] and all(size is None for size in found["absent"])
    assert asked and not any(asked)


@pytest.mark.parametrize(
    ("late_s", "worked_s", "halted"),
    [(20.0, 0.5, True), (20.0, 19.0, False), (1.5, 0.0, False)],
    ids=["halted", "a library keeps the lock", "a busy machine"],
)
def test_gap_in_the_samples_without_processor_time_is_a_halt(
    tmp_path: Path, late_s: float, worked_s: float, halted: bool
) -> None:
    with Sampler(tmp_path, {}, interval_s=60.0) as sampler:
        sampler._at -= 60.0 + late_s
        sampler._cpu -= worked_s
        sampler._sample()
        assert (sampler.halted_s >= late_s) == halted == (sampler.halted_s > 0)


WATCHED = """
import sys, time
from pathlib import Path
from tidemark.config import DisturbanceConfig
from tidemark.machine.watch import Watch
watch = Watch(Path(sys.argv[1]), {}, ())
with watch:
    print("open", flush=True)
    time.sleep(6)
print("|".join(watch.interference(DisturbanceConfig(1e9, 1e9, 0.05, 1e9, 0)).disturbed))
"""


@pytest.mark.parametrize("is_halted", [True, False], ids=["stopped by a signal", "one call takes long"])
def test_stopped_process_reports_a_halt_and_a_waiting_one_does_not(tmp_path: Path, is_halted: bool) -> None:
    process = subprocess.Popen([sys.executable, "-c", WATCHED, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    if is_halted:
        time.sleep(0.5)
        process.send_signal(signal.SIGSTOP)
        time.sleep(4)
        process.send_signal(signal.SIGCONT)
    said, _ = process.communicate(timeout=60)
    halts = [each for each in said.split("|") if "the process that measures was halted for" in each]
    assert len(halts) == is_halted, said


def test_a_process_that_ends_is_no_error(tmp_path: Path) -> None:
    short = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.4)"])
    with Sampler(tmp_path, {"short": Group(lambda: [short.pid])}, interval_s=0.3) as sampler:
        short.wait()
        time.sleep(0.7)
    percents = sampler.series.groups["short"]
    assert percents and all(percent is None or percent >= 0 for percent in percents)
    with pytest.raises(OSError, match="No such file"):
        cpu_seconds(short.pid)
    assert children(short.pid) == []


def test_children_are_listed() -> None:
    parent = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo started; wait"], stdout=subprocess.PIPE)
    try:
        assert parent.stdout is not None
        parent.stdout.readline()
        (child,) = children(parent.pid)
        assert f"PPid:\t{parent.pid}\n" in Path(f"/proc/{child}/status").read_text()
    finally:
        for pid in [*children(parent.pid), parent.pid]:
            os.kill(pid, 9)
        parent.communicate()


def test_written_bytes_reach_the_counter_of_the_disk_of_the_folder() -> None:
    with tempfile.TemporaryDirectory(prefix=".disk-", dir=Path(__file__).parent) as name:
        folder = Path(name)
        counter = DiskCounter(folder)
        if counter.device is None:
            assert counter.read() is None and counter.reason is not None and folder.name in counter.reason
            pytest.skip(counter.reason)
        before = counter.read()
        with (folder / "file").open("wb") as file:
            file.write(os.urandom(8 << 20))
            file.flush()
            os.fsync(file.fileno())
        after = counter.read()
        assert before is not None and after is not None and after - before >= 8 << 20


def test_memory_file_system_has_no_block_device() -> None:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        pytest.skip("this machine has no /dev/shm")
    counter = DiskCounter(folder)
    assert counter.device is None and counter.read() is None
    assert counter.reason is not None and "no block device" in counter.reason


def test_callback_of_each_second_runs_in_another_thread(tmp_path: Path) -> None:
    told: list[tuple[float, str]] = []
    with Sampler(tmp_path, {}, interval_s=0.2, on_second=lambda s: told.append((s, threading.current_thread().name))):
        time.sleep(0.7)
    assert len(told) >= 2
    assert {name for _, name in told} == {"sampler"}


def test_the_clock_of_the_timed_loop_cannot_be_stepped() -> None:
    """Check the clock's properties: tests may not set the clock of this machine; one with a virtual machine does."""
    assert loop.clock is time.perf_counter_ns
    clock = time.get_clock_info("perf_counter")
    assert clock.monotonic and not clock.adjustable
    assert "CLOCK_MONOTONIC" in clock.implementation
