"""What run.json says of how a run came about: who measured it, what the disk was charged with, what else was at work.

Version 1 of the run files says none of it, or says it in a way that cannot be used; then fields are None.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.analysis.fields import Fields

OLD_DISK = (
    "run files of version 1 charge the system with the stream's log, which reached the disk in the same window; "
    "measure again"
)
SOUND = 0.1  # of what reached the disk: more than that from elsewhere, and a series of seconds is not the system's


@dataclass(frozen=True, slots=True)
class Harness:
    """The code that measured. `digest` is the SHA-256 of that code, and changes with whatever may change a number."""

    version: str
    format: int
    digest: str

    @property
    def label(self) -> str:
        return f"{self.digest[:12]} (Tidemark {self.version}, format {self.format})"

    @classmethod
    def parse(cls, f: Fields) -> Harness:
        return cls(f.text("version"), f.integer("format"), f.text("harness"))


@dataclass(frozen=True, slots=True)
class Disk:
    """The device under the data, and what reached it from the opening of the window to the end of a sync after it."""

    device: str | None
    reason: str | None  # why bytes are None
    rest_bytes: int | None  # dirty and in write-back on the machine at rest, before the series
    left_bytes: int | None  # the same when the window opened
    settle_seconds: float | None
    window_bytes: int | None
    sync_bytes: int | None
    sync_seconds: float | None
    stream_bytes: int | None  # of both, what the broker and the producer wrote
    written_by: tuple[tuple[str, int], ...]

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

    @classmethod
    def parse(cls, f: Fields, version: int) -> Disk:
        device, reason = f.maybe_text("device"), f.maybe_text("reason")
        if version == 1:
            return cls(device, reason or OLD_DISK, None, None, None, None, None, None, None, ())
        written = f.part("written_by")
        shares = ((name, written.maybe_integer(name)) for name in written.names())
        return cls(
            device=device,
            reason=reason,
            rest_bytes=f.maybe_integer("rest_bytes"),
            left_bytes=f.maybe_integer("left_bytes"),
            settle_seconds=f.maybe_number("settle_seconds"),
            window_bytes=f.maybe_integer("window_bytes"),
            sync_bytes=f.maybe_integer("sync_bytes"),
            sync_seconds=f.maybe_number("sync_seconds"),
            stream_bytes=f.maybe_integer("stream_bytes"),
            written_by=tuple((name, found) for name, found in shares if found is not None),
        )


@dataclass(frozen=True, slots=True)
class Interference:
    """What else was at work in the window. Cores are means over it; None where the machine does not tell."""

    foreign_cores: float | None
    kernel_cores: float | None
    steal_cores: float | None
    suspended_seconds: float
    clock_step_seconds: float
    disturbed: tuple[str, ...]  # why the run counts as disturbed

    @classmethod
    def parse(cls, f: Fields) -> Interference:
        return cls(
            f.maybe_number("foreign_cores"),
            f.maybe_number("kernel_cores"),
            f.maybe_number("steal_cores"),
            f.number("suspended_seconds"),
            f.number("clock_step_seconds"),
            f.texts("disturbed"),
        )


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Uncounted writing before a hot run, until consecutive stretches agreed, or until it had taken long enough."""

    seconds: float
    stretches: int
    within: float
    steady: bool

    @property
    def label(self) -> str:
        ending = "steady" if self.steady else "NOT steady"
        return f"{self.seconds:.1f} s in {self.stretches:,} stretches, {ending} (within {100 * self.within:g} %)"

    @classmethod
    def parse(cls, f: Fields) -> WarmUp:
        return cls(f.number("seconds"), f.count("medians_ms"), f.number("within"), f.flag("steady"))
