"""Counters of a catalog's database, exact at any moment; PostgreSQL's own statistics are delayed."""

from __future__ import annotations

import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from psycopg.conninfo import make_conninfo

from tidemark.services.base import Service, files_below
from tidemark.services.postgres import Postgres
from tidemark.services.proxies import DelayProxy
from tidemark.systems.base import NONE_PER_WRITE, Context, Durability, PerWrite
from tidemark.systems.postgres_catalog import POSTGRES_COMMIT, without_password

POSTGRES_COUNTERS = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint, pg_current_wal_lsn() - '0/0'::pg_lsn"
CHANGES_AT = 24  # in the header of an SQLite file: four bytes, which each write transaction increments


def postgres_counters(postgres: Postgres, database: str) -> Mapping[str, int]:
    """Return the number of write transactions and the bytes of WAL since the server was created."""
    with postgres.connect(database, autocommit=True) as connection:
        row = connection.execute(POSTGRES_COUNTERS).fetchone()
    assert row is not None
    return {"write_transactions": int(row[0]), "wal_bytes": int(row[1])}


COUNTED = "strace of 20 updates of a table"
type Ask = Callable[[str], Sequence[tuple[Any, ...]]]
LETTING_GO_S = 10.0  # within which a client that is done closes its file


@contextmanager
def open_postgres(postgres: Postgres, database: str) -> Iterator[Ask]:
    with postgres.connect(database) as connection:
        yield lambda query: connection.execute(query.encode()).fetchall()


class Database(ABC):
    """Database of one run; `flushes` states what a commit has on the disk, `asked` which settings are read back."""

    title: ClassVar[str]  # as figures spell it
    needs: ClassVar[tuple[type[Service], ...]] = ()
    flushes: ClassVar[str]
    asked: ClassVar[str]
    client_syncs: ClassVar[PerWrite] = NONE_PER_WRITE  # per update
    server_syncs: ClassVar[Mapping[type[Service], PerWrite]] = MappingProxyType({})

    def __init__(self, context: Context) -> None:
        self.context = context
        self.isolation: str | None = None  # of transactions whose client names none; None: neither set nor read back

    @classmethod
    def durability(cls, beside: str = "") -> Durability:
        """Return the durability of a catalog in this database; `beside` describes its metadata files."""
        summary = f"{cls.flushes}; {beside}" if beside else cls.flushes
        return Durability(summary, cls.client_syncs, cls.server_syncs, COUNTED, cls.asked)

    @abstractmethod
    def address(self) -> str:
        """Return the address for clients, without a password; create what must exist before they connect."""

    @abstractmethod
    def open_query(self) -> AbstractContextManager[Ask]:
        """Return a context manager for SQL queries that are independent of the library that writes to the database."""

    @abstractmethod
    def size(self) -> int:
        """Return the size on the disk in bytes."""

    def counters(self) -> Mapping[str, int]:
        """Return the counters so far; empty if the database has none."""
        return {}

    @property
    def postgres(self) -> tuple[Postgres, str] | None:
        """PostgreSQL server and the name of this database in it; None for other databases."""
        return None

    @abstractmethod
    def settings(self) -> Mapping[str, str]:
        """Return the settings that determine how durable a commit is, read from the database."""

    def close(self) -> None:  # noqa: B027 - files are all there
        """Remove what is not in the run's own folder; safe to call twice."""


class PostgresDatabase(Database):
    title = "PostgreSQL"
    needs: ClassVar[tuple[type[Service], ...]] = (Postgres,)
    flushes = "PostgreSQL flushes its log at each commit (synchronous_commit)"
    asked = "fsync, synchronous_commit and wal_sync_method read from the running server"
    server_syncs: ClassVar[Mapping[type[Service], PerWrite]] = {Postgres: POSTGRES_COMMIT}

    @property
    def _postgres(self) -> Postgres:
        return self.context.server(Postgres)

    @cached_property
    def _name(self) -> str:
        name = f"tidemark_catalog_{secrets.token_hex(6)}"
        self._postgres.create_database(name)
        if self.isolation is not None:
            self._postgres.isolate(name, self.isolation)
        return name

    def address(self) -> str:
        """Return a libpq connection string that refers to a password file; it uses a proxy if there is one."""
        address = without_password(self._postgres.database_dsn(self._name), self.context.directory)
        for service in self.context.services.values():
            if isinstance(service, DelayProxy) and service.before is self._postgres:
                host, port = service.host_and_port()
                address |= {"host": host, "port": str(port)}
        return make_conninfo(**address)

    def open_query(self) -> AbstractContextManager[Ask]:
        return open_postgres(self._postgres, self._name)

    @property
    def postgres(self) -> tuple[Postgres, str] | None:
        return self._postgres, self._name

    def size(self) -> int:
        return self._postgres.database_bytes(self._name)

    def counters(self) -> Mapping[str, int]:
        return postgres_counters(self._postgres, self._name)

    def settings(self) -> Mapping[str, str]:
        found = self._postgres.durability_settings(self._name)
        if self.isolation is None:
            return found
        return {**found, "default_transaction_isolation": self._postgres.isolation(self._name)}

    def close(self) -> None:
        if "_name" in self.__dict__:
            self._postgres.drop_database(self.__dict__.pop("_name"))


class FileDatabase(Database):
    """Database in a file, with the files that its library adds, below the run's own folder."""

    file_name: ClassVar[str]

    @property
    def path(self) -> Path:
        return self.context.directory / "catalog" / self.file_name

    def address(self) -> str:
        self.path.parent.mkdir(exist_ok=True)
        return str(self.path)

    def size(self) -> int:
        return sum(path.stat().st_size for path in files_below(self.path.parent))


@contextmanager
def open_sqlite(path: Path, *, locks: bool = True) -> Iterator[Ask]:
    """Yield a function that answers queries of the file; without `locks`, in the midst of a commit as well."""
    import sqlite3

    way = "mode=ro" if locks else "immutable=1"
    with closing(sqlite3.connect(f"{path.as_uri()}?{way}", uri=True)) as connection:
        yield lambda query: connection.execute(query).fetchall()


def sqlite_settings(path: Path) -> dict[str, str]:
    """Return the settings that determine how durable a commit in the file at `path` is, read from the file."""
    with open_sqlite(path) as ask:
        return {"journal_mode": str(ask("PRAGMA journal_mode")[0][0])}


class SqliteDatabase(FileDatabase):
    title = "SQLite"
    file_name = "catalog.sqlite"
    flushes = "SQLite flushes its rollback journal and its file at each commit"
    asked = "journal_mode read from the file; synchronous is the client's own, which cannot be read from outside"
    client_syncs = PerWrite(4, 4)

    def open_query(self) -> AbstractContextManager[Ask]:
        return open_sqlite(self.path)

    def counters(self) -> Mapping[str, int]:
        """Return the number of write transactions with a rollback journal; 0 if the file does not exist yet."""
        header = b""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            header = file.read(CHANGES_AT + 4)
        return {"write_transactions": int.from_bytes(header[CHANGES_AT:], "big")}

    def settings(self) -> Mapping[str, str]:
        return sqlite_settings(self.path)


class DuckDBDatabase(FileDatabase):
    title = "a DuckDB file"
    file_name = "catalog.duckdb"
    flushes = "DuckDB flushes its write-ahead log at each commit"
    client_syncs = PerWrite(1, 1.4)  # more than one if the WAL is checkpointed into the file
    asked = "checkpoint_threshold read from a DuckDB that has the file open"

    @contextmanager
    def open_query(self) -> Iterator[Ask]:
        """Yield a query function as soon as no client holds the file."""
        import duckdb

        until = time.monotonic() + LETTING_GO_S
        while True:
            try:
                connection = duckdb.connect(self.path, read_only=True)
                break
            except duckdb.IOException:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        with connection:
            yield lambda query: connection.execute(query).fetchall()

    def settings(self) -> Mapping[str, str]:
        with self.open_query() as ask:
            return {"checkpoint_threshold": str(ask("SELECT current_setting('checkpoint_threshold')")[0][0])}
