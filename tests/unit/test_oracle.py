"""The oracle sees every way in which a table can differ from what was acknowledged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tidemark.measure.oracle import compare


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


def test_a_duplicate_is_seen_although_the_count_is_right() -> None:
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
