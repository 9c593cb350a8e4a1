"""Comparison of query answers: rows in any order, numbers within the precision of their types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

# Engines differ in the type of an average of decimals: one of them rounds it to six decimal places.
RELATIVE, ABSOLUTE = 1e-6, 1e-6
SORTED_DIGITS = 4  # significant digits by which rows are sorted, so that nearly equal rows stay adjacent
type Value = str | float | None
type Answer = list[tuple[Value, ...]]


def plain(value: Any) -> Value:
    """Return a value of an answer: numbers as float, all else as text without the trailing spaces of fixed lengths."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value).rstrip()


def numeric(rows: Sequence[Sequence[Any]]) -> frozenset[int]:
    """Return the indexes of the columns with numbers, from the values of an engine that returns numbers as such."""
    return frozenset(place for row in rows for place, value in enumerate(row) if isinstance(plain(value), float))


def canonical(rows: Sequence[Sequence[Any]], numbers: frozenset[int] = frozenset()) -> Answer:
    """Return the rows of an answer in a canonical order, which does not depend on the last digits of a number.

    `numbers`: the indexes of columns whose values are numbers, even if they are given as text.
    """
    made = (tuple(_value(value, place in numbers) for place, value in enumerate(row)) for row in rows)
    return sorted(made, key=_place)


def _value(value: Any, is_number: bool) -> Value:
    return float(value) if is_number and isinstance(value, str) else plain(value)


def _place(row: tuple[Value, ...]) -> tuple[tuple[int, float, str], ...]:
    """Return the sort key: text first, then numbers by their leading digits, so that rounding keeps the order."""
    texts = [(0, 0.0, value) if isinstance(value, str) else (1, 0.0, "") for value in row if not _is_number(value)]
    numbers = [(0, float(f"{value:.{SORTED_DIGITS}g}"), "") for value in row if isinstance(value, float)]
    exact = [(0, value, "") for value in row if isinstance(value, float)]
    return (*texts, *numbers, *exact)


def _is_number(value: Value) -> bool:
    return isinstance(value, float)


def difference(expected: Answer, found: Answer) -> str:
    """Return how two canonical answers differ, in words; empty if they do not."""
    if len(expected) != len(found):
        return f"{len(found):,} rows of {len(expected):,}"
    wrong = [place for place, pair in enumerate(zip(expected, found, strict=True)) if not _alike(*pair)]
    if not wrong:
        return ""
    first = wrong[0]
    return f"{len(wrong):,} of {len(expected):,} rows differ, the first: {found[first]} for {expected[first]}"


def _alike(expected: tuple[Value, ...], found: tuple[Value, ...]) -> bool:
    return len(expected) == len(found) and all(_same(*pair) for pair in zip(expected, found, strict=True))


def _same(a: Value, b: Value) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return a == b
