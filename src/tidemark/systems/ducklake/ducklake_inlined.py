"""DuckLake with its catalog in a DuckDB file, which also holds the rows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from tidemark.systems.base import (
    Context,
    Durability,
    PerWrite,
)
from tidemark.systems.disk import count_and_bytes
from tidemark.systems.duckdb_client import DuckDBAsker, asking, reader_name
from tidemark.systems.ducklake.table import DuckLakeTable, Inlining

CATALOG_FILE = "catalog.ducklake"  # its WAL lies next to it, with this name as prefix
FILE_DURABILITY = Durability(
    "The commit is in the catalog file's log, flushed before it is acknowledged.",
    client_syncs_per_write=PerWrite(1, 1.3),  # more if the WAL is checkpointed into the file
)


class CatalogInFile(DuckLakeTable):
    """DuckLake with its catalog in a DuckDB file, which only one DuckDB at a time can open."""

    catalog: str = "DuckDB file"
    extensions: tuple[str, ...] = ("ducklake",)
    durability: Durability = FILE_DURABILITY

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
        _, size = count_and_bytes(self.context.directory.glob(f"{CATALOG_FILE}*"))
        return size

    @property
    def reader(self) -> str:
        return f"{reader_name('ducklake')}, as the writer, on a copy of the catalog: no other can read its file"

    @contextmanager
    def asking(self) -> Iterator[DuckDBAsker]:
        # Two DuckDBs cannot open one file, and a writer that closed it for the reader would commit what it holds back,
        # checkpoint its WAL into the file and start again. A copy shows exactly what is committed.
        beside = self.context.directory / ".reader"
        beside.mkdir()
        try:
            for path in self.context.directory.glob(f"{CATALOG_FILE}*"):
                shutil.copyfile(path, beside / path.name)
            attachment = self._attachment(str(beside / CATALOG_FILE))
            with asking(self.extensions, self.context.directory, (attachment,), self.table) as other:
                yield other
        finally:
            shutil.rmtree(beside)


class DuckLakeInlined(Inlining, CatalogInFile):
    full_syncs_per_write: ClassVar[PerWrite] = FILE_DURABILITY.client_syncs_per_write  # there are no other files
    name: ClassVar[str] = "ducklake-inlined"
    title: ClassVar[str] = "DuckLake + inlining"
    in_thesis: ClassVar[bool] = True
