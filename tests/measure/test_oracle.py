"""The oracle detects every way in which a table can differ from what was acknowledged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidemark.measure.oracle import compare, consult, difference
from tidemark.systems.base import Capability
from tidemark.systems.null import Null


def ids(*values: int | None) -> pa.ChunkedArray:
    return pa.chunked_array([list(values[:2]), list(values[2:])], pa.int64())


def test_exactly_the_acknowledged_ids_in_any_order() -> None:
    verdict = compare(ids(3, 0, 2, 1), 4)
    assert verdict.verdict
    assert (verdict.missing, verdict.duplicated, verdict.unexpected) == (0, 0, 0)


def test_a_missing_id() -> None:
    verdict = compare(ids(0, 1, 3), 4)
    assert not verdict.verdict
    assert verdict.missing == 1


def test_duplicate_is_detected_although_the_count_is_right() -> None:
    verdict = compare(ids(0, 1, 1, 3), 4)
    assert not verdict.verdict
    assert (verdict.found, verdict.missing, verdict.duplicated) == (4, 1, 1)


def test_an_id_that_was_never_acknowledged() -> None:
    assert compare(ids(0, 1, 2, 4), 4).unexpected == 1
    assert compare(ids(0, 1, -1), 2).unexpected == 1
    assert compare(ids(0, 1, None), 2).unexpected == 1


def test_an_empty_table() -> None:
    verdict = compare(pa.chunked_array([], pa.int64()), 3)
    assert not verdict.verdict
    assert verdict.missing == 3


def test_a_million_ids() -> None:
    shuffled = np.random.default_rng(7).permutation(1_000_000)
    assert compare(pa.chunked_array([shuffled[:400_000], shuffled[400_000:]]), 1_000_000).verdict
    assert not compare(pa.chunked_array([shuffled[1:]]), 1_000_000).verdict


class Kept(Null):
    """A table of which only the ids and the number of commits are known."""

    capabilities = frozenset({Capability.READ_BACK})

    def __init__(self, count: int, commits: int | None) -> None:
        self._ids, self._commits = pa.chunked_array([range(count)], pa.int64()), commits

    @property
    def reader(self) -> str:
        return "a test"

    def ids(self) -> pa.ChunkedArray:
        return self._ids

    def commits(self) -> int | None:
        return self._commits


def test_as_many_commits_as_writes() -> None:
    verdict = consult(Kept(40, 6), 40, operations=4, commits_before=2)
    assert verdict.verdict
    assert (verdict.commits, verdict.reader) == (4, "a test")


@pytest.mark.parametrize("commits", [3, 5])
def test_fewer_or_more_commits_than_writes(commits: int) -> None:
    verdict = consult(Kept(40, 2 + commits), 40, operations=4, commits_before=2)
    assert not verdict.verdict
    assert verdict.commits == commits
    assert f"4 writes were acknowledged, the table's history shows {commits} commits" in difference(verdict, 4)
    assert "0 missing" in difference(verdict, 4)


def test_missing_history_is_no_error() -> None:
    verdict = consult(Kept(40, None), 40, operations=4, commits_before=None)
    assert verdict.verdict
    assert verdict.commits is None
    wrong = consult(Kept(39, None), 40, operations=4, commits_before=None)
    assert "history" not in difference(wrong, 4)
    assert "1 missing" in difference(wrong, 4)
