"""Expected content of a table, by DuckDB alone: the base, with the sets merged into it one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


def state(
    connection: duckdb.DuckDBPyConnection, name: str, base: str, merged: Sequence[Path], key: Sequence[str]
) -> None:
    """Create the table `name` with the rows of the query `base`, after merges of the Parquet files `merged` by `key`.

    A row of a set replaces the row with the same key; the other rows of the set are new.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {base}")
    same = " AND ".join(f"old.{each} = new.{each}" for each in key)
    for path in merged:
        source = f"read_parquet('{path}')"
        connection.execute(f"DELETE FROM {name} AS old USING {source} AS new WHERE {same}")
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM {source}")
