"""Tests of the oracle: each planted fault of a table is found."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.studies.deltars.oracle import Comparer
from tidemark.systems.duckdb_client import literal

ROWS = 100


def table() -> pa.Table:
    prices = [Decimal(number) / 100 for number in range(ROWS)]
    return pa.table(
        {
            "s_suppkey": pa.array(range(ROWS), pa.int64()),
            "s_name": pa.array([f"name {number}" for number in range(ROWS)]),
            "s_acctbal": pa.array(prices, pa.decimal128(15, 2)),
        }
    )


@pytest.fixture
def comparer(tmp_path: Path) -> Iterator[Comparer]:
    pq.write_table(table(), tmp_path / "source.parquet")
    with Comparer(tmp_path / "source.parquet", ("s_suppkey",), (), tmp_path) as made:
        yield made


def relation(folder: Path, rows: pa.Table) -> str:
    pq.write_table(rows, folder / "found.parquet")
    return f"read_parquet({literal(folder / 'found.parquet')})"


def test_the_same_rows_in_another_order_are_the_same(comparer: Comparer, tmp_path: Path) -> None:
    found = comparer.compare(relation(tmp_path, table().sort_by([("s_suppkey", "descending")])))
    assert found.holds and found.expected == found.found == comparer.rows == ROWS


def test_spaces_at_the_end_of_text_and_wider_numbers_change_nothing(comparer: Comparer, tmp_path: Path) -> None:
    padded = pa.array([f"name {number}   " for number in range(ROWS)], pa.large_string())
    rows = table().set_column(1, "s_name", padded)
    place = relation(tmp_path, rows.set_column(0, "s_suppkey", rows["s_suppkey"].cast(pa.int32())))
    assert comparer.compare(place).holds
    assert comparer.departures(place) == ["s_suppkey: BIGINT became INTEGER"]


def test_truncated_table_misses_rows(comparer: Comparer, tmp_path: Path) -> None:
    found = comparer.compare(relation(tmp_path, table().slice(0, ROWS - 7)))
    assert not found.holds and (found.missing, found.unexpected, found.doubled) == (7, 0, 0)
    assert found.words == "of 100 rows 7 are missing, 0 are others, and 0 keys are there more than once"


def test_duplicated_row_is_found(comparer: Comparer, tmp_path: Path) -> None:
    found = comparer.compare(relation(tmp_path, pa.concat_tables([table(), table().slice(3, 1)])))
    assert (found.missing, found.unexpected, found.doubled) == (0, 1, 1)


def test_difference_of_one_cent_is_found(comparer: Comparer, tmp_path: Path) -> None:
    prices = table()["s_acctbal"].to_pylist()
    prices[50] += Decimal("0.01")
    rows = table().set_column(2, "s_acctbal", pa.array(prices, pa.decimal128(15, 2)))
    found = comparer.compare(relation(tmp_path, rows))
    assert (found.missing, found.unexpected, found.doubled) == (1, 1, 0)
