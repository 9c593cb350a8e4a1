"""Sampler of CPU time, memory and disk writes, once a second while a window is open."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tidemark.machine.disk import DiskCounter
from tidemark.machine.processes import children, cpu_seconds, machine_times, own_bytes, proportional_bytes, total

LEAST_SECONDS = 0.25
HALTED_S = 2.0  # a sample later than this, while this process was almost idle, shows that the process was halted


@dataclass(frozen=True, slots=True)
class Group:
    """Processes that are counted together: those that `leaders` returns, with their children unless `alone`.

    `ended` returns the CPU seconds of former members that were killed, which are counted nowhere else.
    """

    leaders: Callable[[], list[int]]
    alone: bool = False
    ended: Callable[[], float] = float

    def pids(self) -> set[int]:
        leaders = self.leaders()
        return set(leaders) if self.alone else {each for pid in leaders for each in (pid, *children(pid))}

    def cpu_seconds(self) -> float | None:
        """Return the CPU seconds so far; None if there is no such process."""
        return self._cpu_seconds(self.pids())

    def used(self) -> tuple[float | None, float | None]:
        """Return the CPU seconds so far, and the bytes of private memory of its processes; None if there are none."""
        pids = self.pids()
        return self._cpu_seconds(pids), total(own_bytes, pids)

    def shared_bytes(self) -> float | None:
        """Return the bytes of shared memory attributed to its processes, None if there are none; takes milliseconds."""
        pids = self.pids()
        whole, own = total(proportional_bytes, pids), total(own_bytes, pids)
        return None if whole is None or own is None else max(0.0, whole - own)

    def living_seconds(self, pids: Iterable[int]) -> float | None:
        """Return the CPU seconds of its running processes, without former members; None if there is no such process."""
        return total(partial(cpu_seconds, ended_children=not self.alone), pids)

    def _cpu_seconds(self, pids: Iterable[int]) -> float | None:
        found = self.living_seconds(pids)
        return (found or 0.0) + self.ended() if self.ended() else found


@dataclass(slots=True)
class MachineSamples:
    """Columns of machine.parquet, with one entry per second. Arrow is imported only to write them.

    Percentages are of all processors, or of one where stated. A process group that did not exist is null. The columns
    of `groups` are called `cpu_<group>_percent`, those of `memory` `memory_<group>_bytes`.
    """

    second: list[float] = field(default_factory=list)  # end of the sample, in seconds since the window opened
    cpu_percent: list[float] = field(default_factory=list)  # of all processors: used by any process
    steal_percent: list[float] = field(default_factory=list)  # of one processor: taken by the hypervisor
    foreign_percent: list[float | None] = field(default_factory=list)  # of one processor: other programs and kernel
    disk_written_bytes: list[int | None] = field(default_factory=list)  # bytes that reached the device
    groups: dict[str, list[float | None]] = field(default_factory=dict)  # of one processor: by the group
    memory: dict[str, list[int | None]] = field(default_factory=dict)  # of the group, shared pages in part

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, pa.Array] = {
            "second": pa.array(self.second, pa.float64()),
            "cpu_percent": pa.array(self.cpu_percent, pa.float64()),
            "steal_percent": pa.array(self.steal_percent, pa.float64()),
            "foreign_percent": pa.array(self.foreign_percent, pa.float64()),
            "disk_written_bytes": pa.array(self.disk_written_bytes, pa.int64()),
        }
        for name, percents in self.groups.items():
            columns[f"cpu_{name}_percent"] = pa.array(percents, pa.float64())
        for name, sizes in self.memory.items():
            columns[f"memory_{name}_bytes"] = pa.array(sizes, pa.int64())
        pq.write_table(pa.table(columns), path, compression="zstd")


class Sampler:
    """Thread that samples every `interval_s`; a context manager around each stretch of a window.

    Groups are resolved again each second, as PostgreSQL starts a process for each connection. Program time that no
    group used is foreign. Between stretches nothing is sampled, and `second` does not advance.

    Private memory is read each second, shared memory only once, at the end of a stretch: it changes little, and
    reading it would affect what is timed.
    """

    def __init__(
        self,
        directory: Path,
        groups: Mapping[str, Group],
        interval_s: float = 1.0,
        on_second: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self.disk = DiskCounter(directory)
        self.series = MachineSamples(groups={name: [] for name in groups}, memory={name: [] for name in groups})
        self._groups = groups
        self._interval_s = interval_s
        self._on_second = on_second
        self._counted_s = 0.0  # length of the preceding stretches
        self.cpu_s = 0.0  # cost of sampling itself
        self.halted_s = 0.0  # in which this process could not run: stopped by a signal, frozen, or halted by a debugger

    def __enter__(self) -> Sampler:
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._began = self._at = time.perf_counter()
        self._cpu = time.process_time()
        self._machine = machine_times()
        self._written = self.disk.read()
        self._used = {name: group.cpu_seconds() for name, group in self._groups.items()}
        self._sampled = len(self.series.second)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._counted_s += time.perf_counter() - self._began
        if kind is None and self._failure is not None:
            raise self._failure

    def add_shared_memory(self) -> None:
        """Add shared memory to the private memory of each second of the last stretch.

        This takes milliseconds of this process's own time, so it is called once that time has been counted.
        """
        for name, group in self._groups.items():
            found, shared = self.series.memory[name], group.shared_bytes()
            found[self._sampled :] = [
                None if own is None or shared is None else own + round(shared) for own in found[self._sampled :]
            ]

    def _run(self) -> None:
        try:
            self._sample_each_second()
        except Exception as error:  # raised when the stretch ends: seconds are missing, and dead servers were not seen
            self._failure = error
        self.cpu_s += time.thread_time()

    def _sample_each_second(self) -> None:
        due = self._began
        while True:
            due += self._interval_s
            ended = self._ended.wait(max(0.0, due - time.perf_counter()))
            # The last, shorter second counts only if it is long enough for the kernel's clock ticks.
            if not ended or time.perf_counter() - self._at > LEAST_SECONDS:
                self._sample()
            if ended:
                break
            self._on_second(self._counted_s + self._at - self._began)

    def _sample(self) -> None:
        now, cpu = time.perf_counter(), time.process_time()
        late = now - self._at - self._interval_s
        # A library that holds the GIL delays a sample as well, but uses CPU time meanwhile.
        if late > HALTED_S and cpu - self._cpu < late / 2:
            self.halted_s += late
        machine, before = machine_times(), self._machine
        span, wall = machine.total - before.total, now - self._at
        series = self.series
        series.second.append(self._counted_s + now - self._began)
        # The kernel's idle and iowait times may decrease slightly, which would give a share above 1 or below 0.
        share = (machine.busy - before.busy) / span if span > 0 else 0.0
        series.cpu_percent.append(100.0 * min(max(share, 0.0), 1.0))
        series.steal_percent.append(100.0 * max(0.0, machine.stolen - before.stolen) / wall)
        written = self.disk.read()
        series.disk_written_bytes.append(None if written is None or self._written is None else written - self._written)
        ours = 0.0
        for name, group in self._groups.items():
            (used, own), earlier = group.used(), self._used[name]
            spent = None if used is None or earlier is None else max(0.0, used - earlier)
            series.groups[name].append(None if spent is None else 100.0 * spent / wall)
            ours += spent or 0.0
            self._used[name] = used
            series.memory[name].append(None if own is None else round(own))
        foreign = 100.0 * max(0.0, machine.programs - before.programs - ours) / wall
        series.foreign_percent.append(foreign if self._groups else None)
        self._at, self._cpu, self._machine, self._written = now, cpu, machine, written
