"""What run.json says to show that a run is what it claims: how cold it was, and what the oracle found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tidemark.runs.coding.shapes import Pairs


class Verdict(StrEnum):
    """What a proof of cold says."""

    COLD = "cold"
    LUKEWARM = "lukewarm"
    HOT = "hot"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Residency:
    """Of one group of files: how many bytes there are, and how many of them are in memory."""

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
    """How much of the files that a run needs was in the page cache, before servers start or at the opening.

    Groups that stand `apart` (the broker and its topic, which are meant to be in memory in all runs) are listed and
    decide nothing.
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
        """Of the bytes of all groups that decide, how many were in the page cache; None if there were none."""
        whole = Residency.together(found for name, found in self.residency if name not in self.apart)
        return whole.share if whole.bytes else None


@dataclass(frozen=True, slots=True)
class Oracle:
    """What a reader found in the table, against the ids 0 .. expected - 1 that were acknowledged."""

    verdict: bool
    applicable: bool  # False for a system that stores nothing: then there is nothing to hold it to
    expected: int
    found: int
    missing: int
    duplicated: int
    unexpected: int
    reader: str
    seconds: float
    commits: int | None = None  # of the window, by the table's history; None where none is kept
