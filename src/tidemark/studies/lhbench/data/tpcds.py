"""TPC-DS from DuckDB's generator: one Parquet file per table, and the standard's 99 queries; the same at each call."""

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
    """Write the tables of a scale factor as `folder`/<table>.parquet; return the rows and loaded rows of each.

    `connection` must have the extension tpcds loaded and no tables.
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
    """Return the query texts by number, with the standard's qualification parameters; needs the extension tpcds."""
    found = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return {str(number): text.strip().removesuffix(";") for number, text in found}


def for_spark(text: str) -> str:
    """Return `text` with double-quoted names in backticks, because double quotes delimit strings in Spark."""
    return QUOTED.sub(r"`\1`", text)


def views(connection: duckdb.DuckDBPyConnection, files: Mapping[str, Path]) -> None:
    """Create a view of the loaded rows for each table of `files` (Parquet, by table)."""
    for table, path in files.items():
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{path}') WHERE {loaded(table)}")
