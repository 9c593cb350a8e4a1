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

    bytes: int
    resident_bytes: int

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

    method: str
    boot_id: str
    uptime_s: float
    cpu_mhz: float | None
    temperature_c: float | None
    residency: Pairs[Residency]
    verdict: str
    reason: str
    apart: tuple[str, ...] = ()

    @property
    def resident_share(self) -> float | None:
        """Fraction of bytes in the page cache, over all groups not in `apart`; None if these have no bytes."""
        whole = Residency.together(found for name, found in self.residency if name not in self.apart)
        return whole.share if whole.bytes else None


@dataclass(frozen=True, slots=True)
class Oracle:
    """Comparison of the rows that a reader found in the table with the acknowledged ids 0 .. expected - 1."""

    verdict: bool
    applicable: bool  # False for a system that stores nothing: there is nothing to compare
    expected: int
    found: int
    missing: int
    duplicated: int
    unexpected: int
    reader: str
    seconds: float
    commits: int | None = None  # in the window, by the table's history; None if it keeps none

    @classmethod
    def not_applicable(cls, expected: int, reader: str) -> Oracle:
        """Return the oracle of a system that stores nothing."""
        return cls(True, False, expected, 0, 0, 0, 0, reader, 0.0)

    @property
    def is_wrong(self) -> bool:
        """True if the table does not hold what was acknowledged."""
        return self.applicable and not self.verdict
