"""Rows of a table on the site: where each leads to, and its facets, by which readers filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidemark.analysis.formatting import Cell, number
from tidemark.results.reference.content import RunValues
from tidemark.results.tables.table import Table

OF_ROWS = ("mode", "sweep", "stack", "durability", "state")  # columns that are facets themselves
FACETS = ("format", "client", "catalog", *OF_ROWS)
FEWEST = 5  # rows of a table that has filters


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of a system that tables are filtered by."""

    name: str
    format: str
    client: str
    catalog: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its cells, the address that its first cell leads to (empty if there is none), and its facets."""

    cells: tuple[Cell, ...]
    link: str = ""
    facets: Mapping[str, str] = field(default_factory=dict)


def rows_of(table: Table, systems: Mapping[str, Traits], links: Mapping[str, str]) -> list[Row]:
    """Return the rows of `table` with the facets that differ between them.

    `systems` are by title; `links` are the addresses of systems, by name.
    """
    places = {column.key: place for place, column in enumerate(table.columns)}
    found = [_facets(row, places, systems) for row in table.rows]
    asked = [name for name in FACETS if len({each.get(name) for each in found}) > 1] if len(found) >= FEWEST else []
    rows = []
    for row, facets in zip(table.rows, found, strict=True):
        system = systems.get(str(row[places["system"]])) if "system" in places else None
        link = links.get(system.name, "") if system and table.columns[0].key == "system" else ""
        rows.append(Row(row, link, {name: facets[name] for name in asked if facets.get(name)}))
    return rows


def _facets(row: Sequence[Cell], places: Mapping[str, int], systems: Mapping[str, Traits]) -> dict[str, str]:
    found = {name: str(row[places[name]]) for name in OF_ROWS if name in places and isinstance(row[places[name]], str)}
    system = systems.get(str(row[places["system"]])) if "system" in places else None
    if system:
        found |= {"format": system.format, "client": system.client, "catalog": system.catalog}
    return found


def runs_of(system: str, runs: Sequence[RunValues]) -> tuple[list[str], list[tuple[RunValues, list[str]]]]:
    """Return the names of the values of a system's runs, and each run with these values as text; empty without one."""
    mine = [run for run in runs if run.system == system]
    names = list(dict.fromkeys(name for run in mine for name, _ in run.values))
    return names, [(run, [_text(dict(run.values).get(name)) for name in names]) for run in mine]


def _text(value: float | None) -> str:
    return "" if value is None else number(value, 4)
