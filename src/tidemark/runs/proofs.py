"""Evidence in run.json for the validity of a run: page cache residency, and the oracle's result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tidemark.runs.serde import Pairs


class Verdict(StrEnum):
    """Verdict of a cold proof."""

    COLD = "cold"
    LUKEWARM = "lukewarm"
    HOT = "hot"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Residency:
    """Size of a group of files, and how much of it is in the page cache."""

    bytes: int  # size of the files
    resident_bytes: int  # part of them in the page cache

    @property
    def share(self) -> float:
        return self.resident_bytes / self.bytes if self.bytes else 0.0

    @classmethod
    def together(cls, groups: Iterable[Residency]) -> Residency:
        kept = tuple(groups)
        return cls(sum(each.bytes for each in kept), sum(each.resident_bytes for each in kept))


@dataclass(frozen=True, slots=True)
class ColdProof:
    """Page cache residency of the files that a run needs, before servers start or when the window opens.

    Groups in `apart` (the broker and its topic, which are meant to be in memory in all runs) are listed, but do not
    affect the verdict.
    """

    method: str  # how the machine was made cold: evict, evict-files, reboot or none
    boot_id: str  # the kernel's id of this start of the machine
    uptime_s: float  # time since the machine started
    cpu_mhz: float | None  # clock rate of the processor
    temperature_c: float | None  # temperature of the processor
    residency: Pairs[Residency]  # files in the page cache, by group
    verdict: str  # cold, lukewarm, hot or unknown
    reason: str  # reason for the verdict
    apart: tuple[str, ...] = ()  # groups that do not affect the verdict

    @property
    def resident_share(self) -> float | None:
        """Fraction of bytes in the page cache, over all groups not in `apart`; None if these have no bytes."""
        whole = Residency.together(found for name, found in self.residency if name not in self.apart)
        return whole.share if whole.bytes else None


@dataclass(frozen=True, slots=True)
class Oracle:
    """Comparison of the rows that a reader found in the table with the acknowledged ids 0 .. expected - 1."""

    verdict: bool  # true if nothing is missing, doubled or invented
    applicable: bool  # False for a system that stores nothing: there is nothing to compare
    expected: int  # acknowledged rows
    found: int  # rows in the table
    missing: int  # acknowledged rows that are not in the table
    duplicated: int  # ids that are in the table more than once
    unexpected: int  # rows that no write acknowledged
    reader: str  # the library that read the table
    seconds: float  # duration of the check
    commits: int | None = None  # in the window, by the table's history; None if it keeps none

    @classmethod
    def not_applicable(cls, expected: int, reader: str) -> Oracle:
        """Return the oracle of a system that stores nothing."""
        return cls(True, False, expected, 0, 0, 0, 0, reader, 0.0)

    @property
    def is_wrong(self) -> bool:
        """True if the table does not hold what was acknowledged."""
        return self.applicable and not self.verdict
