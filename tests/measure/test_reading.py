"""Queries by a client that never wrote to the table: each answer is timed, and compared with the rows that exist."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from tidemark.errors import DiskFull, OracleError, SystemFailure
from tidemark.measure.table_calls import Reading, hold, read
from tidemark.systems.tables import ReadClient, TableSystem


class Answering(ReadClient):
    """Client of a table with four rows that returns the answers it is given."""

    def __init__(self, counts: list[int], sums: list[int]) -> None:
        self._counts, self._sums = counts, sums

    def count(self) -> int:
        return self._counts.pop(0)

    def sum_ids(self) -> int:
        return self._sums.pop(0)


class Table:
    def __init__(self, counts: tuple[int, ...] = (4, 4), sums: tuple[int, ...] = (6, 6)) -> None:
        self.opened = 0
        self._answers = [list(counts), list(sums)]

    @contextmanager
    def open_reader(self) -> Iterator[ReadClient]:
        self.opened += 1
        yield Answering(*self._answers)


def asked(table: Any) -> Reading:
    return read(cast(TableSystem, table))


def test_each_query_has_a_separate_client_that_runs_it_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    table, clock = Table(), iter([0.0, 0.5, 1.0, 1.25, 2.0, 5.0, 6.0, 6.5])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    reading = hold(asked(table), 4)
    assert table.opened == 2
    assert (reading.latencies.count_s, reading.latencies.sum_s) == ((0.5, 0.25), (3.0, 0.5))
    assert (reading.rows, reading.ids) == (4, 0 + 1 + 2 + 3)


@pytest.mark.parametrize("answers", [((3, 3), (6, 6)), ((4, 4), (7, 7)), ((4, 4), (3, 3))])
def test_missing_row_and_changed_row_are_detected(answers: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    with pytest.raises(OracleError, match=r"a table of 4 rows .* are to add up to 6"):
        hold(asked(Table(*answers)), 4)


def test_answers_that_differ_are_an_error() -> None:
    with pytest.raises(OracleError, match=r"count\(\*\) was run 2 times .* \[4, 3\]"):
        asked(Table(counts=(4, 3)))


@pytest.mark.parametrize(
    ("raised", "expected"), [(ValueError("no such file"), SystemFailure), (OSError(28, "No space left"), DiskFull)]
)
def test_unreadable_table_raises_the_reason(raised: Exception, expected: type[Exception]) -> None:
    class Closed:
        @contextmanager
        def open_reader(self) -> Iterator[ReadClient]:
            raise raised
            yield

    with pytest.raises(expected):
        asked(Closed())
