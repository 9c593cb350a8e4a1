"""Synthetic table of the merge microbenchmark, and the set that is merged into it: half new rows, half updates.

The table has four columns over a range of keys, in files of consecutive keys: key, value = 7.1 key + 13.4, value2 = the
text of 91 key, partition = key modulo 1,000. The rows to update are drawn uniformly by a hash; LHBench draws them at
random. Tidemark's updates change the value; LHBench's did not, so that no check could show whether a merge took effect.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

KEY = ("key",)
COLUMNS = {"key": "BIGINT", "value": "DOUBLE", "value2": "VARCHAR", "partition": "BIGINT"}


def rows_of(keys: str) -> str:
    """Return DuckDB SQL for the table's rows, given the column `key` of the relation `keys`."""
    return (
        "SELECT key, CAST(key AS DOUBLE) * CAST('7.1' AS DOUBLE) + CAST('13.4' AS DOUBLE) AS value, "
        f"CAST(key * 91 AS VARCHAR) AS value2, key % 1000 AS partition FROM {keys}"
    )


def base(rows: int) -> str:
    """Return a DuckDB query for all rows of the table before the merge."""
    return rows_of(f"(SELECT range AS key FROM range({rows}))")


def made_by_spark(rows: int, files: int) -> str:
    """Return the same query as Spark SQL; its range has one partition for each file that the table is to have."""
    return (
        "SELECT id AS key, CAST(id AS DOUBLE) * 7.1D + 13.4D AS value, CAST(id * 91 AS STRING) AS value2, "
        f"id % 1000 AS partition FROM range(0, {rows}, 1, {files})"
    )


def make_set(
    connection: duckdb.DuckDBPyConnection, rows: int, files: int, updates: int, seed: int, path: Path
) -> dict[str, int]:
    """Write a set of `updates` changed rows and as many new ones; return these numbers and the files touched."""
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
    # Spark's range splits at the same keys: file f begins with key f x rows / files.
    touched = connection.execute(f"SELECT count(DISTINCT (key * {files}) // {rows}) FROM drawn").fetchall()[0][0]
    return {"updates": updates, "inserts": updates, "touched": int(touched)}


def expected_share(files: float, updates: float) -> float:
    """Return the share of `files` files that `updates` uniformly drawn rows are expected to touch."""
    return float(1 - (1 - 1 / files) ** updates)
