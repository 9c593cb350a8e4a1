"""Common base of DuckLake tables, written by DuckDB, for all catalogs: options, table, files, inlined rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.runs.manifest import Footprint
from tidemark.systems import object_store
from tidemark.systems.base import FULL, TABLE, Capability, Context, Options, PerWrite, option
from tidemark.systems.catalogs.databases import Ask
from tidemark.systems.duckdb_client import DUCKDB, identifier, literal
from tidemark.systems.duckdb_table import DuckDBClientFactory, DuckDBSystem
from tidemark.systems.full_durability import DurabilityOptions
from tidemark.systems.tables import Committed, and_pyarrow, read_ids
from tidemark.systems.writers import commit_retries_option

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DuckLakeOptions(DurabilityOptions):
    inline_rows: int | None = option(
        None,
        "Writes of up to this many rows stay in the catalog until they are flushed "
        "(DATA_INLINING_ROW_LIMIT). Left out: no write, or each one if the system is named inlined. DuckLake "
        "1.0 left alone: 10.",
        minimum=0,
        examples=(10,),
    )


@dataclass(frozen=True, slots=True)
class RetryingOptions(DuckLakeOptions):
    commit_retries: int | None = commit_retries_option("ducklake_max_retry_count", "DuckLake: 10")
    retry_wait_ms: int | None = option(
        None,
        "Wait before the first of these, which grows by half with each (ducklake_retry_wait_ms); DuckLake: 100.",
        minimum=1,
        examples=(5,),
    )

    @property
    def statements(self) -> tuple[str, ...]:
        """Settings of a client, as SQL."""
        given: Mapping[str, int | None] = {
            "ducklake_max_retry_count": self.commit_retries,
            "ducklake_retry_wait_ms": self.retry_wait_ms,
        }
        return tuple(f"SET {name} = {value}" for name, value in given.items() if value is not None)


@dataclass(frozen=True, slots=True)
class DuckLakePostgresOptions(RetryingOptions):
    storage: str = field(default=object_store.LOCAL, metadata=object_store.STORAGE)
    rtt_ms: int | None = field(default=None, metadata=object_store.RTT)


LAKE = "lake"
TABLE_NAME = "trips"
METADATA = f"__ducklake_metadata_{LAKE}"
INLINES = frozenset({Capability.INLINING, Capability.FLUSH})
LOSES_SIGN = "DuckLake 0.3 loses the sign of -0.0 in rows that it inlines"
ADDING = f"CALL ducklake_add_data_files('{LAKE}', '{TABLE_NAME}', ?)"
# Maintenance operations by name. A merge alone removes nothing: older snapshots still need the small files.
MERGING = {
    "merge": f"CALL ducklake_merge_adjacent_files('{LAKE}')",
    "expire": f"CALL ducklake_expire_snapshots('{LAKE}', older_than => now())",
    "clean up": f"CALL ducklake_cleanup_old_files('{LAKE}', cleanup_all => true)",
}
MARKING = f"CALL ducklake_set_commit_message('{LAKE}', 'tidemark', 'a batch', extra_info => {{}})"
MARKED = f"SELECT count(*) FROM ducklake_snapshots('{LAKE}') WHERE commit_extra_info = {{}}"
FLUSHING = {"flush": f"CALL ducklake_flush_inlined_data('{LAKE}')"}
GAVE_UP_COMMIT = "Exceeded the maximum retry count"  # in DuckLake's message for a commit that lost to others


class DuckLakeTable(object_store.Stored, DuckDBSystem):
    """Base class of all DuckLake tables; a subclass sets the catalog and the limit of inlined rows."""

    format: ClassVar[str] = "DuckLake"
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(2, 2)  # the file and its folder
    table = f"{LAKE}.{TABLE_NAME}"
    capabilities: frozenset[Capability] = TABLE | {
        Capability.MERGE,
        Capability.THREADS,
        Capability.ASKED,
        Capability.ADD_COLUMN,
    }
    Options: ClassVar[type[Options]] = DuckLakeOptions
    conflicts: ClassVar[tuple[str, ...]] = (GAVE_UP_COMMIT,)
    opens_within_s: ClassVar[float] = 0.0  # how long another process retries to open it while its catalog is locked
    inlines_all: ClassVar[bool] = False  # without the option `inline_rows`

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.withdraw(LOSES_SIGN)
        self.capabilities -= INLINES
        if self._row_limit:
            self.capabilities |= INLINES
            self.say(None if DUCKDB.release().ducklake_keeps_negative_zero else LOSES_SIGN)
        if object_store.is_in_bucket(options):
            self.extensions = (*self.extensions, object_store.HTTPFS)
            self.say(object_store.NOTE)

    @property
    def _data(self) -> Path:
        return self.context.directory / "data"

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        if options.inline_rows is not None and options.durability == FULL:
            return "durability: full is of writes that all end in files, or all in the catalog; inline_rows is set"
        return super().unavailable(options)

    @property
    def _row_limit(self) -> int:
        """Number of rows up to which a write is inlined; 0 inlines none."""
        chosen: int | None = self.options.inline_rows
        if chosen is not None:
            return chosen
        return self.context.rows_per_write + 1 if self.inlines_all else 0

    @property
    @abstractmethod
    def _catalog_address(self) -> str:
        """Location of the catalog as in DuckLake's ATTACH; without secrets."""

    @abstractmethod
    def _catalog_bytes(self) -> int: ...

    def _attachments(self) -> tuple[str, ...]:
        access = () if self.folder is None else (self.folder.secret(),)
        return (*access, self._attachment(self._catalog_address))

    def _attachment(self, address: str) -> str:
        # The limit is always given: without one, later DuckLake releases inline up to 10 rows.
        place = self._data if self.folder is None else self.folder.uri
        return (
            f"ATTACH {literal(f'ducklake:{address}')} AS {LAKE} "
            f"(DATA_PATH {literal(f'{place}/')}, DATA_INLINING_ROW_LIMIT {self._row_limit})"
        )

    def create(self, schema: pa.Schema) -> None:
        writer = self._writer
        writer.execute(f"CALL {LAKE}.set_option('parquet_compression', {literal(self.context.codec)})")
        shape = schema.empty_table()
        writer.execute(f"CREATE TABLE {self.table} AS SELECT * FROM shape")
        del shape
        self._keep_promise_below(self.context.directory)

    def data_files(self) -> Sequence[PurePath]:
        rows = self._writer.execute(f"SELECT data_file FROM ducklake_list_files('{LAKE}', '{TABLE_NAME}')").fetchall()
        return [object_store.path_of(row[0]) for row in rows]

    def inlined_rows(self) -> int:
        tables = self._writer.execute(f"SELECT table_name FROM {METADATA}.ducklake_inlined_data_tables").fetchall()
        return sum(self._count(f"{METADATA}.{identifier(name)} WHERE end_snapshot IS NULL") for (name,) in tables)

    def flush(self) -> None:
        self._call(*FLUSHING.values())

    def merge(self) -> None:
        self._call(*MERGING.values())

    @classmethod
    def operations(cls, options: Any) -> tuple[str, ...]:
        inlines = cls.inlines_all if options.inline_rows is None else options.inline_rows > 0
        return tuple(FLUSHING if inlines else MERGING)

    def client_factory(self) -> DuckDBClientFactory:
        return replace(
            super().client_factory(),
            files=self._data,
            adding=ADDING,
            codec=self.context.codec,
            maintenance=tuple((FLUSHING if self._row_limit else MERGING).items()),
            patience_s=self.opens_within_s,
            marking=MARKING,
            marked=MARKED,
        )

    def footprint(self) -> Footprint:
        found = self.inlined_rows()
        if self._row_limit == 0 and found:
            raise SystemFailure(
                f"{self.name}: {found} rows are inlined in the catalog, none may be. The limit of 0 rows that the "
                "catalog was attached with did not hold; what was measured is another system."
            )
        data = self._sizes_below(self._data).values()
        return Footprint(len(data), sum(data), 0, 0, self._catalog_bytes())

    def commits(self) -> int:
        return self._count(f"ducklake_snapshots('{LAKE}')")

    def settings(self) -> Mapping[str, str]:
        options = self._writer.execute(f"SELECT option_name, value FROM ducklake_options('{LAKE}')").fetchall()
        shown = {name: str(value) for name, value in options if name in ("parquet_compression", "version")}
        return {
            **super().settings(),
            **{f"DuckLake {name}": value for name, value in shown.items()},
            "data_inlining_row_limit": str(self._row_limit),
            "inlined rows": str(self.inlined_rows()),
        }

    def _call(self, *statements: str) -> None:
        """Run statements to completion: DuckDB continues some of them only while their rows are fetched."""
        for statement in statements:
            self._writer.execute(statement).fetchall()

    def _count(self, source: str) -> int:
        return int(self._writer.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0])


# Queries on the tables of DuckLake's specification; all that is used is the same in its releases 0.3 and 1.0.
DATA_FILES = f"""
    SELECT file.path, file.path_is_relative, "table".path, "table".path_is_relative, schema.path,
        schema.path_is_relative, lake.value
    FROM ducklake_data_file AS file JOIN ducklake_table AS "table" USING (table_id)
        JOIN ducklake_schema AS schema USING (schema_id), ducklake_metadata AS lake
    WHERE "table".table_name = '{TABLE_NAME}' AND lake.key = 'data_path'
        AND file.end_snapshot IS NULL AND "table".end_snapshot IS NULL AND schema.end_snapshot IS NULL
"""
ADDED = f"""
    SELECT file.begin_snapshot, sum(file.record_count)
    FROM ducklake_data_file AS file JOIN ducklake_table USING (table_id)
    WHERE ducklake_table.table_name = '{TABLE_NAME}' GROUP BY 1
"""
CURRENT = f"""
    SELECT coalesce(sum(file.record_count), 0) FROM ducklake_data_file AS file JOIN ducklake_table USING (table_id)
    WHERE ducklake_table.table_name = '{TABLE_NAME}' AND file.end_snapshot IS NULL
"""
INLINED = f"""
    SELECT inlined.table_name FROM ducklake_inlined_data_tables AS inlined JOIN ducklake_table USING (table_id)
    WHERE ducklake_table.table_name = '{TABLE_NAME}' AND end_snapshot IS NULL
"""
DELETED = "SELECT count(*) FROM ducklake_delete_file WHERE end_snapshot IS NULL"


def number_in(answer: Sequence[tuple[Any, ...]]) -> int:
    ((number,),) = answer
    return int(number)


def data_file(row: tuple[Any, ...]) -> PurePath:
    """Return a data file's path, which is relative to its table's, schema's and lake's in this order, or absolute."""
    file, file_is_relative, table, table_is_relative, schema, schema_is_relative, lake = row
    path = str(file)
    for folder, is_relative in ((table, file_is_relative), (schema, table_is_relative), (lake, schema_is_relative)):
        if not is_relative:
            break
        path = f"{folder.rstrip('/')}/{path}"
    return object_store.path_of(path)


class SharedCatalog(DuckLakeTable):
    """DuckLake with a catalog that several processes can use at once, and whose tables are read by SQL."""

    Options: ClassVar[type[Options]] = RetryingOptions
    capabilities: frozenset[Capability] = DuckLakeTable.capabilities | {
        Capability.COMMIT_RETRY,
        Capability.WRITERS,
        Capability.MAINTENANCE,
        Capability.HISTORY,
    }
    milliseconds: ClassVar[str] = "extract(epoch FROM snapshot_time) * 1000"  # SQL for the Unix time of a snapshot

    @abstractmethod
    def _open_query(self) -> AbstractContextManager[Ask]:
        """Return a context manager for SQL queries on the catalog's own tables, without DuckLake."""

    def _open_look(self) -> AbstractContextManager[Ask]:
        """Return a context manager for the queries of `visible_rows`."""
        return self._open_query()

    @property
    @abstractmethod
    def _asks_by(self) -> str:
        """Name and version of what answers these queries."""

    @property
    def reader(self) -> str:
        return and_pyarrow(self._asks_by)

    def ids(self) -> pa.ChunkedArray:
        """Return the current `id` column, in files and inlined; raise SystemFailure if rows were deleted.

        Tidemark never deletes any, and this reader does not apply deletes.
        """
        import pyarrow as pa

        with self._open_query() as ask:
            if deleted := number_in(ask(DELETED)):
                raise SystemFailure(
                    f"DuckLake: {deleted} files of deleted rows are in the catalog, where rows are only added."
                )
            chunks = read_ids(map(data_file, ask(DATA_FILES)), self.folder and self.folder.file_system()).chunks
            for (inlined,) in ask(INLINED):
                rows = ask(f"SELECT id FROM {identifier(inlined)} WHERE end_snapshot IS NULL")
                chunks.append(pa.array([number for (number,) in rows], pa.int64()))
        return pa.chunked_array(chunks, pa.int64())

    def commits(self) -> int:
        with self._open_query() as ask:
            return number_in(ask("SELECT count(*) FROM ducklake_snapshot"))

    def visible_rows(self) -> int:
        # One query counts both, files and inlined rows: between two, a flush would move rows from one to the other.
        with self._open_look() as ask:
            counts = [CURRENT]
            for (inlined,) in ask(INLINED):
                counts.append(f"SELECT count(*) FROM {identifier(inlined)} WHERE end_snapshot IS NULL")
            return number_in(ask(f"SELECT {' + '.join(f'({each})' for each in counts)}"))

    def history(self) -> Sequence[Committed]:
        with self._open_query() as ask:
            counted: dict[int, int] = dict(ask(ADDED))
            for (inlined,) in ask(INLINED):
                for snapshot, count in ask(f"SELECT begin_snapshot, count(*) FROM {identifier(inlined)} GROUP BY 1"):
                    counted[snapshot] = counted.get(snapshot, 0) + count
            made: dict[int, float] = dict(ask(f"SELECT snapshot_id, {self.milliseconds} FROM ducklake_snapshot"))
        return [Committed(float(made[number]), int(counted[number])) for number in sorted(counted) if number in made]

    def _attachments(self) -> tuple[str, ...]:
        return (*super()._attachments(), *self.options.statements)


class Inlining(DuckLakeTable):
    """DuckLake that keeps every write in the catalog until `flush`, as set in section 4.2.2 of the thesis."""

    inlines_all: ClassVar[bool] = True
    notes: tuple[str, ...] = (LOSES_SIGN,)
    no_bundles: ClassVar[str] = "rows that are inlined are in no file"
    capabilities: frozenset[Capability] = DuckLakeTable.capabilities | INLINES
