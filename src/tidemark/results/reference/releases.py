"""Page on releases: each system with those of two stacks, what was measured of it, and the counts of one commit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tidemark.analysis.formatting import Cell, estimate_text
from tidemark.analysis.statistics import Estimate
from tidemark.results.reference.anatomy import COUNTS, NONE, cells, kept_counts
from tidemark.results.reference.content import TABLES
from tidemark.results.reference.front import MATRIX
from tidemark.results.tables.table import Table, markdown_grid, read_table, records
from tidemark.runs.anatomy import Anatomy

THEN_AND_NOW, RATIO = "then-and-now", "_ratio"
SAME, TRIPS = "same", "Round trips in series of a commit"

type Compared = dict[str, list[dict[str, Cell]]]  # rows of the table then-and-now by system, one for each mode


def releases_page(place: Path, kept: Path) -> Iterator[str]:
    """Yield the lines of the page, from the results in the folder `place` and the counts of commits in `kept`.

    There are none if no system was measured with two stacks.
    """
    path = place / TABLES / f"{THEN_AND_NOW}.json"
    if not path.is_file():
        return
    table, matrix = read_table(path), read_table(place / TABLES / f"{MATRIX}.json")
    compared: Compared = {}
    for row in records(table):
        compared.setdefault(str(row["system"]), []).append(row)
    counted = {(each.title, each.stack): each for each in kept_counts(kept) if not each.options}
    pairs = {title: _pair(counted, rows[0]) for title, rows in compared.items()}
    yield from _glance(compared, pairs)
    for title, rows in compared.items():
        yield from ("", f'<h2 id="{anchor(title)}">{title}</h2>', "")
        if pairs[title]:
            yield from (f"{_releases(pairs[title])}.", "")
        heads = ["", str(rows[0]["then"]), str(rows[0]["now"]), "now / then"]
        yield markdown_grid(heads, [*_measured(table, matrix, rows), *_counts(pairs[title])])


def anchor(heading: str) -> str:
    """Return the anchor that forges give a heading."""
    return re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-")


def _pair(counted: Mapping[tuple[str, str], Anatomy], row: Mapping[str, Cell]) -> tuple[Anatomy, ...]:
    """Return the counts of a system with both stacks; empty unless both were kept."""
    found = [counted.get((str(row["system"]), str(row[when]))) for when in ("then", "now")]
    return tuple(each for each in found if each) if all(found) else ()


def _glance(compared: Compared, pairs: Mapping[str, Sequence[Anatomy]]) -> Iterator[str]:
    modes = list(dict.fromkeys(str(row["mode"]) for rows in compared.values() for row in rows))
    rows = []
    for title, of_modes in compared.items():
        verdicts = {str(row["mode"]): str(row["verdict"]) for row in of_modes}
        counted = {name: then if then == now else f"{then}; now {now}" for name, then, now, _ in _counts(pairs[title])}
        found = [_releases(pairs[title]) or NONE, *(verdicts.get(mode, NONE) for mode in modes)]
        rows.append([f"[{title}](#{anchor(title)})", *found, counted.get(TRIPS, NONE)])
    yield markdown_grid(["System", "Releases", *(f"Writes now, {mode}" for mode in modes), TRIPS], rows)


def _releases(pair: Sequence[Anatomy]) -> str:
    """Return the client's programs with both releases; a version without a dot is a revision, not a release."""
    if not pair:
        return ""
    then, now = pair
    named = []
    for name, old in then.versions.items():
        new = now.versions.get(name, NONE)
        if "." in old:
            named.append(f"{name} {old} in both" if old == new else f"{name} {old} → {new}")
    return ", ".join(named)


def _measured(table: Table, matrix: Table, rows: Sequence[Mapping[str, Cell]]) -> Iterator[list[str]]:
    """Yield a row for each quantity and mode that the table of systems has under both stacks."""
    columns = {column.key: column for column in matrix.columns}
    values: dict[tuple[str, str], dict[str, Cell]] = {}
    for each in records(matrix):
        values.setdefault((str(each["system"]), str(each["stack"])), each)
    for row in rows:
        mode = str(row["mode"]).split()[0]
        for ratio in (column.key for column in table.columns if column.key.endswith(RATIO)):
            column = columns.get(f"{ratio.removesuffix(RATIO)}_{mode}")
            if column is not None:
                both = (values.get((str(row["system"]), str(row[when])), {}) for when in ("then", "now"))
                yield [column.title, *(_text(each.get(column.key)) for each in both), _text(row[ratio])]


def _counts(pair: Sequence[Anatomy]) -> Iterator[list[str]]:
    """Yield the name of each count of a commit, both counts, and SAME if they are equal."""
    if pair:
        for name, then, now in zip(COUNTS, *map(cells, pair), strict=True):
            if (then, now) != (NONE, NONE):
                yield [f"{name} of a commit", then, now, SAME if then == now else ""]


def _text(cell: Cell) -> str:
    return estimate_text(cell) if isinstance(cell, Estimate) else NONE
