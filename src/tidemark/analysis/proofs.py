"""What run.json says to show that a run is what it claims: how cold it was, and what the oracle found."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.analysis.fields import Fields


@dataclass(frozen=True, slots=True)
class Residency:
    group: str
    bytes: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class ColdProof:
    """How much of the files that a run needs was in the page cache, before servers start or at the opening.

    Groups that stand `apart` (the broker and its topic, which are meant to be in memory in all runs) decide nothing.
    """

    method: str
    boot_id: str
    uptime_s: float
    residency: tuple[Residency, ...]
    verdict: str
    reason: str
    cpu_mhz: float | None
    temperature_c: float | None
    apart: tuple[str, ...]

    @property
    def resident_share(self) -> float | None:
        """Of the bytes of all groups that decide, how many were in the page cache; None if there were none."""
        counted = [group for group in self.residency if group.group not in self.apart]
        whole = sum(group.bytes for group in counted)
        return sum(group.resident_bytes for group in counted) / whole if whole else None

    @classmethod
    def parse(cls, f: Fields) -> ColdProof:
        groups = f.part("residency")
        residency = tuple(
            Residency(name, groups.part(name).integer("bytes"), groups.part(name).integer("resident_bytes"))
            for name in groups.names()
        )
        return cls(
            f.text("method"),
            f.text("boot_id"),
            f.number("uptime_s"),
            residency,
            f.text("verdict"),
            f.text("reason", ""),
            f.maybe_number("cpu_mhz"),
            f.maybe_number("temperature_c"),
            f.texts("apart"),
        )


@dataclass(frozen=True, slots=True)
class Oracle:
    verdict: bool
    applicable: bool
    expected: int
    found: int
    missing: int
    duplicated: int
    unexpected: int
    reader: str

    @classmethod
    def parse(cls, f: Fields) -> Oracle:
        return cls(
            verdict=f.flag("verdict"),
            applicable=f.flag("applicable", True),
            expected=f.integer("expected"),
            found=f.integer("found"),
            missing=f.integer("missing"),
            duplicated=f.integer("duplicated"),
            unexpected=f.integer("unexpected"),
            reader=f.text("reader"),
        )
