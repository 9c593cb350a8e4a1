"""TPC-DS by DuckDB's generator: each table a Parquet file, and the standard's 99 queries; the same at each call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.lhbench.data.tables import TABLES, loaded

if TYPE_CHECKING:
    import duckdb

QUOTED = re.compile(r'"([^"\n]+)"')


def generate(connection: duckdb.DuckDBPyConnection, scale: float, folder: Path) -> dict[str, dict[str, int]]:
    """Write the tables of a scale factor as `folder`/<table>.parquet; rows of each, and how many of them are loaded.

    `connection` has the extension tpcds loaded, and no tables yet.
    """
    connection.execute(f"CALL dsdgen(sf = {scale:g})")
    counts = {}
    for table in TABLES:
        path = folder / f"{table}.parquet"
        connection.execute(f"COPY {table} TO '{path}' (FORMAT parquet, COMPRESSION snappy)")
        found = connection.execute(f"SELECT count(*), count(*) FILTER ({loaded(table)}) FROM {table}").fetchone()
        assert found is not None
        counts[table] = {"rows": int(found[0]), "loaded": int(found[1])}
    return counts


def queries(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The texts by their numbers, with the parameters of the standard's qualification; extension tpcds loaded."""
    found = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return {str(number): text.strip().removesuffix(";") for number, text in found}


def for_spark(text: str) -> str:
    """`text` as Spark reads it, which takes double quotes for those of a string: names stand in backticks."""
    return QUOTED.sub(r"`\1`", text)


def views(connection: duckdb.DuckDBPyConnection, files: Mapping[str, Path]) -> None:
    """Make each table of `files` (Parquet, by table) a view of the rows that are loaded."""
    for table, path in files.items():
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}') WHERE {loaded(table)}")
