"""Ledger of releases: what changed from each release of a client to the next, in counts and in rates, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tidemark.analysis.formatting import estimate_text, listed, number
from tidemark.analysis.statistics import Estimate
from tidemark.results.reference.anatomy import NONE
from tidemark.results.reference.releases import anchor
from tidemark.results.tables.table import markdown_grid
from tidemark.runs.anatomy import Anatomy, JsonFile

FOLDER = "releases"  # of the reference results: SYSTEM.json
PAGE = "docs/releases/ledger.md"  # the page's place among the documents, from which its address on the site follows
UNCHANGED = "none"
WITHIN = "within the noise floor"
INTRODUCTION = """# Release by release

What changed from each release of a client to the next, with all other packages of a stack as they are. Counts of a
commit are exact. Rates are measured in rounds, in each of which every release writes in its own environment, in random
order; a ratio is of the same rounds, with its 95 % interval. The noise floor is how far one release differs from
itself: the last one is measured a second time, in another environment with the same packages.

**A change point** is a release whose interval excludes 1 by more than the noise floor. A change that the floor can hide
is said to be within it. [How a number is made](../method.md) says why there is no test over the series of releases."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Rate with one release in one mode, over that with the release before, and with the first one.

    `verdict` is on `ratio`, the one to the release before; the first release has neither. `reason`: why a number is
    absent.
    """

    mode: str
    value: Estimate | None = None
    ratio: Estimate | None = None
    over_first: Estimate | None = None
    verdict: str = ""
    reason: str = ""
    is_change: bool = False  # by more than the noise floor


@dataclass(frozen=True, slots=True)
class Release:
    """One release; `counts` is None if it could not be counted, for `reason`.

    `other_packages` are those that differ from the stack of the release before, in words.
    """

    version: str
    counts: Anatomy | None = None
    reason: str = ""
    other_packages: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Circumstances of the rates; `floors` is the noise floor by mode, in per cent."""

    quantity: str
    rounds: int
    days: tuple[str, ...]
    machines: tuple[str, ...]
    dataset: str
    floors: dict[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleaseLedger(JsonFile):
    """Releases of a system's client, oldest first; `measured` is None if they were only counted."""

    called: ClassVar[str] = "a ledger of releases"

    system: str
    title: str
    package: str
    releases: tuple[Release, ...]
    measured: Measured | None = None
    stack: str = "current"  # which has all other packages

    @property
    def counted(self) -> list[Release]:
        return [each for each in self.releases if each.counts is not None]

    def heads(self) -> list[str]:
        """Return the heads of the table."""
        heads = ["Release", "Counts of a commit that changed"]
        if self.measured is not None:
            heads += ["Mode", self.measured.quantity, "Over the release before", "Verdict", "Over the first"]
        return heads

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows of the table: one for each release and mode."""
        before: Anatomy | None = None
        for release in self.releases:
            changed = NONE if before is None else UNCHANGED
            if release.counts is None:
                changed = f"not counted: {release.reason}"
            elif before is not None:
                changed = "; ".join(release.counts.differences(before, "before")) or changed
            first = [f"{self.package} {release.version}", changed]
            rates = [_cells(each) for each in release.rates] if self.measured is not None else [[]]
            for place, cells in enumerate(rates or [[NONE] * 5]):
                yield [*(first if place == 0 else ["", ""]), *cells]
            before = release.counts or before

    def notes(self) -> Iterator[str]:
        """Yield in sentences how the rates were measured, and what else differs between releases."""
        if self.measured is not None:
            of = self.measured
            machine = listed([each.rpartition(" (identity")[0] or each for each in of.machines])
            yield f"Measured on {' to '.join(of.days)} in {of.rounds} rounds: {machine}; {of.dataset}."
            floors = [f"{number(floor, 2)} % ({mode})" for mode, floor in of.floors.items()]
            yield f"Noise floor: {listed(floors) or 'not measured'}."
            changes = [
                f"{release.version} ({rate.mode}: {rate.verdict})"
                for release in self.releases
                for rate in release.rates
                if rate.is_change
            ]
            yield f"Change points: {listed(changes) or 'none'}."
            yield from of.remarks
        for release in self.releases:
            if release.other_packages:
                yield f"The stack of {release.version} has besides: {', '.join(release.other_packages)}."


def _cells(rate: Rate) -> list[str]:
    numbers = (rate.value, rate.ratio, rate.over_first)
    value, ratio, over_first = (estimate_text(each) if each else NONE for each in numbers)
    return [rate.mode, value, ratio, rate.verdict or rate.reason or NONE, over_first]


def exceeds(ratio: Estimate, floor: float) -> bool:
    """Return True if the interval of a ratio excludes 1 by more than `floor`, in per cent of the smaller."""
    return ratio.is_above(1 + floor / 100) or ratio.is_below(1 / (1 + floor / 100))


def kept_ledgers(kept: Path) -> list[ReleaseLedger]:
    """Return the ledgers in `kept`, the reference results, by system; raise ConfigError if one cannot be read."""
    return [ReleaseLedger.read(path) for path in sorted((kept / FOLDER).glob("*.json"))]


def ledger_page(ledgers: Sequence[ReleaseLedger]) -> Iterator[str]:
    """Yield the lines of the page of `ledgers`."""
    yield INTRODUCTION
    for each in ledgers:
        versions = " ".join(release.version for release in each.releases)
        counts = ("" if each.stack == "current" else f" --stack {each.stack}") + ("" if each.measured else " --counts")
        yield from ("", f'<h2 id="{anchor(each.title)}">{each.title}</h2>', "")
        yield markdown_grid(each.heads(), each.rows())
        yield from ("", *(f"- {note}" for note in each.notes()))
        yield from ("", "Measure it again:" if each.measured else "Count it again:", "")
        yield from ("```", f"./tidemark releases {each.system} {versions}{counts}", "```")
