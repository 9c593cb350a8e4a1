"""The synthetic table of the merge microbenchmark, and the one set that is merged into it, half new rows and half old.

Four columns of a range of keys, in files of consecutive keys: key, value = 7.1 key + 13.4, value2 = the text of 91
key, partition = key modulo 1,000. Rows to update are drawn by a hash, uniformly, as LHBench draws them by chance; ours
change the value, theirs did not, so that nobody could have seen whether a merge did anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

KEY = ("key",)
COLUMNS = {"key": "BIGINT", "value": "DOUBLE", "value2": "VARCHAR", "partition": "BIGINT"}


def rows_of(keys: str) -> str:
    """The table's rows for the column `key` of the relation `keys`, as DuckDB's SQL."""
    return (
        "SELECT key, CAST(key AS DOUBLE) * CAST('7.1' AS DOUBLE) + CAST('13.4' AS DOUBLE) AS value, "
        f"CAST(key * 91 AS VARCHAR) AS value2, key % 1000 AS partition FROM {keys}"
    )


def base(rows: int) -> str:
    """A query for all rows of the table, before the merge."""
    return rows_of(f"(SELECT range AS key FROM range({rows}))")


def made_by_spark(rows: int, files: int) -> str:
    """The same as Spark's SQL, whose range has as many partitions as the table is to have files."""
    return (
        "SELECT id AS key, CAST(id AS DOUBLE) * 7.1D + 13.4D AS value, CAST(id * 91 AS STRING) AS value2, "
        f"id % 1000 AS partition FROM range(0, {rows}, 1, {files})"
    )


def make_set(
    connection: duckdb.DuckDBPyConnection, rows: int, files: int, updates: int, seed: int, path: Path
) -> dict[str, int]:
    """Write a set of `updates` changed rows and as many new ones; how many there are, and how many files they touch."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE drawn AS SELECT range AS key FROM range({rows}) "
        f"ORDER BY hash({seed}, range), range LIMIT {updates}"
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE refresh AS {rows_of('drawn')} UNION ALL "
        f"{rows_of(f'(SELECT range AS key FROM range({rows}, {rows + updates}))')}"
    )
    connection.execute(f"UPDATE refresh SET value = value + 1 WHERE key < {rows}")
    connection.execute(f"COPY (FROM refresh ORDER BY key) TO '{path}' (FORMAT parquet, COMPRESSION snappy)")
    # Spark's range cuts at the same keys: file f begins with key f x rows / files.
    touched = connection.execute(f"SELECT count(DISTINCT (key * {files}) // {rows}) FROM drawn").fetchone()
    assert touched is not None
    return {"updates": updates, "inserts": updates, "touched": int(touched[0])}


def expected_share(files: float, updates: float) -> float:
    """The share of so many files that so many uniformly drawn rows are expected to touch."""
    return float(1 - (1 - 1 / files) ** updates)
