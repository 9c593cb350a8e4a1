"""Circumstances of a run in run.json: measuring code, machine, interference, disk writes and warm-up.

Version 1 of the run files has little of this; fields are then None, and `Disk.reason` states why.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemark.runs.serde import Pairs

SOUND = 0.1  # maximum share of bytes from other sources: with more, the disk's bytes are not the system's


@dataclass(frozen=True, slots=True)
class Harness:
    """Measuring code; `harness` is its SHA-256, which changes with everything that may change a result."""

    version: str  # version of Tidemark
    format: int  # version of what is measured and recorded
    harness: str  # SHA-256 of the measuring code

    @property
    def digest(self) -> str:
        return self.harness

    @property
    def label(self) -> str:
        return f"{self.digest[:12]} (Tidemark {self.version}, format {self.format})"


@dataclass(frozen=True, slots=True)
class Machine:
    """Machine of a run; two are equal even if free disk space and account (`root`) differ."""

    os: str  # name and release of the operating system
    kernel: str  # release of Linux
    cpu_model: str  # name of the processor
    cores: int  # physical cores
    threads: int  # logical processors
    memory_bytes: int  # size of the memory
    disk_device: str | None  # device that holds the data
    disk_model: str | None  # model of the device
    disk_rotational: bool | None  # true for a hard disk
    file_system: str | None  # file system that holds the data
    free_bytes: int = field(compare=False)  # free space on that file system
    virtualised: str | None  # kind of container or virtual machine; None if none was detected
    root: bool = field(compare=False)  # true if the account is root
    identity: str | None = None  # 16 hex digits: hash of processor, kernel, memory, disk and salted machine id


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes that reached the device of the data; None if they cannot be measured, and `reason` states why.

    Counted from the opening of the window to its end, and during the sync after it; `stream_bytes` is the part of
    both that broker and producer wrote, by their own I/O counters.
    """

    device: str | None  # device whose counter is read
    reason: str | None  # why numbers are missing
    rest_bytes: int | None  # dirty bytes on the idle machine
    left_bytes: int | None  # dirty bytes when the window opened
    settle_seconds: float | None  # wait before the window until the disk was idle
    window_bytes: int | None  # bytes that reached the device during the window
    sync_bytes: int | None  # bytes that reached it during the sync after the window
    sync_seconds: float | None  # duration of this sync
    stream_bytes: int | None  # part of both that broker and producer wrote
    written_by: Pairs[int | None]  # `stream_bytes` by process group: broker and producer

    @property
    def charged_bytes(self) -> int | None:
        """Bytes charged to the system: those of its processes, its servers and the file system, without the stream."""
        if self.window_bytes is None or self.sync_bytes is None or self.stream_bytes is None:
            return None
        return max(0, self.window_bytes + self.sync_bytes - self.stream_bytes)

    @property
    def why_not_charged(self) -> str | None:
        """Reason why no bytes can be charged to the system; None if they can."""
        charged = self.charged_bytes
        if charged is None:
            return self.reason or "what reached the disk in the window is not known"
        # Bytes written before the window that reached the disk during it: `charged` includes them.
        left = (self.left_bytes or 0) - (self.rest_bytes or 0)
        if left > SOUND * charged:
            return f"{left:,} bytes from before the window were still to be written when it opened, too many to tell"
        return None

    @property
    def why_no_seconds(self) -> str | None:
        """Reason why the bytes of each second are not the system's alone; None if they nearly are."""
        if (why := self.why_not_charged) is not None:
            return why
        whole = (self.window_bytes or 0) + (self.sync_bytes or 0)
        if (self.stream_bytes or 0) > SOUND * whole:
            return (
                f"the stream wrote {self.stream_bytes:,} of the {whole:,} bytes that reached the disk, "
                "and seconds do not part them"
            )
        return None


@dataclass(frozen=True, slots=True)
class Interference:
    """Interference during the window: mean processors used by others, clock jumps in seconds, and the verdict."""

    foreign_cores: float | None  # processors that other programs used, on average
    kernel_cores: float | None  # processors that kernel threads used, on average
    steal_cores: float | None  # processors that the hypervisor took, on average
    suspended_seconds: float  # time for which the machine was suspended
    clock_step_seconds: float  # jumps of the wall clock
    disturbed: tuple[str, ...]  # reasons why the run counts as disturbed
    foreign_bytes: int | None = None  # bytes that other programs caused to be written to a disk


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Warm-up before a hot run, not counted: until consecutive stretches agreed, or until a time limit.

    `medians_ms`: median write time of each stretch; those of the preceding run come first.
    """

    stretch_s: float  # length of a stretch
    within: float  # largest difference of medians that counts as steady, as a share
    medians_ms: tuple[float, ...]  # median latency of each stretch, those of the preceding run first
    seconds: float  # duration of the warm-up
    steady: bool  # true if the last medians agreed

    @property
    def stretches(self) -> int:
        return len(self.medians_ms)

    @property
    def label(self) -> str:
        ending = "steady" if self.steady else "NOT steady"
        return f"{self.seconds:.1f} s in {self.stretches:,} stretches, {ending} (within {100 * self.within:g} %)"
