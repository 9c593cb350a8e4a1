"""Processors' time: of single processes and their children, of the kernel's own threads, of everybody."""

from __future__ import annotations

import os
import resource
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tidemark.errors import MachineError
from tidemark.machine.disk import sent_bytes

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KERNEL = 2  # the parent of all threads of the kernel
LEAST_FILES = 1024  # that a process may have open: what systems allow where nobody set a limit


def have_files() -> None:
    """Let this process and its children have as many files open as servers need; MachineError where they may not."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if -1 < most < LEAST_FILES:
        raise MachineError(
            f"found a limit of {most} open files for a process, too few for Kafka; allowed: {LEAST_FILES} or more. "
            "Raise it ('ulimit -n', LimitNOFILE, --ulimit of a container) and run the command again."
        )
    if -1 < allowed < LEAST_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_FILES, most))


def children(pid: int) -> list[int]:
    """Children of `pid`, from the kernel's list of one thread, which costs no walk through all processes."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def family(pid: int) -> Iterator[int]:
    """`pid` and all that descend from it by its main thread and theirs, as far as they run now."""
    yield pid
    for child in children(pid):
        yield from family(child)


def cpu_seconds(pid: int, ended_children: bool = True) -> float:
    """User and system time of a process in seconds, and of its children that have ended unless told otherwise.

    Read here and not by psutil, which asks for more and takes ten times as long; OSError when it has ended.
    """
    # The command's name may hold spaces and parentheses; what follows its last parenthesis does not.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11 : 15 if ended_children else 13])) / CLOCK_TICKS


def own_bytes(pid: int) -> int:
    """Memory that a process has for itself: what is resident less what may be shared. OSError when it has ended.

    The kernel counts these all the time, so that asking takes some 20 µs.
    """
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES


def forget_peak() -> None:
    """Let `peak_bytes` of this process begin anew, where the kernel allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The most resident memory that this process had since `forget_peak`, what it shares with others included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError("the kernel keeps no peak of this process's memory")


def proportional_bytes(pid: int) -> int:
    """Resident memory of a process (PSS): of pages that it shares with others, its part. OSError when it has ended.

    The kernel walks through all of its pages for that, some milliseconds, so not while anything is timed.
    """
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory any more")


@dataclass(frozen=True, slots=True)
class MachineTimes:
    """Seconds since the machine started, of all its processors together.

    `programs`: for processes and the kernel's threads; `interrupts`: for devices; `stolen`: kept by the hypervisor;
    `idle`: none of these.
    """

    programs: float
    interrupts: float
    stolen: float
    idle: float

    @property
    def busy(self) -> float:
        return self.programs + self.interrupts + self.stolen

    @property
    def total(self) -> float:
        return self.busy + self.idle


def machine_times() -> MachineTimes:
    times = psutil.cpu_times()
    return MachineTimes(
        programs=times.user + times.nice + times.system,
        interrupts=getattr(times, "irq", 0.0) + getattr(times, "softirq", 0.0),
        stolen=getattr(times, "steal", 0.0),
        idle=times.idle + getattr(times, "iowait", 0.0),
    )


@dataclass(frozen=True, slots=True)
class Others:
    """What ran on this machine at one moment beside the processes of ours, in seconds of processor time so far.

    `sent_bytes`: what they caused to be written to a disk so far, ended children included; None where nobody may ask.
    """

    kernel: float
    programs: dict[int, tuple[str, float]]  # by process: its name, and its time without that of ended children
    sent_bytes: int | None = None

    def since(self, before: Others) -> list[tuple[str, float]]:
        """Programs by the time they took since `before`, most first."""
        taken: dict[str, float] = {}
        for pid, (name, seconds) in self.programs.items():
            earlier = before.programs.get(pid)
            spent = seconds - (earlier[1] if earlier is not None and earlier[0] == name else 0.0)
            taken[name] = taken.get(name, 0.0) + spent
        return sorted(taken.items(), key=lambda pair: -pair[1])


def others(ours: set[int]) -> Others:
    """One walk through all processes but `ours`; some milliseconds, so not while anything is timed."""
    kernel, programs = 0.0, {}
    for place in Path("/proc").iterdir():
        name = place.name
        if not name.isdecimal() or int(name) in ours:
            continue
        try:
            head, _, tail = (place / "stat").read_text().rpartition(")")
        except OSError:
            continue
        fields = tail.split()
        seconds = sum(map(int, fields[11:13])) / CLOCK_TICKS
        if int(fields[1]) == KERNEL or int(name) == KERNEL:
            kernel += seconds
        else:
            programs[int(name)] = (head.partition("(")[2], seconds)
    return Others(kernel, programs, sent_bytes(programs))


def bind(processors: int) -> None:
    """Bind all threads of this process, and those that they will start, to the first so many of its processors."""
    allowed = set(sorted(os.sched_getaffinity(0))[:processors])
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), allowed)


def confine(pids: Iterable[int], processors: Collection[int]) -> None:
    """Bind all threads of the processes, and those that they will start, to `processors`; who has ended is left out."""
    for pid in pids:
        with suppress(FileNotFoundError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread.name), processors)
