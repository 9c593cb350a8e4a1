"""DuckLake with its catalog in a file, of DuckDB or of SQLite."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from tidemark.systems.base import Capability, Context, Durability, PerWrite
from tidemark.systems.catalogs.databases import Ask, open_sqlite, sqlite_settings
from tidemark.systems.duckdb_client import DUCKDB, DuckDBReadClient, open_reader, reader_name
from tidemark.systems.ducklake.table import DuckLakeTable, Inlining, SharedCatalog
from tidemark.systems.tables import count_and_bytes

CATALOG_FILE = "catalog.ducklake"  # its WAL lies next to it, with this name as prefix
FILE_DURABILITY = Durability(
    "The commit is in the catalog file's log, flushed before it is acknowledged.",
    client_syncs_per_write=PerWrite(1, 1.3),  # more if the WAL is checkpointed into the file
)


class DuckLakeInlined(Inlining):
    """DuckLake with its catalog in a DuckDB file, which only one DuckDB at a time can open."""

    name: ClassVar[str] = "ducklake-inlined"
    title: ClassVar[str] = "DuckLake + inlining"
    in_thesis: ClassVar[bool] = True
    catalog: str = "DuckDB file"
    extensions: tuple[str, ...] = ("ducklake",)
    durability: Durability = FILE_DURABILITY
    full_syncs_per_write: ClassVar[PerWrite] = FILE_DURABILITY.client_syncs_per_write  # there are no other files

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if options.inline_rows is not None:
            summary = f"{self.durability.summary} A Parquet file that a write makes is left to the page cache."
            self.durability = replace(self.durability, summary=summary)

    @classmethod
    def refuses_writers(cls, options: Any) -> str | None:
        del options
        return "its catalog is a DuckDB file, which one process at a time may have open"

    @property
    def _catalog_address(self) -> str:
        return str(self.context.directory / CATALOG_FILE)

    def _catalog_bytes(self) -> int:
        return count_and_bytes(self.context.directory.glob(f"{CATALOG_FILE}*"))[1]

    @property
    def reader(self) -> str:
        return f"{reader_name('ducklake')}, as the writer, on a copy of the catalog: no other can read its file"

    @contextmanager
    def open_reader(self) -> Iterator[DuckDBReadClient]:
        # Two DuckDBs cannot open one file, and a writer that closed it for the reader would commit what it holds back,
        # checkpoint its WAL into the file and start again. A copy shows exactly what is committed.
        beside = self.context.directory / ".reader"
        beside.mkdir()
        try:
            for path in self.context.directory.glob(f"{CATALOG_FILE}*"):
                shutil.copyfile(path, beside / path.name)
            attachment = self._attachment(str(beside / CATALOG_FILE))
            with open_reader(self.extensions, self.context.directory, (attachment,), self.table) as other:
                yield other
        finally:
            shutil.rmtree(beside)


FILE = "catalog.sqlite"  # its rollback journal lies next to it, with this name as prefix
LOSES_NAN = "DuckLake 0.3 makes null of NaN in rows that it inlines into SQLite"
LOCKED = "database is locked"  # for a transaction that was rolled back, or that SQLite never committed
GIVES_UP = "a commit that finds the file locked by another writer is refused, and DuckLake does not try it again"
CLINGS = (
    "a client whose commit meets a reader, or that reads while another one commits, keeps the file locked for all "
    "others until its process ends"
)


class DuckLakeSqlite(SharedCatalog):
    name: ClassVar[str] = "ducklake-sqlite"
    title: ClassVar[str] = "DuckLake (SQLite)"
    catalog: str = "SQLite file"
    notes: tuple[str, ...] = (GIVES_UP, CLINGS)
    look_differs: ClassVar[str] = (
        "measured without readers' locks: a reader that uses DuckLake makes the writer's commits fail"
    )
    conflicts: ClassVar[tuple[str, ...]] = (*DuckLakeTable.conflicts, LOCKED)
    opens_within_s: ClassVar[float] = 10.0
    milliseconds: ClassVar[str] = "(julianday(replace(snapshot_time, '+00', '')) - 2440587.5) * 86400000"
    extensions: tuple[str, ...] = ("ducklake", "sqlite_scanner")
    capabilities: frozenset[Capability] = SharedCatalog.capabilities | {Capability.BUNDLES}
    durability: Durability = Durability(
        "SQLite flushes its rollback journal and its file before it acknowledges the commit; the client leaves the "
        "Parquet file to the page cache.",
        client_syncs_per_write=PerWrite(4, 4),
    )
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(8, 8)  # including the journal, a file that a write creates

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.say(LOSES_NAN if self._row_limit and not DUCKDB.release().ducklake_inlines_nan else None)

    @property
    def _path(self) -> Path:
        return self.context.directory / FILE

    @property
    def _catalog_address(self) -> str:
        return f"sqlite:{self._path}"

    def _catalog_bytes(self) -> int:
        return count_and_bytes(self.context.directory.glob(f"{FILE}*"))[1]

    @property
    def _asks_by(self) -> str:
        return f"SQLite {sqlite3.sqlite_version} (the catalog's tables)"

    def _open_query(self) -> AbstractContextManager[Ask]:
        return open_sqlite(self._path)

    def _open_look(self) -> AbstractContextManager[Ask]:
        # A lock would refuse the writer's commit (GIVES_UP, CLINGS). Without one, a commit is seen some ms too early.
        return open_sqlite(self._path, locks=False)

    def settings(self) -> Mapping[str, str]:
        own = {f"SQLite {name}": value for name, value in sqlite_settings(self._path).items()}
        return {**super().settings(), **own}
