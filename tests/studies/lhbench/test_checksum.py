"""Tests of table checksums: values worked out by hand, and every fault that must be detected."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from tidemark.studies.lhbench.verifier.comparison import Checksum, canonical_column, checksum

COLUMNS = {"k": "INTEGER", "price": "DECIMAL(7,2)", "word": "VARCHAR", "day": "DATE"}
ROWS = "(1, 1.50, 'one', DATE '2001-01-01'), (2, NULL, 'two', NULL), (3, 3.25, 'three', DATE '2003-03-03')"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as made:
        made.execute(f"CREATE TABLE expected AS SELECT * FROM (VALUES {ROWS}) AS t(k, price, word, day)")
        yield made


def of(connection: duckdb.DuckDBPyConnection, query: str) -> Checksum:
    return checksum(connection, f"({query})", COLUMNS, ("k",))


def said(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    return of(connection, "FROM expected").difference(of(connection, query))


def test_counts_are_those_of_the_rows(connection: duckdb.DuckDBPyConnection) -> None:
    found = of(connection, "FROM expected")
    assert (found.rows, found.keys, found.different_keys) == (3, 3, 3)
    assert {name: count for name, (count, _) in found.columns.items()} == {"k": 3, "price": 2, "word": 3, "day": 2}


@pytest.mark.parametrize(
    "same",
    [
        "FROM expected ORDER BY k DESC",
        "SELECT CAST(k AS BIGINT) AS k, CAST(price AS DECIMAL(9, 4)) AS price, word || '  ' AS word, day FROM expected",
        "SELECT day, word, price, k, 'x' AS _hoodie_commit_time FROM expected",
    ],
)
def test_order_widths_and_columns_added_by_a_format_change_nothing(
    connection: duckdb.DuckDBPyConnection, same: str
) -> None:
    assert said(connection, same) == ""


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("SELECT k, IF(k = 3, 3.26, price) AS price, word, day FROM expected", "other values in price"),
        ("SELECT k, price, word, coalesce(day, DATE '2002-02-02') AS day FROM expected", "other values in day"),
        ("FROM expected WHERE k < 3", "2 rows of 3; 2 keys of 3; other values in k, price, word, day"),
        ("FROM expected UNION ALL FROM expected WHERE k = 1", "4 rows of 3; other values in k, price, word, day"),
        ("SELECT IF(k = 3, 1, k) AS k, price, word, day FROM expected", "2 keys of 3; other values in k"),
        # Each column keeps its values, but two rows have exchanged words: no single column differs.
        (
            "SELECT k, price, CASE k WHEN 1 THEN 'two' WHEN 2 THEN 'one' ELSE word END AS word, day FROM expected",
            "the values are there, in other rows than they belong to",
        ),
    ],
)
def test_faults_are_detected_and_named(connection: duckdb.DuckDBPyConnection, fault: str, words: str) -> None:
    assert said(connection, fault) == words


def test_pair_of_duplicated_rows_does_not_cancel_out(connection: duckdb.DuckDBPyConnection) -> None:
    """An exclusive or alone would not detect a pair."""
    pair = of(connection, "FROM expected UNION ALL FROM expected WHERE k = 1 UNION ALL FROM expected WHERE k = 1")
    whole = of(connection, "FROM expected")
    assert pair.parity == whole.parity and pair.total != whole.total and whole.difference(pair)


def test_an_empty_table_has_a_checksum(connection: duckdb.DuckDBPyConnection) -> None:
    found = of(connection, "FROM expected WHERE k > 9")
    assert (found.rows, found.total, found.parity) == (0, "0", "0")


def test_types_are_normalised() -> None:
    assert canonical_column("a", "integer") == "CAST(a AS BIGINT)"
    assert canonical_column("a", "DECIMAL(5,2)") == "CAST(a AS DECIMAL(18, 2))"
    assert canonical_column("a", "VARCHAR") == "rtrim(CAST(a AS VARCHAR))"
    assert canonical_column("a", "DATE") == "CAST(a AS DATE)"
