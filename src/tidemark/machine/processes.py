"""CPU time, memory and limits of processes: single ones and their children, kernel threads, and all of a machine.

Also the lock that allows one measurement at a time on the machine, from any folder or account.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tidemark.errors import MachineError
from tidemark.machine.disk import sent_bytes

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
KERNEL = 2  # process id of the parent of all kernel threads
LEAST_FILES = 1024  # that a process may have open: the usual default of systems
# An abstract socket name: no file can be left behind, and the kernel releases the name when its holder ends.
LOCK_NAME = "\0tidemark-measures"
LOOK_SECONDS = 0.2


def have_files() -> None:
    """Raise the limit of open files of this process to what servers need; raise MachineError if that is forbidden."""
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if -1 < most < LEAST_FILES:
        raise MachineError(
            f"found a limit of {most} open files for a process, too few for Kafka; allowed: {LEAST_FILES} or more. "
            "Raise it ('ulimit -n', LimitNOFILE, --ulimit of a container) and run the command again."
        )
    if -1 < allowed < LEAST_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (LEAST_FILES, most))


def children(pid: int) -> list[int]:
    """Return the children of `pid`, from the kernel's list of one thread, which avoids a walk through all processes."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def family(pid: int) -> Iterator[int]:
    """Yield `pid` and all of its running descendants that main threads started."""
    yield pid
    for child in children(pid):
        yield from family(child)


def cpu_seconds(pid: int, ended_children: bool = True) -> float:
    """Return user and system time of a process in seconds, by default with that of its children that have ended.

    Read directly, as psutil reads more and takes ten times as long. Raises OSError if the process has ended.
    """
    # The command's name may contain spaces and parentheses; the text after its last parenthesis does not.
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11 : 15 if ended_children else 13])) / CLOCK_TICKS


def total(of: Callable[[int], float], pids: Iterable[int]) -> float | None:
    """Return the sum over all processes that can be read; None if there are none."""
    found = []
    for pid in pids:
        with suppress(OSError):
            found.append(of(pid))
    return sum(found) if found else None


def own_bytes(pid: int) -> int:
    """Return a process's private memory in bytes, resident less shareable; raise OSError if it has ended.

    The kernel maintains these counters, so reading them takes some 20 µs.
    """
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * PAGE_BYTES


def forget_peak() -> None:
    """Reset `peak_bytes` of this process, if the kernel allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Return this process's peak resident memory in bytes since `forget_peak`, shared memory included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError("the kernel keeps no peak of this process's memory")


def proportional_bytes(pid: int) -> int:
    """Return a process's resident memory with its part of shared pages (PSS); raise OSError if it has ended.

    The kernel walks through all of its pages, which takes some milliseconds: do not call it while anything is timed.
    """
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no memory any more")


@dataclass(frozen=True, slots=True)
class MachineTimes:
    """CPU seconds since the machine started, summed over all processors.

    `programs`: processes and kernel threads; `interrupts`: devices; `stolen`: taken by the hypervisor; `idle`: rest.
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
    """Processes on this machine other than Tidemark's, with their CPU seconds up to one moment.

    `sent_bytes`: bytes that they caused to be written to a disk, ended children included, as far as this account may
    read it; None if it may read none.
    """

    kernel: dict[int, float]  # by thread id
    programs: dict[int, tuple[str, float]]  # by process id: name, and CPU seconds without those of ended children
    sent_bytes: int | None = None

    def kernel_since(self, before: Others) -> float:
        """Return the CPU seconds of the kernel's threads since `before`, without those of threads that ended."""
        return sum(max(0.0, seconds - before.kernel.get(pid, 0.0)) for pid, seconds in self.kernel.items())

    def since(self, before: Others) -> list[tuple[str, float]]:
        """Return the programs with the CPU seconds that they used since `before`, most first."""
        taken: dict[str, float] = {}
        for pid, (name, seconds) in self.programs.items():
            earlier = before.programs.get(pid)
            spent = seconds - (earlier[1] if earlier is not None and earlier[0] == name else 0.0)
            taken[name] = taken.get(name, 0.0) + spent
        return sorted(taken.items(), key=lambda pair: -pair[1])


def others(ours: set[int]) -> Others:
    """Read all processes except `ours`; it takes some milliseconds: do not call it while anything is timed."""
    kernel, programs = {}, {}
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
            kernel[int(name)] = seconds
        else:
            programs[int(name)] = (head.partition("(")[2], seconds)
    return Others(kernel, programs, sent_bytes(programs))


def bind(processors: int) -> None:
    """Bind all threads of this process, and those that they start later, to its first `processors` processors."""
    confine([os.getpid()], sorted(os.sched_getaffinity(0))[:processors])


def confine(pids: Iterable[int], processors: Collection[int]) -> None:
    """Bind all threads of the processes, and those that they start later, to `processors`; ended ones are skipped."""
    for pid in pids:
        with suppress(FileNotFoundError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(int(thread.name), processors)


@contextmanager
def hold_machine(show: Callable[[str], None] = lambda _what: None) -> Iterator[None]:
    """Hold the machine's measurement lock, waiting for it if necessary; released however this process ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as holder:
        waiting = False
        while True:
            try:
                holder.bind(LOCK_NAME)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise MachineError(f"the lock of measurements cannot be taken: {error.strerror}") from error
                if not waiting:
                    show("waiting for another measurement on this machine to end")
                waiting = True
                time.sleep(LOOK_SECONDS)
        yield
