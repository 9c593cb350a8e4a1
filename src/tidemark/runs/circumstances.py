"""What run.json says of how a run came about: who measured it and where, what else was at work, what the disk took.

Version 1 of the run files says little of it; then fields are None, and the disk has the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidemark.runs.coding.shapes import Pairs

SOUND = 0.1  # of what reached the disk: more than that from elsewhere, and a series of seconds is not the system's


@dataclass(frozen=True, slots=True)
class Harness:
    """The code that measured. `harness` is the SHA-256 of that code, and changes with whatever may change a number."""

    version: str
    format: int
    harness: str

    @property
    def digest(self) -> str:
        return self.harness

    @property
    def label(self) -> str:
        return f"{self.digest[:12]} (Tidemark {self.version}, format {self.format})"


@dataclass(frozen=True, slots=True)
class Machine:
    """Machines are one where all is the same but what is free on the disk, and who measures."""

    os: str
    kernel: str
    cpu_model: str
    cores: int
    threads: int
    memory_bytes: int
    disk_device: str | None
    disk_model: str | None
    disk_rotational: bool | None
    file_system: str | None
    free_bytes: int = field(compare=False)
    virtualised: str | None  # what the machine runs in, None when it says nothing of the kind
    root: bool = field(compare=False)
    identity: str | None = None  # 16 hex digits, of processor, kernel, memory, disk and a salted machine id


@dataclass(frozen=True, slots=True)
class Disk:
    """What reached the device under the data. None where the machine does not tell, and then there is a `reason`.

    From the opening of the window to its end, and then by a sync of its own; `stream_bytes` of both is what broker
    and producer sent, as their own counters say.
    """

    device: str | None
    reason: str | None
    rest_bytes: int | None  # waiting for a disk when the machine was at rest
    left_bytes: int | None  # and when the window opened
    settle_seconds: float | None
    window_bytes: int | None
    sync_bytes: int | None
    sync_seconds: float | None
    stream_bytes: int | None
    written_by: Pairs[int | None]  # the same, broker and producer apart

    @property
    def charged_bytes(self) -> int | None:
        """What the system is charged with: its processes, its servers and the file system, without the stream."""
        if self.window_bytes is None or self.sync_bytes is None or self.stream_bytes is None:
            return None
        return max(0, self.window_bytes + self.sync_bytes - self.stream_bytes)

    @property
    def unsettled_bytes(self) -> int | None:
        """What was written before the window and reached the disk in it: it is among `charged_bytes`."""
        if self.left_bytes is None:
            return None
        return max(0, self.left_bytes - (self.rest_bytes or 0))

    @property
    def why_not_charged(self) -> str | None:
        """Why the system cannot be charged with anything; None where it can."""
        charged = self.charged_bytes
        if charged is None:
            return self.reason or "what reached the disk in the window is not known"
        left = self.unsettled_bytes
        if left is not None and left > SOUND * charged:
            return f"{left:,} bytes from before the window were still to be written when it opened, too many to tell"
        return None

    @property
    def why_no_seconds(self) -> str | None:
        """Why what reached the disk in each second is not the system's alone; None where it nearly is."""
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
    """Who else was at work while the window was open: processors in the mean, seconds of clocks, and the verdict."""

    foreign_cores: float | None
    kernel_cores: float | None
    steal_cores: float | None
    suspended_seconds: float
    clock_step_seconds: float
    disturbed: tuple[str, ...]  # why the run counts as disturbed
    foreign_bytes: int | None = None  # that other programs caused to be written to a disk


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Uncounted writing before a hot run, until consecutive stretches agreed, or until it had taken long enough.

    `medians_ms`: of the write times, by stretch; those of the run before it come first.
    """

    stretch_s: float
    within: float
    medians_ms: tuple[float, ...]
    seconds: float
    steady: bool

    @property
    def stretches(self) -> int:
        return len(self.medians_ms)

    @property
    def label(self) -> str:
        ending = "steady" if self.steady else "NOT steady"
        return f"{self.seconds:.1f} s in {self.stretches:,} stretches, {ending} (within {100 * self.within:g} %)"
