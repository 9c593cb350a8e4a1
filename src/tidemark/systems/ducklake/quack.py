"""DuckLake with its catalog in another process's DuckDB, accessed by DuckDB's Quack protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import ClassVar, cast

from tidemark.services.base import Service
from tidemark.services.quack import Quack, QuackCatalog
from tidemark.systems.base import Capability, Durability, PerWrite
from tidemark.systems.catalogs.databases import Ask
from tidemark.systems.duckdb_client import connect, literal, reader_name
from tidemark.systems.ducklake.table import SharedCatalog

PROTOCOL = ("httpfs", "quack")
COMMIT = PerWrite(6, 6.5)  # more if the WAL is checkpointed into the file
NOT_ATOMIC = (
    "a commit is six statements, each of them a transaction of the server's: one that is interrupted leaves a part of "
    "itself in the catalog"
)


class DuckLakeQuack(SharedCatalog):
    name: ClassVar[str] = "ducklake-quack"
    title: ClassVar[str] = "DuckLake (Quack)"
    catalog: str = "DuckDB over Quack"
    notes: tuple[str, ...] = (NOT_ATOMIC,)
    extensions: tuple[str, ...] = ("ducklake", *PROTOCOL)
    needs: ClassVar[tuple[type[Service], ...]] = (Quack,)
    capabilities: frozenset[Capability] = SharedCatalog.capabilities | {Capability.BUNDLES}
    durability: Durability = Durability(
        "The server's DuckDB flushes its log at each of the six statements that a commit is; the client leaves the "
        "Parquet file to the page cache.",
        server_syncs_per_write={Quack: COMMIT},
    )

    @cached_property
    def _catalog(self) -> QuackCatalog:
        return cast(Quack, self.context.services[Quack]).make_catalog()

    @property
    def _catalog_address(self) -> str:
        return self._catalog.address

    def _attachments(self) -> tuple[str, ...]:
        return (self._catalog.secret(), *super()._attachments())

    def _catalog_bytes(self) -> int:
        return self._catalog.size()

    @property
    def _asks_by(self) -> str:
        return f"{reader_name('quack')} (the catalog's tables, without DuckLake)"

    @contextmanager
    def _open_query(self) -> Iterator[Ask]:
        """Yield a function that has the server answer a query."""
        with connect(PROTOCOL, self.context.directory) as connection:
            connection.execute(self._catalog.secret())
            address = literal(self._catalog.address)
            yield lambda query: connection.sql(f"FROM quack_query({address}, {literal(query)})").fetchall()
