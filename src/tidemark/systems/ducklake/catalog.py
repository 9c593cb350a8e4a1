"""Reader of a DuckLake table's contents, by SQL on its catalog's tables and from its files, without DuckLake.

The tables are those of DuckLake's specification; all that is used here is the same in its releases 0.3 and 1.0.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tidemark.errors import SystemFailure
from tidemark.systems.catalogs.databases import Ask
from tidemark.systems.duckdb_client import identifier, literal
from tidemark.systems.object_store import path_of
from tidemark.systems.tables import Committed, read_ids

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem


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
CURRENT = """
    SELECT coalesce(sum(file.record_count), 0) FROM ducklake_data_file AS file JOIN ducklake_table USING (table_id)
    WHERE ducklake_table.table_name = {} AND file.end_snapshot IS NULL
"""
INLINED = """
    SELECT inlined.table_name FROM ducklake_inlined_data_tables AS inlined JOIN ducklake_table USING (table_id)
    WHERE ducklake_table.table_name = {} AND end_snapshot IS NULL
"""


REFUSED = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"


def commits(ask: Ask) -> int:
    """Return the number of snapshots in the catalog, including those for creation and options."""
    return _number(ask, "SELECT count(*) FROM ducklake_snapshot")


def history(ask: Ask, table: str, milliseconds: str) -> list[Committed]:
    """Return the snapshots that added rows to `table`, in files or inlined, in order.

    `milliseconds` is SQL for the Unix time of a snapshot.
    """
    counted: dict[int, int] = dict(ask(ADDED.format(literal(table))))
    for (inlined,) in ask(INLINED.format(literal(table))):
        for snapshot, count in ask(f"SELECT begin_snapshot, count(*) FROM {identifier(inlined)} GROUP BY 1"):
            counted[snapshot] = counted.get(snapshot, 0) + count
    made: dict[int, float] = dict(ask(f"SELECT snapshot_id, {milliseconds} FROM ducklake_snapshot"))
    return [Committed(float(made[number]), int(counted[number])) for number in sorted(counted) if number in made]


def visible_rows(ask: Ask, table: str) -> int:
    """Return the row count of `table`, in files and inlined, also once snapshots were expired.

    One query counts both: between two, a flush would move rows from one to the other.
    """
    counts = [CURRENT.format(literal(table))]
    for (inlined,) in ask(INLINED.format(literal(table))):
        counts.append(f"SELECT count(*) FROM {identifier(inlined)} WHERE end_snapshot IS NULL")
    return _number(ask, f"SELECT {' + '.join(f'({each})' for each in counts)}")


def refused(ask: Ask) -> int:
    """Return how many transactions PostgreSQL rolled back in the catalog's database: commits that lost to others.

    A single writer has none. PostgreSQL counts those of a session once it has ended.
    """
    return _number(ask, REFUSED)


def _number(ask: Ask, query: str) -> int:
    ((number,),) = ask(query)
    return int(number)


def ids(ask: Ask, table: str, file_system: FileSystem | None = None) -> pa.ChunkedArray:
    """Return the `id` column (int64) of `table`'s current rows, in files (of `file_system`) and inlined, in any order.

    Raise SystemFailure if rows were deleted: Tidemark never deletes any, and this reader does not apply deletes.
    """
    import pyarrow as pa

    if deleted := _number(ask, "SELECT count(*) FROM ducklake_delete_file WHERE end_snapshot IS NULL"):
        raise SystemFailure(f"DuckLake: {deleted} files of deleted rows are in the catalog, where rows are only added.")
    chunks = read_ids((_path(row) for row in ask(DATA_FILES.format(literal(table)))), file_system).chunks
    for (inlined,) in ask(INLINED.format(literal(table))):
        rows = ask(f"SELECT id FROM {identifier(inlined)} WHERE end_snapshot IS NULL")
        chunks.append(pa.array([number for (number,) in rows], pa.int64()))
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
