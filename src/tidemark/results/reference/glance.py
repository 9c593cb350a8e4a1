"""Results at a glance, for the first page: the rates of each system in a small table without intervals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.formatting import Cell, MissingCell, number
from tidemark.analysis.statistics import Estimate
from tidemark.results.reference.content import TABLES, About, Reference
from tidemark.results.tables.table import markdown_grid, read_table, records
from tidemark.runs.manifest import DEFAULT_DURABILITY
from tidemark.runs.spec import BATCH, SINGLE, TWIN
from tidemark.systems.null import Null

RATES = ("rate_100", "rate")  # of commits 1 to 100; of the window, in results of earlier versions
AGES = (1000, 100)  # commits at which a write is compared with commit 10, the oldest first
DIGITS = 2  # significant, as the first page has no intervals
NONE = "–"
OF_WINDOWS = "Rates are of whole windows: where writes slow down as the table fills, a longer window has a lower rate."


@dataclass(frozen=True, slots=True)
class Panel:
    """A rate of each system, in events/s: `found` has the systems that were measured, by title."""

    title: str
    found: dict[str, Estimate]
    of_window: bool  # the rate depends on the length of the window


@dataclass(frozen=True, slots=True)
class Glance:
    """Content of the first page from `reference`, which is kept in the folder `place`."""

    place: Path
    reference: Reference

    def _records(self, name: str) -> list[dict[str, Cell]]:
        path = self.place / TABLES / f"{name}.json"
        return records(read_table(path)) if path.is_file() else []

    def panels(self) -> list[Panel]:
        """Return the rates with one event per write and in batches, as far as they were measured."""
        return [self._rate(SINGLE, "one event per write"), self._rate(BATCH, self._batches())]

    def systems(self) -> list[str]:
        """Return the titles of the systems, the fastest with one event per write first."""
        rates = self.panels()[0].found
        return sorted(self._column("system"), key=lambda name: -rates[name].value if name in rates else 0.0)

    def alternative(self) -> str:
        """Return the numbers of the picture in words, for those who cannot see it."""
        described = (
            f"{panel.title}: " + ", ".join(f"{name} {number(each.value, DIGITS)}" for name, each in panel.found.items())
            for panel in self.panels()
        )
        return f"Events per second by system, with {'; in '.join(described)}."

    def lines(self) -> Iterator[str]:
        """Yield the table and the origin of its numbers, as Markdown."""
        rates, files = self.panels(), self._column(f"files_{BATCH}")
        growth, grown = self._growth()
        heads = [
            "System",
            *(f"Events/s, {panel.title}" for panel in rates),
            growth,
            "Files per million events, batches",
        ]
        rows = [
            [name, *(_few(panel.found.get(name)) for panel in rates), grown.get(name, NONE), _few(files.get(name))]
            for name in self.systems()
        ]
        header, _, *body = markdown_grid(heads, rows).splitlines()
        yield from (header, f"| --- |{' ---: |' * (len(heads) - 1)}", *body)
        yield from ("", f"*{' '.join(self._origin(rates, files))}*", *self.reference.about.remarks)

    def _origin(self, rates: list[Panel], files: dict[str, Cell]) -> Iterator[str]:
        about = self.reference.about
        days = self.reference.days
        when = f" on {' to '.join(days)}" if days else ""
        machines = " and ".join(re.sub(r" \(identity \w+\)", "", each) for each in about.machines)
        dataset = re.sub(r", sha256 \w+", "", about.dataset)
        yield f"{released(about, about.stacks[-1])}. Measured{when} on {machines}: {about.sizes}; {dataset}."
        widths = [each.half_width_percent for panel in rates for each in panel.found.values() if each.low is not None]
        if widths:
            yield f"The 95 % intervals of the rates are at most ±{max(widths):.0f} %."
        if any(panel.of_window for panel in rates):
            yield OF_WINDOWS
        elif rates:
            yield "Rates: commits 1 to 100, by the time inside the write call, without reading and decoding."
        reasons = dict.fromkeys(each.reason for each in files.values() if isinstance(each, MissingCell))
        yield from (f"{NONE}: {reason}." for reason in reasons)

    def _rate(self, mode: str, title: str) -> Panel:
        for key in RATES:
            found = {name: each for name, each in self._column(f"{key}_{mode}").items() if isinstance(each, Estimate)}
            if found:
                ordered = dict(sorted(found.items(), key=lambda pair: -pair[1].value))
                return Panel(title, ordered, key != RATES[0])
        return Panel(title, {}, of_window=False)

    def _growth(self) -> tuple[str, dict[str, str]]:
        """Return the heading and the cells of the column on growing tables, with one event per write."""
        for age in AGES:
            found = self._column(f"growth_{age}_{SINGLE}")
            if any(isinstance(each, Estimate) for each in found.values()):
                return f"Time of commit {age:,} against commit 10", {name: _times(each) for name, each in found.items()}
        words = {str(row["system"]): str(row["verdict"]) for row in self._records("growth") if row["mode"] == SINGLE}
        return "Write time as the table fills", words

    def _batches(self) -> str:
        modes = [str(row["mode"]) for row in self._records("growth")]
        return next((f"batches {mode.removeprefix('batch ')}" for mode in modes if mode.startswith(BATCH)), "batches")

    def _column(self, key: str) -> dict[str, Cell]:
        """Return the cells of a column of the matrix by system, of its last stack, without twins; empty without it."""
        rows = self._records("matrix")
        found: dict[str, Cell] = {}
        for row in rows:
            other = row["system"] == Null.title or str(row["system"]).endswith(TWIN)
            if key in row and row["stack"] == rows[-1]["stack"] and not other:
                level = row["durability"]
                found[f"{row['system']}{'' if level == DEFAULT_DURABILITY else f', durability {level}'}"] = row[key]
        return found


def released(about: About, stack: str, other: About | None = None) -> str:
    """Return the programs of `stack` with their releases; if `other` is given, those that its first stack lacks."""
    there = {} if other is None else _releases(other, other.stacks[0])
    mine = _releases(about, stack)
    chosen = {name: release for name, release in mine.items() if there.get(name) != release}
    named = (
        f"{program} {release}" + (f" (above {there[program]})" if program in there else "")
        for program, release in chosen.items()
    )
    return ", ".join(named) or "those above"


def _releases(about: About, stack: str) -> dict[str, str]:
    """Return releases by program name, ignoring case; a version without a dot is a revision, not a release."""
    found: dict[str, tuple[str, str]] = {}
    for each in about.versions:
        if each.stack == stack and "." in each.version:
            found.setdefault(each.program.lower(), (each.program, each.version))
    return dict(found.values())


def _few(cell: Cell) -> str:
    return number(cell.value, DIGITS) if isinstance(cell, Estimate) else NONE


def _times(cell: Cell) -> str:
    if not isinstance(cell, Estimate):
        return NONE
    return "no change found" if cell.contains(1) else f"{number(cell.value, DIGITS)} times"
