"""Tests of the oracle of many writers: each planted fault is found; unknown outcomes are counted and are no fault."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tidemark.studies.ingest.load.records import (
    ACKED,
    CONFLICT,
    FAILED,
    FIELDS,
    GIVEN_UP,
    NOT_TOLD,
    NUMBERS,
    SENT,
    UNKNOWN,
)
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.window.runner import Finding, look, states

ROWS = 10


def records(*outcomes: tuple[int, str | None]) -> NDArray[np.int64]:
    """Return the records of a writer, one for each (sequence, outcome); None if it was killed during the attempt."""
    made = np.zeros((len(outcomes), len(FIELDS)), np.int64)
    for place, (sequence, outcome) in enumerate(outcomes):
        made[place] = (place, 1, sequence, 1, SENT if outcome is None else NUMBERS[outcome], NOT_TOLD)
    return made


def ids(writer: int, sequence: int) -> list[int]:
    return [(writer << ID_BITS) + ROWS * sequence + row for row in range(ROWS)]


# Writer 1: acknowledged at once, and after a conflict; given up; failed. Writer 2: acknowledged, then unknown.
KNOWN = {
    1: states(records((0, ACKED), (1, CONFLICT), (1, ACKED), (2, CONFLICT), (2, GIVEN_UP), (3, FAILED))),
    2: states(records((0, ACKED), (1, UNKNOWN), (2, None))),
}
RIGHT = [*ids(1, 0), *ids(1, 1), *ids(2, 0), *ids(2, 1)]  # one batch of unknown outcome was committed


def found(there: list[int]) -> Finding:
    return look(pa.chunked_array([pa.array(there, pa.int64())]), KNOWN, ROWS)


def test_correct_table_is_exact_and_unknown_outcomes_are_resolved() -> None:
    finding = found(RIGHT)
    assert finding.is_exact and finding.words == "exact"
    assert (finding.expected, finding.found, finding.done, finding.not_done) == (3 * ROWS, 4 * ROWS, 1, 1)


@pytest.mark.parametrize(
    ("there", "what", "count", "said"),
    [
        (RIGHT[ROWS:], "lost", ROWS, "10 rows lost"),
        (RIGHT[1:], "partial", 1, "1 rows lost, 1 batches partial"),
        ([*RIGHT, *ids(1, 0)], "doubled", ROWS, "10 rows doubled"),
        ([*RIGHT, *ids(2, 1)], "doubled", ROWS, "10 rows doubled"),  # of unknown outcome, and stored twice
        ([*RIGHT, *ids(1, 2)], "risen", ROWS, "10 rows risen"),
        ([*RIGHT, *ids(1, 3)], "risen", ROWS, "10 rows risen"),
        ([*RIGHT, *ids(3, 0)], "phantom", ROWS, "10 rows phantom"),
        ([*RIGHT, *ids(1, 4)], "phantom", ROWS, "10 rows phantom"),
        ([*RIGHT, *ids(2, 2)[:4]], "partial", 1, "1 batches partial"),
    ],
)
def test_each_fault_is_found(there: list[int], what: str, count: int, said: str) -> None:
    finding = found(there)
    assert not finding.is_exact
    assert getattr(finding, what) == count and finding.words == said


def test_null_ids_are_phantom_rows_and_an_empty_table_lost_all() -> None:
    nulls = look(pa.chunked_array([pa.array([*RIGHT, None], pa.int64())]), KNOWN, ROWS)
    assert nulls.phantom == 1
    assert found([]).lost == 3 * ROWS and found([]).not_done == 2


def test_findings_of_several_tables_add_up() -> None:
    whole = found(RIGHT)
    whole.add(found(RIGHT[ROWS:]))
    whole.add(Finding(unread="IOError: gone"))
    assert (whole.expected, whole.lost, whole.unread) == (6 * ROWS, ROWS, "IOError: gone")
    assert whole.words == "cannot be read: IOError: gone" and not whole.is_exact
