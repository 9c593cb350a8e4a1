"""DuckLake, written by DuckDB: with its catalog in PostgreSQL or in a DuckDB file, inlining rows or not."""

from __future__ import annotations

import os
import secrets
import shutil
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, cast

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tidemark.errors import SystemFailure
from tidemark.runs.manifest import Footprint
from tidemark.services.base import Service
from tidemark.services.postgres import Postgres
from tidemark.systems.base import (
    NONE_PER_WRITE,
    TABLE,
    USERS_OWN,
    Capability,
    Context,
    Durability,
    Options,
    PerWrite,
)
from tidemark.systems.disk import count_and_bytes
from tidemark.systems.duckdb_client import DuckDBSystem, connect, identifier, literal, reader_name, release
from tidemark.systems.duckdb_writer import DuckDBDoor
from tidemark.systems.ducklake import catalog as ducklake_catalog
from tidemark.systems.ducklake.options import DuckLakePostgresOptions
from tidemark.systems.in_bucket import HTTPFS, NOTE, Stored, count_and_sum, is_in_bucket, path_of, promise
from tidemark.systems.postgres_catalog import POSTGRES_COMMIT, promised, shown
from tidemark.systems.writers import Door

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

LAKE = "lake"
TABLE_NAME = "trips"
CATALOG_FILE = "catalog.ducklake"  # beside it lies its log, whose name begins with this one
METADATA = f"__ducklake_metadata_{LAKE}"
LOSES_SIGN = "DuckLake 0.3 loses the sign of -0.0 in rows that it inlines"
REFUSES_INFINITY = "DuckLake 0.3 cannot inline infinite numbers into PostgreSQL"
ADDING = f"CALL ducklake_add_data_files('{LAKE}', '{TABLE_NAME}', ?)"
GAVE_UP_COMMIT = "Exceeded the maximum retry count"  # in what DuckLake says of a commit that others overtook

FLUSHED_LOG = "The server flushes its log before it acknowledges the commit (synchronous_commit = on)"
POSTGRES_DURABILITY = Durability(
    f"{FLUSHED_LOG}; the client leaves the Parquet file to the page cache.",
    server_syncs_per_write={Postgres: POSTGRES_COMMIT},
)
FILE_DURABILITY = Durability(
    "The commit is in the catalog file's log, flushed before it is acknowledged.",
    client_syncs_per_write=PerWrite(1, 1.3),  # more where the log is moved into the file
)


class DuckLakeTable(Stored, DuckDBSystem):
    """What all of them share. A subclass says where the catalog is and up to how many rows are inlined."""

    format: ClassVar[str] = "DuckLake"
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(2, 2)  # the file and its folder
    table = f"{LAKE}.{TABLE_NAME}"
    capabilities: frozenset[Capability] = TABLE | {Capability.MERGE, Capability.THREADS}

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if is_in_bucket(options):
            self.extensions = (*self.extensions, HTTPFS)
            self.say(NOTE)

    @property
    def _data(self) -> Path:
        return self.context.directory / "data"

    @property
    def _row_limit(self) -> int:
        """Writes of up to so many rows are inlined."""
        return 0

    @property
    @abstractmethod
    def _catalog_address(self) -> str:
        """Where the catalog is, as DuckLake's ATTACH spells it; without secrets."""

    @abstractmethod
    def _catalog_bytes(self) -> int: ...

    def _attachments(self) -> tuple[str, ...]:
        access = () if self.folder is None else (self.folder.secret(),)
        return (*access, self._attachment(self._catalog_address))

    def _attachment(self, address: str) -> str:
        # The limit is always given: a later DuckLake inlines up to 10 rows when it is not.
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
        return [path_of(row[0]) for row in rows]

    def inlined_rows(self) -> int:
        tables = self._writer.execute(f"SELECT table_name FROM {METADATA}.ducklake_inlined_data_tables").fetchall()
        return sum(self._count(f"{METADATA}.{identifier(name)} WHERE end_snapshot IS NULL") for (name,) in tables)

    def merge(self) -> None:
        self._call(
            f"ducklake_merge_adjacent_files('{LAKE}')",
            # A merge alone removes nothing: older snapshots still need the small files.
            f"ducklake_expire_snapshots('{LAKE}', older_than => now())",
            f"ducklake_cleanup_old_files('{LAKE}', cleanup_all => true)",
        )

    def footprint(self) -> Footprint:
        self._check_inlining()
        data = count_and_sum(self._sizes_below(self._data).values())
        return Footprint(*data, 0, 0, self._catalog_bytes())

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

    def _check_inlining(self) -> None:
        """Raise SystemFailure when rows were inlined in spite of the limit of 0."""
        found = self.inlined_rows()
        if self._row_limit == 0 and found:
            raise SystemFailure(
                f"{self.name}: {found} rows are inlined in the catalog, none may be. The limit of 0 rows that the "
                "catalog was attached with did not hold; what was measured is another system."
            )

    def _call(self, *procedures: str) -> None:
        """Run them to their ends: DuckDB goes on with some only while their rows are fetched."""
        for procedure in procedures:
            self._writer.execute(f"CALL {procedure}").fetchall()

    def _count(self, source: str) -> int:
        return int(self._writer.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0])


class Inlining(DuckLakeTable):
    """Every write stays in the catalog until `flush`, as the thesis's section 4.2.2 sets it."""

    notes: tuple[str, ...] = (LOSES_SIGN,)
    no_bundles: ClassVar[str] = "rows that are inlined are in no file"

    capabilities: frozenset[Capability] = DuckLakeTable.capabilities | {
        Capability.INLINING,
        Capability.FLUSH,
    }

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if release().ducklake_keeps_negative_zero:
            self.withdraw(LOSES_SIGN)

    @property
    def _row_limit(self) -> int:
        return self.context.rows_per_write + 1

    def flush(self) -> None:
        self._call(f"ducklake_flush_inlined_data('{LAKE}')")


class CatalogInPostgres(DuckLakeTable):
    """The catalog is a database of its own in PostgreSQL; its password never appears in SQL."""

    catalog: str = "PostgreSQL"
    # A file's catalog is open to one process at a time, so that nobody can overtake there.
    capabilities: frozenset[Capability] = DuckLakeTable.capabilities | {Capability.COMMIT_RETRY, Capability.WRITERS}
    needs: ClassVar[tuple[type[Service], ...]] = (Postgres,)
    Options: ClassVar[type[Options]] = DuckLakePostgresOptions
    extensions: tuple[str, ...] = ("ducklake", "postgres_scanner")
    durability: Durability = POSTGRES_DURABILITY

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._postgres = cast(Postgres, context.services[Postgres])
        if self._postgres.is_external:
            self.catalog = f"PostgreSQL, {USERS_OWN}"
        self._database = f"ducklake_{secrets.token_hex(6)}"
        self._address = ""
        self._empty_bytes = 0

    def create(self, schema: pa.Schema) -> None:
        address = conninfo_to_dict(self._postgres.create_database(self._database))
        self._empty_bytes = self._postgres.database_bytes(self._database)
        password = address.pop("password", None)
        if password is not None:
            address["passfile"] = str(self._write_passfile(str(password)))
        self._address = make_conninfo(**{key: str(value) for key, value in address.items()})
        if self.folder is not None:
            self.durability = promise(f"{FLUSHED_LOG}.")
        self.durability = promised(self.durability, self.durability_level, self._postgres, self._database)
        super().create(schema)

    def _write_passfile(self, password: str) -> Path:
        """Where libpq finds the password, so that neither SQL nor an argument list holds it."""
        path = self.context.directory / ".pgpass"
        escaped = password.replace("\\", "\\\\").replace(":", "\\:")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"*:*:*:*:{escaped}\n")
        return path

    @property
    def reader(self) -> str:
        return ducklake_catalog.reader_name()

    def ids(self) -> pa.ChunkedArray:
        with self._postgres.connect(self._database) as catalog:
            return ducklake_catalog.ids(catalog, TABLE_NAME, self.folder and self.folder.file_system())

    def commits(self) -> int:
        with self._postgres.connect(self._database) as catalog:
            return ducklake_catalog.commits(catalog)

    def _attachments(self) -> tuple[str, ...]:
        return (*super()._attachments(), *self.options.statements)

    def door(self) -> Door:
        given = self.context
        return DuckDBDoor(
            self.extensions,
            given.directory,
            given.threads,
            self._attachments(),
            self.table,
            GAVE_UP_COMMIT,
            files=self._data,
            adding=ADDING,
            codec=given.codec,
        )

    def refused(self) -> int:
        with self._postgres.connect(self._database) as catalog:
            return ducklake_catalog.refused(catalog)

    @property
    def _catalog_address(self) -> str:
        return f"postgres:{self._address}"

    def _catalog_bytes(self) -> int:
        return self._postgres.database_bytes(self._database) - self._empty_bytes

    def settings(self) -> Mapping[str, str]:
        return {**super().settings(), **shown(self._postgres.durability_settings(self._database))}


class CatalogInFile(DuckLakeTable):
    """The catalog is a DuckDB file, which one DuckDB at a time may have open."""

    catalog: str = "DuckDB file"
    extensions: tuple[str, ...] = ("ducklake",)
    durability: Durability = FILE_DURABILITY

    @classmethod
    def refuses_writers(cls, options: Any) -> str | None:
        del options
        return "its catalog is a DuckDB file, which one process at a time may have open"

    @property
    def _catalog_address(self) -> str:
        return str(self.context.directory / CATALOG_FILE)

    def _catalog_bytes(self) -> int:
        _, size = count_and_bytes(self.context.directory.glob(f"{CATALOG_FILE}*"))
        return size

    @property
    def reader(self) -> str:
        return f"{reader_name('ducklake')}, as the writer, on a copy of the catalog: no other can read its file"

    @contextmanager
    def _reader(self) -> Iterator[duckdb.DuckDBPyConnection]:
        # Two DuckDBs cannot have one file open, and a writer that closed it for the reader's sake would commit what
        # it holds back, write its log into the file and start anew. A copy shows what is committed, and only that.
        beside = self.context.directory / ".reader"
        beside.mkdir()
        try:
            for path in self.context.directory.glob(f"{CATALOG_FILE}*"):
                shutil.copyfile(path, beside / path.name)
            with connect(self.extensions, self.context.directory) as reader:
                reader.execute(self._attachment(str(beside / CATALOG_FILE)))
                yield reader
        finally:
            shutil.rmtree(beside)


class DuckLake(CatalogInPostgres):
    name: ClassVar[str] = "ducklake"
    title: ClassVar[str] = "DuckLake"
    in_thesis: ClassVar[bool] = True
    capabilities: frozenset[Capability] = CatalogInPostgres.capabilities | {Capability.BUNDLES}


class DuckLakeInlined(Inlining, CatalogInFile):
    full_syncs_per_write: ClassVar[PerWrite] = FILE_DURABILITY.client_syncs_per_write  # there is nothing else
    name: ClassVar[str] = "ducklake-inlined"
    title: ClassVar[str] = "DuckLake + inlining"
    in_thesis: ClassVar[bool] = True


class DuckLakeInlinedPostgres(Inlining, CatalogInPostgres):
    full_syncs_per_write: ClassVar[PerWrite] = NONE_PER_WRITE  # the commit holds the rows
    name: ClassVar[str] = "ducklake-inlined-postgres"
    title: ClassVar[str] = "DuckLake + inlining (PostgreSQL)"
    notes: tuple[str, ...] = (*Inlining.notes, REFUSES_INFINITY)
    capabilities: frozenset[Capability] = (Inlining.capabilities | CatalogInPostgres.capabilities) - {
        Capability.INFINITY
    }

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if Capability.INFINITY in self.capabilities:
            self.withdraw(REFUSES_INFINITY)

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        return frozenset({Capability.INFINITY} if release().ducklake_inlines_infinity else ())
