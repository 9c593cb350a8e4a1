"""Once a second, while a window is open: how busy the processors are, and what reaches the data's own disk."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
LEAST_SECONDS = 0.25
SECTOR_BYTES = 512  # the kernel's unit in block statistics, whatever the device's own is


class DiskCounter:
    """Bytes written to the block device that holds `directory`, since the machine started."""

    def __init__(self, directory: Path) -> None:
        number = directory.stat().st_dev
        node = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        self._stat = node / "stat"
        self.device: str | None = node.resolve().name if self._stat.exists() else None
        self.reason = (
            None if self.device else f"the file system of {directory.name} has no block device of its own to ask"
        )

    def read(self) -> int | None:
        if self.device is None:
            return None
        return int(self._stat.read_text().split()[6]) * SECTOR_BYTES


def children(pid: int) -> list[int]:
    """Children of `pid`, from the kernel's list of one thread, which costs no walk through all processes."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, and of its children that have ended, in seconds.

    Read here and not by psutil, which asks for more and takes ten times as long; OSError when it has ended.
    """
    # The command's name may hold spaces and parentheses; what follows its last parenthesis does not.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:15])) / CLOCK_TICKS


@dataclass(slots=True)
class Series:
    """One list a column, one entry a second."""

    second: list[float] = field(default_factory=list)
    cpu_percent: list[float] = field(default_factory=list)
    disk_written_bytes: list[int | None] = field(default_factory=list)
    groups: dict[str, list[float | None]] = field(default_factory=dict)


class Sampler:
    """A thread that samples every `interval_s`; a context manager around the window.

    `groups` maps a name to the processes of it, asked anew each second with their children: PostgreSQL starts
    one for each connection. A group's percent is of one processor.
    """

    def __init__(
        self,
        directory: Path,
        groups: Mapping[str, Callable[[], list[int]]],
        interval_s: float = 1.0,
        on_second: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self.disk = DiskCounter(directory)
        self.series = Series(groups={name: [] for name in groups})
        self._groups = groups
        self._interval_s = interval_s
        self._on_second = on_second
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self.cpu_s = 0.0  # what sampling itself cost

    def __enter__(self) -> Sampler:
        self._began = self._at = time.perf_counter()
        self._busy, self._total = _machine_times()
        self._written = self.disk.read()
        self._used = {name: self._usage(name) for name in self._groups}
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        due = self._began
        while True:
            due += self._interval_s
            ended = self._ended.wait(max(0.0, due - time.perf_counter()))
            # The last, shorter second counts only if it is long enough for the kernel's clock ticks.
            if not ended or time.perf_counter() - self._at > LEAST_SECONDS:
                self._sample()
            if ended:
                break
            self._on_second(self._at - self._began)
        self.cpu_s = time.thread_time()

    def _sample(self) -> None:
        now = time.perf_counter()
        busy, total = _machine_times()
        span = total - self._total
        series = self.series
        series.second.append(now - self._began)
        # The kernel's idle and iowait times may step back a little, which would make more than all, or less than none.
        share = (busy - self._busy) / span if span > 0 else 0.0
        series.cpu_percent.append(100.0 * min(max(share, 0.0), 1.0))
        written = self.disk.read()
        series.disk_written_bytes.append(None if written is None or self._written is None else written - self._written)
        for name in self._groups:
            used = self._usage(name)
            before = self._used[name]
            known = used is not None and before is not None
            series.groups[name].append(100.0 * max(0.0, used - before) / (now - self._at) if known else None)  # type: ignore[operator]
            self._used[name] = used
        self._at, self._busy, self._total, self._written = now, busy, total, written

    def _usage(self, name: str) -> float | None:
        pids = self._groups[name]()
        if not pids:
            return None
        seconds = 0.0
        for each in {each for pid in pids for each in (pid, *children(pid))}:
            with suppress(OSError):
                seconds += cpu_seconds(each)
        return seconds


def _machine_times() -> tuple[float, float]:
    """Seconds that all processors were busy, and seconds altogether."""
    times = psutil.cpu_times()
    idle = times.idle + getattr(times, "iowait", 0.0)
    total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    return total - idle, total
