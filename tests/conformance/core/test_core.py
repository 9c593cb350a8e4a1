"""The least that a table system must do: describe itself, and give back exactly the rows that were written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.conformance.checks import OpenTable, assert_holds, holds_infinity, write_all
from tests.conformance.conftest import BY_DEFAULT, is_here
from tests.conformance.trips import TEXTS, YELLOW, all_null, extremes, trips, with_column

from tidemark.systems.base import System

pytestmark = pytest.mark.parametrize("kind", BY_DEFAULT.values(), ids=BY_DEFAULT.keys(), indirect=True)


def test_describes_itself(kind: type[System]) -> None:
    for text in (kind.name, kind.title, kind.format, kind.client, kind.catalog):
        assert text.strip() == text != ""
    assert kind.durability.summary
    assert kind.durability.source
    reason = kind.unavailable(kind.Options())
    if not is_here(kind):
        assert reason is not None and "not installed" in reason
        return
    assert reason is None
    # Only a system that writes to nothing has no library.
    assert bool(kind.versions()) == (kind.client != "none") and all(kind.versions().values())


def test_one_row_per_write(kind: type[System], open_table: OpenTable) -> None:
    system = open_table(kind, rows_per_write=1)
    assert_holds(system, write_all(system, [trips(YELLOW, 1), trips(YELLOW, 1, 1)]))


def test_values_of_every_kind(kind: type[System], open_table: OpenTable) -> None:
    """Write a thousand rows, several chunks, nulls everywhere, texts of all kinds, and extremes, also row by row."""
    system = open_table(kind)
    text = with_column(trips(YELLOW, len(TEXTS), 5000), "store_and_fwd_flag", pa.array(TEXTS))
    outermost = extremes(YELLOW, holds_infinity(kind))
    first_ids = pa.array(range(6000, 6000 + len(outermost)))
    alone = [with_column(outermost, "id", first_ids).slice(i, 1) for i in range(len(outermost))]
    written = [
        all_null(YELLOW, 1, 900),
        trips(YELLOW, 1000, 1000),
        pa.concat_tables([trips(YELLOW, 3, 3000), trips(YELLOW, 4, 3003)]),
        pa.concat_tables([trips(YELLOW, 2, 4000), all_null(YELLOW, 2, 4002), trips(YELLOW, 1, 4004)]),
        text,
        text.slice(0, 1).set_column(0, "id", pa.array([5500])),
        outermost,
        *alone,
    ]
    assert_holds(system, write_all(system, written))
