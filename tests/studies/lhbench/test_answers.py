"""Answers of two engines to one text: alike in any order and any spelling of a number, or different and said so."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tidemark.studies.lhbench.data.tpcds import for_spark
from tidemark.studies.lhbench.judge.answers import canonical, difference, numeric

OURS: list[tuple[Any, ...]] = [("a", Decimal("1.50"), 3), ("b", None, 4), (None, Decimal("2.25"), 5)]


def held(rows: list[tuple[Any, ...]]) -> str:
    return difference(canonical(OURS), canonical(rows, numeric(OURS)))


def test_the_same_rows_are_the_same_however_they_are_handed_over() -> None:
    assert held([(None, "2.2500", 5), ("b ", None, "4"), ("a", 1.5, 3)]) == ""
    assert held([("a", 1.5000004, 3), ("b", None, 4), (None, "2.25", 5)]) == ""


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (OURS[:2], "2 rows of 3"),
        ([("a", "1.51", 3), *OURS[1:]], "1 of 3 rows differ"),
        ([("a", None, 3), *OURS[1:]], "1 of 3 rows differ"),
        ([("c", "1.50", 3), *OURS[1:]], "rows differ"),
        ([("a", "1.50", 4), ("b", None, 3), OURS[2]], "2 of 3 rows differ"),
    ],
)
def test_what_is_otherwise_is_said(rows: list[tuple[Any, ...]], words: str) -> None:
    assert words in held(rows)


def test_numbers_that_differ_in_their_last_digits_do_not_bring_rows_out_of_order() -> None:
    expected = [(1.00000001, "x"), (1.00000002, "y")]
    found = [(1.00000002, "x"), (1.00000001, "y")]
    assert difference(canonical(expected), canonical(found)) == ""


def test_dates_are_texts_and_text_is_no_number() -> None:
    assert canonical([(date(2001, 2, 3), "7 ")]) == [("2001-02-03", "7")]
    assert numeric([(date(2001, 2, 3), "7", 7)]) == frozenset({2})


def test_names_in_double_quotes_are_sparks_in_backticks() -> None:
    assert for_spark("SELECT 1 AS \"30 days\", 'it' AS b") == "SELECT 1 AS `30 days`, 'it' AS b"
