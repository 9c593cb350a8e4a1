"""Reference results as the pages of the site show them: numbers formatted, claims sorted, machines with an anchor."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.formatting import Cell, MissingCell, estimate_text, shown
from tidemark.analysis.statistics import Estimate
from tidemark.results.claims.claims import NOT_TESTABLE, REPRODUCED, VERDICTS
from tidemark.results.claims.judge import counts_text
from tidemark.results.reference.content import TABLES, About, Figure, Held, Reference
from tidemark.results.tables.table import Table, read_table

MOST_CELLS = 3_000  # that a page shows of a table: about 200 kB
IDENTITY = re.compile(r" \(identity (\w+)\)")


@dataclass(frozen=True, slots=True)
class ShownCell:
    text: str
    interval: str
    missing: bool


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table with its cells as text. `whole` is the number of rows that it has, and `runs` of those behind it."""

    name: str
    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[ShownCell, ...], ...]
    notes: tuple[str, ...]
    dataset: str
    whole: int
    runs: int

    @classmethod
    def of(cls, table: Table) -> ShownTable:
        units = [column.unit for column in table.columns]
        chosen = table.rows[: max(MOST_CELLS // len(units), 1)]
        rows = tuple(tuple(_cell(cell, unit) for cell, unit in zip(row, units, strict=True)) for row in chosen)
        heads = tuple(column.heading for column in table.columns)
        return cls(
            table.name, table.title, heads, rows, table.notes, table.dataset, len(table.rows), len(table.sources)
        )


def _cell(cell: Cell, unit: str) -> ShownCell:
    if isinstance(cell, MissingCell):
        return ShownCell(cell.reason, "", missing=True)
    text = shown(cell, unit)
    value, bracket, interval = text.partition(" [") if isinstance(cell, Estimate) else (text, "", "")
    return ShownCell(value, bracket.strip() + interval, missing=False)


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A claim under a stack; `here` is our value, or the reason for which there is none."""

    claim: str
    stack: str
    statement: str
    published: str
    verdict: str
    here: str

    @classmethod
    def of(cls, held: Held) -> ShownClaim:
        here = held.reason or "" if held.ours is None else estimate_text(held.ours)
        return cls(held.claim, held.stack, held.statement, held.published, held.verdict, here)


@dataclass(frozen=True, slots=True)
class ShownStack:
    name: str
    counts: str  # of claims by verdict


@dataclass(frozen=True, slots=True)
class ShownMachine:
    words: str
    anchor: str


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Results of a study in the folder `address` of the site; `first` are its systems with the usual columns."""

    address: str
    place: Path
    title: str
    question: str
    reference: Reference
    first: ShownTable | None

    @property
    def about(self) -> About:
        return self.reference.about

    @property
    def anchor(self) -> str:
        return self.address.replace("/", "-")

    @property
    def figure(self) -> Figure | None:
        return self.reference.figure

    @property
    def measured(self) -> str:
        return " to ".join(self.reference.days) or "on a day that was not recorded"

    @property
    def machines(self) -> list[ShownMachine]:
        return [machine(words) for words in self.about.machines]

    @property
    def command(self) -> str:
        """Return the command that measures the same again."""
        words = [f"studies=[{self.about.study}]", f"protocol={self.about.protocols[0]}"]
        words.append(f"stacks=[{', '.join(self.about.stacks)}]")
        return f"./tidemark all --config {shlex.join(words)}"

    @property
    def stacks(self) -> list[ShownStack]:
        made = []
        for stack in self.about.stacks:
            counts = Counter(held.verdict for held in self.reference.held if held.stack == stack)
            named = {verdict: counts[verdict] for verdict in (*VERDICTS, *counts) if counts[verdict]}
            made.append(ShownStack(stack, counts_text(named) or "no claims"))
        return made

    @property
    def claims(self) -> list[ShownClaim]:
        """Return the claims, surprises first."""
        order = {REPRODUCED: 1, NOT_TESTABLE: 2}
        return [
            ShownClaim.of(held) for held in sorted(self.reference.held, key=lambda each: order.get(each.verdict, 0))
        ]

    def read_tables(self) -> Iterator[Table]:
        for path in sorted((self.place / TABLES).glob("*.json"), key=lambda path: (path.stem != "matrix", path.stem)):
            yield read_table(path)

    def entry(self, tables: list[ShownTable]) -> Mapping[str, object]:
        """Return its entry in index.json."""
        about = self.about
        return {
            "study": about.study,
            "address": f"{self.address}/index.html",
            "measured": list(self.reference.days),
            "machines": list(about.machines),
            "protocols": list(about.protocols),
            "stacks": list(about.stacks),
            "dataset": about.dataset,
            "measured_by": list(about.harnesses),
            "archive_sha256": about.archive,
            "results": f"{self.address}/reference.json",
            "tables": [
                {"name": table.name, "title": table.title, "csv": f"{base}.csv", "json": f"{base}.json"}
                for table in tables
                for base in [f"{self.address}/{TABLES}/{table.name}"]
            ],
        }


def machine(words: str) -> ShownMachine:
    """Return a machine as pages show it, from its description; the anchor is its identity."""
    found = IDENTITY.search(words)
    return ShownMachine(IDENTITY.sub("", words), found[1] if found else re.sub(r"\W+", "-", words.lower()))
