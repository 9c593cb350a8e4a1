"""Tables for the paper: cells as text, and columns split into blocks that fit the page width."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tidemark.analysis.formatting import MissingCell, brief, shown
from tidemark.results.tables.table import OF_SWEEPS, REPEAT, RUN, parsed_cell

# Columns that identify a row and are repeated in every block, including the position in the plan.
IDENTITY = {"position", "stack", *(column.key for column in (*OF_SWEEPS, RUN))}
LINE = 138  # characters across the page at the size of the appendix's tables
WIDE = 0.6  # share of LINE; a wider block takes the full page width, with columns as wide as their content
GAP = 2  # characters between two columns
TEXT = 26  # characters at which a text column wraps
NUMBERED = "table-"  # name prefix of tables from a publication: they keep a row for each run of a series
MOST_WORDS = 3  # different values listed in one merged cell


def without_runs(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `table` with the rows of equivalent runs merged: rows per run and repeat would grow without limit.

    Rows are equivalent if all columns before the run column, and text columns directly after it, are equal.
    """
    keys = [column["key"] for column in table["columns"]]
    pivot = next((keys.index(key) for key in (RUN.key, REPEAT.key) if key in keys), None)
    if pivot is None:
        return table
    numbered = table["name"].startswith(NUMBERED)
    numbers = [any(_quantity(row[place]) for row in table["rows"]) for place in range(len(keys))]
    words = next((place for place in range(pivot + 1, len(keys)) if numbers[place]), len(keys))
    differ = {REPEAT.key, "position", *([] if numbered else [RUN.key])}
    alike = [place for place in range(words) if keys[place] not in differ]
    groups: dict[str, list[list[Any]]] = {}
    for row in table["rows"]:
        groups.setdefault(json.dumps([row[place] for place in alike]), []).append(row)
    if len(groups) == len(table["rows"]):
        return table
    units = [column["unit"] for column in table["columns"]]
    rows = [[_merged(cells, unit) for cells, unit in zip(zip(*group, strict=True), units, strict=True)]
            for group in groups.values()]  # fmt: skip
    columns = [dict(column) for column in table["columns"]]
    counted = keys.index(REPEAT.key) if numbered and REPEAT.key in keys else pivot
    columns[counted]["title"] += "s"
    for row, group in zip(rows, groups.values(), strict=True):
        row[counted] = len(group) if any(each[pivot] is not None for each in group) else None
    if not numbered and REPEAT.key in keys:  # the row covers all repeats
        for row in rows:
            row[keys.index(REPEAT.key)] = None
    kind = "repeats of a run" if numbered else "runs that are alike in its first columns"
    note = (
        f"A row is of all {kind}: numbers are the least and the greatest. {table['name']}.csv, among the tables of the "
        "results, has a row for each run."
    )
    return {**table, "columns": columns, "rows": rows, "notes": [note, *table["notes"]]}


def _quantity(cell: Any) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, dict) and "value" in cell)


def _merged(cells: Sequence[Any], unit: str) -> Any:
    """Merge several cells into one: their common value, their range, or a list of the different texts."""
    there = [cell for cell in cells if cell is not None and not (isinstance(cell, dict) and "missing" in cell)]
    if not there:
        return next((cell for cell in cells if cell is not None), None)
    if len(there) == 1 or all(cell == there[0] for cell in there):
        return there[0]
    if all(map(_quantity, there)):
        values = [cell["value"] if isinstance(cell, dict) else cell for cell in there]
        known = [value for value in values if value is not None]
        ends = dict.fromkeys(shown(end, unit, 3) for end in (min(known), max(known))) if known else {}
        return " to ".join(ends) or None
    different = list(dict.fromkeys(map(str, there)))
    more = len(different) - MOST_WORDS
    return "; ".join(different[:MOST_WORDS]) + (f"; and {more} others" if more > 0 else "")


def sheet(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with its cells as text, without empty columns; reasons for missing values become notes."""
    reasons: list[str] = []

    def text(cell: Any, unit: str) -> str:
        parsed = None if isinstance(cell, dict) and cell.get("value", "") is None else parsed_cell(cell)
        if not isinstance(parsed, MissingCell):
            return shown(parsed, unit, 3)
        reason = brief(parsed.reason)
        if reason not in reasons:
            reasons.append(reason)
        return f"– ({reasons.index(reason) + 1})"

    units = [column["unit"] for column in table["columns"]]
    rows = [[text(*pair) for pair in zip(row, units, strict=True)] for row in table["rows"]]
    kept = [place for place in range(len(table["columns"])) if not rows or any(row[place] for row in rows)]
    heads = [table["columns"][place] for place in kept]
    titles = [f"{head['title']} ({head['unit']})" if head["unit"] else head["title"] for head in heads]
    numeric = [all(_is_number(row[place]) for row in table["rows"]) for place in kept]
    cells = [[row[place] for place in kept] for row in rows]
    widths = [
        _width(title, [row[place] for row in cells], number)
        for place, (title, number) in enumerate(zip(titles, numeric, strict=True))
    ]
    keys = _identity([head["key"] for head in heads])
    return {
        "name": table["name"],
        "title": table["title"],
        "blocks": [
            {
                "heads": [titles[place] for place in places],
                "widths": [widths[place] for place in places],
                "wide": sum(widths[place] for place in places) > LINE * WIDE,
                "numeric": [numeric[place] for place in places],
                "rows": [[row[place] for place in places] for row in cells],
            }
            for places in blocks(widths, keys)
        ],
        "notes": [*table["notes"], *(f"({place}) {reason}." for place, reason in enumerate(reasons, 1))],
    }


def blocks(widths: Sequence[int], keys: int) -> list[list[int]]:
    """Return column indices per block: the first `keys` in each, the others in order, with balanced block widths."""
    fewest = len(_filled(widths, keys, LINE))
    candidates = (_filled(widths, keys, line) for line in range(min(LINE, max(widths, default=0)), LINE + 1))
    return next(found for found in candidates if len(found) == fewest)


def _filled(widths: Sequence[int], keys: int, line: int) -> list[list[int]]:
    made = [list(range(keys))]
    left = room = line - sum(widths[:keys])
    for place in range(keys, len(widths)):
        if widths[place] > left and len(made[-1]) > keys:
            made.append(list(range(keys)))
            left = room
        made[-1].append(place)
        left -= widths[place]
    return made


def _identity(keys: Sequence[str]) -> int:
    """Return the number of leading columns that identify a row, at least 1."""
    count = next((place for place, key in enumerate(keys) if key not in IDENTITY), len(keys))
    return max(count, 1)


def _width(title: str, cells: Sequence[str], numeric: bool) -> int:
    """Return the width of a column in characters; titles and long texts wrap between words."""
    words = max((len(word) for word in title.split()), default=0)
    longest = max(map(len, cells), default=0)
    if not numeric:
        token = max((len(word) for cell in cells for word in cell.split()), default=0)
        longest = min(longest, max(TEXT, token))
    return max(words, -(-len(title) // 3), longest) + GAP


def _is_number(cell: object) -> bool:
    return cell is None or isinstance(cell, int | float | dict)
