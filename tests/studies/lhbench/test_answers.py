"""Tests of comparing two engines' answers: equal in any row order and number format, or reported as different."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tidemark.studies.lhbench.data.tpcds import for_spark
from tidemark.studies.lhbench.verifier.comparison import answer_difference, canonical_answer, numeric

OURS: list[tuple[Any, ...]] = [("a", Decimal("1.50"), 3), ("b", None, 4), (None, Decimal("2.25"), 5)]


def held(rows: list[tuple[Any, ...]]) -> str:
    return answer_difference(canonical_answer(OURS), canonical_answer(rows, numeric(OURS)))


def test_equal_rows_match_in_any_order_and_representation() -> None:
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
def test_differences_are_reported(rows: list[tuple[Any, ...]], words: str) -> None:
    assert words in held(rows)


def test_numbers_with_differing_last_digits_do_not_change_the_row_order() -> None:
    expected = [(1.00000001, "x"), (1.00000002, "y")]
    found = [(1.00000002, "x"), (1.00000001, "y")]
    assert answer_difference(canonical_answer(expected), canonical_answer(found)) == ""


def test_dates_become_text_and_text_is_no_number() -> None:
    assert canonical_answer([(date(2001, 2, 3), "7 ")]) == [("2001-02-03", "7")]
    assert numeric([(date(2001, 2, 3), "7", 7)]) == frozenset({2})


def test_names_in_double_quotes_get_backticks_for_spark() -> None:
    assert for_spark("SELECT 1 AS \"30 days\", 'it' AS b") == "SELECT 1 AS `30 days`, 'it' AS b"
