"""Reader of a DuckLake table's contents, by SQL on its catalog's tables and from its files, without DuckDB.

The tables are those of DuckLake's specification; all that is used here is the same in its releases 0.3 and 1.0.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from tidemark.errors import SystemFailure
from tidemark.systems.catalogs.databases import Ask
from tidemark.systems.disk import read_ids
from tidemark.systems.duckdb_client import literal
from tidemark.systems.object_store import path_of
from tidemark.systems.tables import Committed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem


type Catalog = psycopg.Connection[tuple[Any, ...]]

DATA_FILES = """
    SELECT file.path, file.path_is_relative, "table".path, "table".path_is_relative, schema.path,
        schema.path_is_relative, lake.value
    FROM ducklake_data_file AS file JOIN ducklake_table AS "table" USING (table_id)
        JOIN ducklake_schema AS schema USING (schema_id), ducklake_metadata AS lake
    WHERE "table".table_name = {} AND lake.key = 'data_path'
        AND file.end_snapshot IS NULL AND "table".end_snapshot IS NULL AND schema.end_snapshot IS NULL
"""
ADDED = """
    SELECT file.begin_snapshot, sum(file.record_count)
    FROM ducklake_data_file AS file JOIN ducklake_table USING (table_id)
    WHERE ducklake_table.table_name = {} GROUP BY 1
"""
INLINED = """
    SELECT inlined.table_name FROM ducklake_inlined_data_tables AS inlined JOIN ducklake_table USING (table_id)
    WHERE ducklake_table.table_name = {} AND end_snapshot IS NULL
"""


def reader_name() -> str:
    """Return the name of the oracle's reader that uses this module."""
    import pyarrow as pa

    return f"psycopg {psycopg.__version__} (the catalog's tables) and PyArrow {pa.__version__} (the Parquet files)"


def commits(catalog: Catalog) -> int:
    """Return the number of snapshots in the catalog, including those for creation and options."""
    ((count,),) = catalog.execute("SELECT count(*) FROM ducklake_snapshot").fetchall()
    return int(count)


def history(catalog: Catalog, table: str) -> list[Committed]:
    """Return the snapshots that added rows to `table`, in files or inlined, in order."""
    counted: dict[int, int] = dict(catalog.execute(sql.SQL(ADDED).format(sql.Literal(table))).fetchall())
    for (inlined,) in catalog.execute(sql.SQL(INLINED).format(sql.Literal(table))).fetchall():
        rows = sql.SQL("SELECT begin_snapshot, count(*) FROM {} GROUP BY 1").format(sql.Identifier(inlined))
        for snapshot, count in catalog.execute(rows).fetchall():
            counted[snapshot] = counted.get(snapshot, 0) + count
    times = catalog.execute("SELECT snapshot_id, extract(epoch FROM snapshot_time) * 1000 FROM ducklake_snapshot")
    made: dict[int, float] = dict(times.fetchall())
    return [Committed(float(made[number]), int(counted[number])) for number in sorted(counted) if number in made]


def refused(catalog: Catalog) -> int:
    """Return how many transactions PostgreSQL rolled back in the catalog's database: commits that lost to others.

    A single writer has none. PostgreSQL counts those of a session once it has ended.
    """
    query = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    ((count,),) = catalog.execute(query).fetchall()
    return int(count)


def ids(catalog: Catalog, table: str, file_system: FileSystem | None = None) -> pa.ChunkedArray:
    """Return the ids of a table by `ids_by`, for a catalog in PostgreSQL."""

    def ask(query: str) -> Sequence[tuple[Any, ...]]:
        return catalog.execute(query.encode()).fetchall()

    return ids_by(ask, table, lambda name: _inlined_ids(catalog, name), file_system)


def ids_by(
    ask: Ask, table: str, inlined_ids: Callable[[str], pa.ChunkedArray], file_system: FileSystem | None = None
) -> pa.ChunkedArray:
    """Return the `id` column (int64) of `table`'s current rows, in files (of `file_system`) and inlined, in any order.

    `inlined_ids` returns those of the current rows in the catalog's table of that name. Raise SystemFailure if rows
    were deleted: Tidemark never deletes any, and this reader does not apply deletes.
    """
    import pyarrow as pa

    ((deleted,),) = ask("SELECT count(*) FROM ducklake_delete_file WHERE end_snapshot IS NULL")
    if deleted:
        raise SystemFailure(f"DuckLake: {deleted} files of deleted rows are in the catalog, where rows are only added.")
    chunks = read_ids((_path(row) for row in ask(DATA_FILES.format(literal(table)))), file_system).chunks
    for (inlined,) in ask(INLINED.format(literal(table))):
        chunks += inlined_ids(inlined).chunks
    return pa.chunked_array(chunks, pa.int64())


def _path(row: tuple[Any, ...]) -> PurePath:
    """Return a data file's path, which is relative to its table's, schema's and lake's in this order, or absolute."""
    file, file_is_relative, table, table_is_relative, schema, schema_is_relative, lake = row
    path = str(file)
    for folder, is_relative in ((table, file_is_relative), (schema, table_is_relative), (lake, schema_is_relative)):
        if not is_relative:
            break
        path = f"{folder.rstrip('/')}/{path}"
    return path_of(path)


def _inlined_ids(catalog: Catalog, name: str) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.csv

    rows = sql.SQL("COPY (SELECT id FROM {} WHERE end_snapshot IS NULL) TO STDOUT").format(sql.Identifier(name))
    with catalog.cursor() as cursor, cursor.copy(rows) as copy:
        text = b"".join(copy)
    if not text:
        return pa.chunked_array([], pa.int64())
    return pa.csv.read_csv(
        io.BytesIO(text),
        pa.csv.ReadOptions(column_names=["id"]),
        convert_options=pa.csv.ConvertOptions(column_types={"id": pa.int64()}, null_values=["\\N"]),
    ).column(0)
