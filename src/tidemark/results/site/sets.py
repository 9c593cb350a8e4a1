"""Result sets as the pages of the site show them: claims sorted, numbers as text, machines with an anchor."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tidemark.analysis.formatting import Cell, MissingCell, estimate_text, shown
from tidemark.analysis.statistics import Estimate
from tidemark.results.claims.claims import INCONCLUSIVE, NOT_TESTABLE, REPRODUCED, UNTESTED
from tidemark.results.reference.content import TABLES, About, Held, Reference, RunValues
from tidemark.results.reference.front import verdicts
from tidemark.results.site.rows import Row, Traits, rows_of
from tidemark.results.tables.table import Table, read_table
from tidemark.schema import sections

IDENTITY = re.compile(r" \(identity (\w+)\)")
LATER = {INCONCLUSIVE: 1, REPRODUCED: 2, UNTESTED: 3, NOT_TESTABLE: 4}  # verdicts that surprise less than others
DIGITS = 12  # of a SHA-256, in an address


@dataclass(frozen=True, slots=True)
class ResultSet:
    """Results of a study in the folder `address` of the site; `first` are its systems with the usual columns.

    `permanent` is the address that these results keep when newer ones take their place; None for those of an archive,
    whose address never changes. `newest` is the address of the newest results of the study if this one is permanent.
    `listed` is the address under which the pages of machines and releases name them. `run_files` are the addresses of
    the run.json of each run, by study, system, mode, stack, sweep, repeat and run.
    """

    address: str
    place: Path
    title: str
    question: str
    reference: Reference
    first: Table | None
    listed: str
    systems: Mapping[str, Traits]  # by title, those that Tidemark knows
    units: Mapping[str, str]  # of the values of runs, by name
    permanent: str | None = None
    newest: str | None = None
    earlier: Mapping[str, str] = field(default_factory=dict)  # days by address, of the same study, the newest first
    run_files: Mapping[tuple[str | int, ...], str] = field(default_factory=dict)

    @property
    def about(self) -> About:
        return self.reference.about

    @property
    def anchor(self) -> str:
        return self.listed.replace("/", "-")

    @property
    def is_archived(self) -> bool:
        return self.permanent is None

    @property
    def measured(self) -> str:
        return " to ".join(self.reference.days) or "not recorded"

    @property
    def command(self) -> str:
        """Return the command that measures the same again."""
        about = self.about
        words = [f"studies=[{about.study}]", f"protocol={about.protocols[0]}", f"stacks=[{', '.join(about.stacks)}]"]
        return f"./tidemark all --config {shlex.join(words)}"

    def command_of(self, system: str) -> str:
        """Return the command that measures one system again."""
        known = sections()[self.about.study]["properties"]
        if "systems" not in known:
            return self.command
        options = known["systems"].get("default", {}).get(system, {})
        return f"{self.command} {shlex.quote(f'{self.about.study}.systems={json.dumps({system: options})}')}"

    @property
    def measured_systems(self) -> dict[str, str]:
        """Return the titles of the systems whose runs have a page, by name."""
        titles = {traits.name: title for title, traits in self.systems.items()}
        return {run.system: titles.get(run.system, run.system) for run in self.reference.runs}

    def rows(self, table: Table) -> list[Row]:
        """Return the rows of a table; the names of systems lead to their runs."""
        links = {name: f"{self.address}/runs/{name}.html" for name in self.measured_systems}
        return rows_of(table, self.systems, links)

    def file_of(self, run: RunValues) -> str:
        """Return the address of the run.json of a run; empty if the site does not have it."""
        which = self.about.study, run.system, run.mode, run.stack, run.sweep, run.repeat, run.run
        return self.run_files.get(which, "")

    @property
    def counts(self) -> dict[str, str]:
        """Return the number of claims by verdict, as text, for each stack."""
        return {stack: verdicts(self.reference, stack) or "no claims" for stack in self.about.stacks}

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
            "permanent": f"{self.permanent or self.address}/index.html",
            "results": f"{self.address}/reference.json",
            "measured": list(self.reference.days),
            **asdict(self.about),
            "tables": [
                {"name": name, "title": title, "csv": f"{below}/{name}.csv", "json": f"{below}/{name}.json"}
                for name, title in names.items()
            ],
        }


def permanent_address(study: str, reference: Reference) -> str:
    """Return the address that results keep: their study's, with their first day and the archive they were made from.

    The archive stands in it, as code may be measured with more than once a day.
    """
    about = reference.about
    origin = (about.archive or about.harnesses[0])[:DIGITS]
    return f"{study}/{'-'.join((*reference.days[:1], origin))}"


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
