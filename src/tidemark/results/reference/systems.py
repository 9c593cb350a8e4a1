"""Pages of the systems: what each consists of, its options, its numbers in every study that measured it, its claims."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.statistics import Estimate
from tidemark.results.reference.artifact import claims_page
from tidemark.results.reference.content import TABLES, folders, read_references
from tidemark.results.tables.table import markdown_grid, read_table, records
from tidemark.systems.base import System

CURRENT = "current"  # the stack of today's releases
INDEX, FOLDER = "docs/systems.md", "docs/systems"
GENERATED = "`./tidemark artifact` makes this page from the system's declarations, the claims and `reference/`."

type Claimed = Mapping[str, Sequence[tuple[str, str, str]]]  # study, id and statement of each claim, by system
type Found = Mapping[str, Sequence[tuple[str, str]]]  # id and title of each finding, by system


@dataclasses.dataclass(frozen=True, slots=True)
class Numbers:
    """The row of a system in the first table of a study's reference results: pairs of heading and value."""

    study: str
    stack: str
    cells: tuple[tuple[str, str], ...]


def system_pages(systems: Mapping[str, type[System]], kept: Path, claimed: Claimed, findings: Found) -> dict[str, str]:
    """Return a page for each of `systems`, and one that lists them all, by path."""
    by_title = _numbers(kept)
    found = {name: by_title.get(system.title, []) for name, system in systems.items()}
    pages = {INDEX: "\n".join(_index(systems, found))}
    for name, system in systems.items():
        lines = _page(name, system, found[name], claimed.get(name, ()), findings.get(name, ()))
        pages[f"{FOLDER}/{name}.md"] = "\n".join(lines)
    return pages


def _numbers(kept: Path) -> dict[str, list[Numbers]]:
    """Return the rows of the first tables of all reference results, by the title of the system."""
    found: dict[str, list[Numbers]] = {}
    for place, reference in zip(folders(kept), read_references(kept), strict=True):
        path = place / TABLES / "matrix.json"
        if not path.is_file() or not reference.tests_claims:
            continue
        matrix = read_table(path)
        for row in records(matrix):
            cells = [(column.title, row[column.key]) for column in matrix.columns]
            shown = tuple((head, estimate_text(cell)) for head, cell in cells if isinstance(cell, Estimate))
            if shown:
                numbers = Numbers(reference.about.study, str(row["stack"]), shown)
                found.setdefault(str(row["system"]), []).append(numbers)
    for own in found.values():
        own.sort(key=lambda each: each.stack != CURRENT)  # today's releases first
    return found


def _index(systems: Mapping[str, type[System]], found: Mapping[str, Sequence[Numbers]]) -> Iterator[str]:
    yield "# The systems\n"
    yield (
        "A system is a format, a client and a catalog together; or a catalog server, or a program that reads a topic "
        f"and writes a table by itself. {GENERATED}\n"
    )
    rows = [
        (
            f"[{system.title}](systems/{name}.md)",
            *(system.format, system.client, system.catalog),
            ", ".join(dict.fromkeys(each.study for each in found[name])),
        )
        for name, system in systems.items()
    ]
    yield markdown_grid(("System", "Format", "Client", "Commit held by", "Numbers of the studies"), rows)
    yield ""


def _page(
    name: str,
    system: type[System],
    found: Sequence[Numbers],
    claimed: Sequence[tuple[str, str, str]],
    findings: Sequence[tuple[str, str]],
) -> Iterator[str]:
    yield f"# {system.title}\n"
    yield (
        f"`{name}` in `config.yaml`. Format: {system.format}. Client: {system.client}. A commit is held by: "
        f"{system.catalog}. {GENERATED} [All systems](../systems.md).\n"
    )
    yield from (f"- {note}" for note in system.notes)
    yield from ("",) if system.notes else ()
    if findings:
        yield "## Findings\n"
        yield from (f"- [{title}](../findings.md#{identity})" for identity, title in findings)
        yield ""
    yield "## Numbers\n"
    if not found:
        yield "There are none in `reference/`: it is not measured by default, or no study's first table has a value.\n"
    for each in found:
        yield f"### {each.study}, stack {each.stack}\n"
        yield markdown_grid(("", "value"), each.cells)
        yield ""
    options = dataclasses.fields(system.Options)
    if options:
        yield "## Options\n"
        rows = [(f"`{each.name}`", f"`{each.default}`", each.metadata.get("help", "")) for each in options]
        yield markdown_grid(("option", "default", "meaning"), rows)
        yield ""
    if claimed:
        yield "## Published claims that name it\n"
        yield from (
            f"- [`{identity}`](../claims/{Path(claims_page(study)).name}#{identity}): {statement}"
            for study, identity, statement in claimed
        )
        yield ""
