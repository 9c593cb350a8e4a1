"""DuckLake with its catalog on a server: in PostgreSQL, with or without inlined rows, or in a process with DuckDB."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import psycopg
from psycopg.conninfo import make_conninfo

from tidemark.services.base import Service
from tidemark.services.postgres import Postgres
from tidemark.services.quack import Quack, QuackCatalog
from tidemark.systems.base import NONE_PER_WRITE, USERS_OWN, Capability, Context, Durability, Options, PerWrite
from tidemark.systems.catalogs.databases import Ask, open_postgres
from tidemark.systems.duckdb_client import DUCKDB, connect, literal, reader_name
from tidemark.systems.ducklake.table import DuckLakePostgresOptions, Inlining, SharedCatalog, number_in
from tidemark.systems.object_store import promise
from tidemark.systems.postgres_catalog import POSTGRES_COMMIT, promised, shown, without_password

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

# Transactions that PostgreSQL rolled back in the catalog's database: commits that lost to others.
REFUSED = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
REFUSES_INFINITY = "DuckLake 0.3 cannot inline infinite numbers into PostgreSQL"
FLUSHED_LOG = "The server flushes its log before it acknowledges the commit (synchronous_commit = on)"
POSTGRES_DURABILITY = Durability(
    f"{FLUSHED_LOG}; the client leaves the Parquet file to the page cache.",
    server_syncs_per_write={Postgres: POSTGRES_COMMIT},
)
PROTOCOL = ("httpfs", "quack")
QUACK_COMMIT = PerWrite(6, 6.5)  # more if the WAL is checkpointed into the file
NOT_ATOMIC = (
    "a commit is six statements, each of them a transaction of the server's: one that is interrupted leaves a part of "
    "itself in the catalog"
)


class CatalogInPostgres(SharedCatalog):
    """DuckLake with its own catalog database in PostgreSQL; its password never appears in SQL."""

    catalog: str = "PostgreSQL"
    needs: ClassVar[tuple[type[Service], ...]] = (Postgres,)
    Options: ClassVar[type[Options]] = DuckLakePostgresOptions
    extensions: tuple[str, ...] = ("ducklake", "postgres_scanner")
    durability: Durability = POSTGRES_DURABILITY

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.withdraw(REFUSES_INFINITY)
        if self._row_limit and not DUCKDB.release().ducklake_inlines_infinity:
            self.capabilities -= {Capability.INFINITY}
            self.say(REFUSES_INFINITY)
        else:
            self.capabilities |= {Capability.INFINITY}
        self._postgres = context.server(Postgres)
        if self._postgres.is_external:
            self.catalog = f"PostgreSQL, {USERS_OWN}"
        self._database = f"ducklake_{secrets.token_hex(6)}"
        self._address = ""
        self._empty_bytes = 0

    def create(self, schema: pa.Schema) -> None:
        address = without_password(self._postgres.create_database(self._database), self.context.directory)
        self._empty_bytes = self._postgres.database_bytes(self._database)
        self._address = make_conninfo(**address)
        if self.folder is not None:
            self.durability = promise(f"{FLUSHED_LOG}.")
        self.durability = promised(self.durability, self.durability_level, self._postgres, self._database)
        super().create(schema)

    def reached_by(self, services: Mapping[type[Service], Service]) -> Self:
        other = super().reached_by(services)
        other._postgres = other.context.server(Postgres)
        address = other._postgres.database_dsn(self._database)
        other._address = make_conninfo(**without_password(address, self.context.directory))
        return other

    @property
    def _asks_by(self) -> str:
        return f"psycopg {psycopg.__version__} (the catalog's tables)"

    def _open_query(self) -> AbstractContextManager[Ask]:
        return open_postgres(self._postgres, self._database)

    def refused(self) -> int:
        # A single writer has no such transactions. PostgreSQL counts those of a session once it has ended.
        with self._open_query() as ask:
            return number_in(ask(REFUSED))

    @property
    def _catalog_address(self) -> str:
        return f"postgres:{self._address}"

    def _catalog_bytes(self) -> int:
        return self._postgres.database_bytes(self._database) - self._empty_bytes

    def settings(self) -> Mapping[str, str]:
        return {**super().settings(), **shown(self._postgres.durability_settings(self._database))}

    def drop(self) -> None:
        """Drop the catalog's database, some 300 files; if that fails, it goes with the server."""
        if not self._postgres.has_ended():
            with suppress(psycopg.Error):
                self._postgres.drop_database(self._database)


class DuckLake(CatalogInPostgres):
    name: ClassVar[str] = "ducklake"
    title: ClassVar[str] = "DuckLake"
    in_thesis: ClassVar[bool] = True
    capabilities: frozenset[Capability] = CatalogInPostgres.capabilities | {Capability.BUNDLES, Capability.PLANS}


class DuckLakeInlinedPostgres(Inlining, CatalogInPostgres):
    full_syncs_per_write: ClassVar[PerWrite] = NONE_PER_WRITE  # the commit holds the rows
    name: ClassVar[str] = "ducklake-inlined-postgres"
    title: ClassVar[str] = "DuckLake + inlining (PostgreSQL)"
    notes: tuple[str, ...] = (*Inlining.notes, REFUSES_INFINITY)
    capabilities: frozenset[Capability] = (Inlining.capabilities | SharedCatalog.capabilities) - {Capability.INFINITY}

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        return frozenset({Capability.INFINITY} if DUCKDB.release().ducklake_inlines_infinity else ())


class DuckLakeQuack(SharedCatalog):
    """DuckLake with its catalog in another process's DuckDB, accessed by DuckDB's Quack protocol."""

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
        server_syncs_per_write={Quack: QUACK_COMMIT},
    )

    @cached_property
    def _catalog(self) -> QuackCatalog:
        return self.context.server(Quack).make_catalog()

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

    @cached_property
    def _asking(self) -> duckdb.DuckDBPyConnection:
        """DuckDB that asks the server; opening one takes longer than an answer."""
        connection = connect(PROTOCOL, self.context.directory, check=False)
        connection.execute(self._catalog.secret())
        return connection

    @contextmanager
    def _open_query(self) -> Iterator[Ask]:
        """Yield a function that has the server answer a query."""
        with self._asking.cursor() as cursor:
            address = literal(self._catalog.address)
            yield lambda query: cursor.sql(f"FROM quack_query({address}, {literal(query)})").fetchall()

    def close(self) -> None:
        super().close()
        if "_asking" in self.__dict__:
            self.__dict__.pop("_asking").close()
