"""Reference results as the pages of the site show them: claims sorted, numbers as text, machines with an anchor."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tidemark.analysis.formatting import Cell, MissingCell, estimate_text, shown
from tidemark.analysis.statistics import Estimate
from tidemark.results.claims.claims import INCONCLUSIVE, NOT_TESTABLE, REPRODUCED, VERDICTS
from tidemark.results.claims.judge import counts_text
from tidemark.results.reference.content import TABLES, About, Held, Reference
from tidemark.results.tables.table import Table, read_table

IDENTITY = re.compile(r" \(identity (\w+)\)")
LATER = {INCONCLUSIVE: 1, REPRODUCED: 2, NOT_TESTABLE: 3}  # verdicts that surprise less than others


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Results of a study in the folder `address` of the site; `first` are its systems with the usual columns."""

    address: str
    place: Path
    title: str
    question: str
    reference: Reference
    first: Table | None

    @property
    def about(self) -> About:
        return self.reference.about

    @property
    def anchor(self) -> str:
        return self.address.replace("/", "-")

    @property
    def measured(self) -> str:
        return " to ".join(self.reference.days) or "not recorded"

    @property
    def command(self) -> str:
        """Return the command that measures the same again."""
        about = self.about
        words = [f"studies=[{about.study}]", f"protocol={about.protocols[0]}", f"stacks=[{', '.join(about.stacks)}]"]
        return f"./tidemark all --config {shlex.join(words)}"

    @property
    def counts(self) -> dict[str, str]:
        """Return the number of claims by verdict, as text, for each stack."""
        made = {}
        for stack in self.about.stacks:
            found = Counter(held.verdict for held in self.reference.held if held.stack == stack)
            named = {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}
            made[stack] = counts_text(named) or "no claims"
        return made

    @property
    def claims(self) -> list[Held]:
        """Return the claims, surprises first."""
        return sorted(self.reference.held, key=lambda held: LATER.get(held.verdict, 0))

    def tables(self) -> Iterator[Table]:
        """Read its tables, that of its systems first."""
        for path in sorted((self.place / TABLES).glob("*.json"), key=lambda path: (path.stem != "matrix", path.stem)):
            yield read_table(path)

    def entry(self) -> Mapping[str, object]:
        """Return its entry in the index of the site."""
        names = {table.name: table.title for table in self.tables()}
        below = f"{self.address}/{TABLES}"
        return {
            "address": f"{self.address}/index.html",
            "results": f"{self.address}/reference.json",
            "measured": list(self.reference.days),
            **asdict(self.about),
            "tables": [
                {"name": name, "title": title, "csv": f"{below}/{name}.csv", "json": f"{below}/{name}.json"}
                for name, title in names.items()
            ],
        }


def here(held: Held) -> str:
    """Return our value for a claim, or the reason for which there is none."""
    return held.reason or "" if held.ours is None else estimate_text(held.ours)


def cell_parts(cell: Cell, unit: str) -> tuple[str, str, bool]:
    """Return the text of a cell, its interval in brackets, and True if it has a reason in place of a value."""
    if isinstance(cell, MissingCell):
        return cell.reason, "", True
    text = shown(cell, unit)
    value, bracket, interval = text.partition(" [") if isinstance(cell, Estimate) else (text, "", "")
    return value, bracket.strip() + interval, False


def without_identity(machine: str) -> str:
    """Return the description of a machine without its identity."""
    return IDENTITY.sub("", machine)


def identity(machine: str) -> str:
    """Return the anchor of a machine by its description: its identity, if it has one."""
    found = IDENTITY.search(machine)
    return found[1] if found else re.sub(r"\W+", "-", machine.lower())
