"""Tables that DuckDB writes: by the DuckDB that created one, and by those of other processes, attached to it."""

from __future__ import annotations

import re
import secrets
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.systems import duckdb_client
from tidemark.systems.base import Context
from tidemark.systems.duckdb_client import DUCKDB, DuckDBReadClient, connect, literal, transaction
from tidemark.systems.tables import Filter, TableSystem
from tidemark.systems.writers import ClientFactory, CommitStatus, DataFile, IdempotencyKey, TableWriter

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

FILES_READ = re.compile(r"Total Files Read:\s*(\d+)")  # in the output of EXPLAIN ANALYZE
NO_FILES = "EMPTY_RESULT"
AGAIN_S = 0.02  # between two attempts to open a catalog that others have locked


@dataclass(frozen=True, slots=True)
class DuckDBClientFactory(ClientFactory):
    """Factory of clients for a table that the SQL of `attachments` makes available as `table`.

    `conflicts` are messages of refused commits. If the table accepts files, `files` is their folder, and `adding` is
    the SQL that adds one. `maintenance` is SQL by operation. `patience_s` is how many seconds to retry attachments that
    others block with locks. `marking` is SQL that stores a token with the current commit, `marked` counts commits that
    have one; without them, a batch is looked up by its first row.
    """

    extensions: tuple[str, ...]
    directory: Path
    threads: int
    attachments: tuple[str, ...] = field(repr=False)  # may hold secrets
    table: str
    conflicts: tuple[str, ...]
    files: Path | None = None
    adding: str = ""
    codec: str = "snappy"
    maintenance: tuple[tuple[str, str], ...] = ()
    patience_s: float = 0.0
    marking: str = ""
    marked: str = ""

    def open(self) -> DuckDBWriter:
        return DuckDBWriter(self)


class DuckDBWriter(TableWriter):
    def __init__(self, client_factory: DuckDBClientFactory) -> None:
        import duckdb

        self._given, self._error = client_factory, duckdb.Error
        # Raised while a statement is bound or its rows are computed, before anything is committed.
        self._certain = (duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException)
        self._refusal = duckdb.TransactionException
        self._connection = connect(client_factory.extensions, client_factory.directory, client_factory.threads)
        self._execute = self._connection.execute
        self._transaction = partial(transaction, self._connection)
        deadline = time.monotonic() + client_factory.patience_s
        for statement in client_factory.attachments:
            self._until_done(statement, deadline)
        self._insert = f"INSERT INTO {client_factory.table} SELECT * FROM rows"
        self._first = f"SELECT count(*) FROM {client_factory.table} WHERE id = ?"
        self._count = f"SELECT count(*), max(id) FROM {client_factory.table}"

    def _until_done(self, statement: str, deadline: float) -> None:
        while True:
            try:
                self._execute(statement)
                return
            except self._error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(AGAIN_S)

    def write(self, rows: pa.Table) -> None:  # noqa: ARG002 - DuckDB finds `rows` in this frame, by its name
        self._execute(self._insert)

    def before_commit(self, do: Callable[[], None]) -> None:
        def write(rows: pa.Table) -> None:  # noqa: ARG001 - as in `write`
            with self._transaction():
                self._execute(self._insert)

        self._transaction = partial(transaction, self._connection, do)
        self.write = write  # type: ignore[method-assign]

    def stage(self, rows: pa.Table) -> DataFile:
        if self._given.files is None:
            return super().stage(rows)
        self._given.files.mkdir(parents=True, exist_ok=True)
        path = self._given.files / f"{secrets.token_hex(16)}.parquet"
        self._execute(f"COPY rows TO {literal(path)} (FORMAT parquet, COMPRESSION {self._given.codec})")
        return DataFile(str(path), path.stat().st_size, rows.num_rows)

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        if not self._given.marking:
            self.write(rows)
            return
        with self._transaction():
            self._execute(self._insert)
            self._execute(self._given.marking.format(literal(str(key)))).fetchall()

    def has(self, key: IdempotencyKey) -> bool:
        if self._given.marked:
            found = self._execute(self._given.marked.format(literal(str(key)))).fetchall()
        else:
            found = self._execute(self._first, [key.first_id]).fetchall()
        return bool(found[0][0])

    def register(self, files: Sequence[DataFile]) -> None:
        with self._transaction():
            for file in files:
                self._execute(self._given.adding, [file.path]).fetchall()

    def count(self) -> int:
        return int(self._execute(self._count).fetchall()[0][0])

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        return {name: partial(self._to_its_end, sql) for name, sql in self._given.maintenance}

    def _to_its_end(self, sql: str) -> None:
        # DuckDB continues some procedures only while their rows are fetched.
        self._execute(sql).fetchall()

    def commit_status(self, error: Exception) -> CommitStatus:
        # For a refusal that an extension passes on, DuckDB raises no specific class.
        refused = isinstance(error, self._refusal) or type(error) is self._error
        if refused and any(said in str(error) for said in self._given.conflicts):
            return CommitStatus.CONFLICT
        return CommitStatus.FAILED if isinstance(error, self._certain) else CommitStatus.UNKNOWN

    def close(self) -> None:
        self._connection.close()


class DuckDBSystem(TableSystem):
    """Table that one DuckDB writes and another DuckDB reads; the two share nothing but the disk."""

    client: ClassVar[str] = "DuckDB"
    extensions: tuple[str, ...]
    libraries: ClassVar[tuple[str, ...]] = ("duckdb", "_duckdb", "duckdb_extension_*")
    table: str  # its name in SQL after `_attach`
    conflicts: ClassVar[tuple[str, ...]]  # in a client's message for a refused commit

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.say(DUCKDB.remark())
        self._connection: duckdb.DuckDBPyConnection | None = None

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        del options
        return duckdb_client.missing_extensions(cls.extensions)

    @abstractmethod
    def _attachments(self) -> tuple[str, ...]:
        """Return SQL that makes the table available as `table`."""

    def _attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        for statement in self._attachments():
            connection.execute(statement)

    def _open(self) -> duckdb.DuckDBPyConnection:
        """Open the connection that writes."""
        self._connection = connect(self.extensions, self.context.directory, self.context.threads)
        self._attach(self._connection)
        self._insert = f"INSERT INTO {self.table} SELECT * FROM rows"
        self._execute = self._connection.execute
        return self._connection

    @property
    def _writer(self) -> duckdb.DuckDBPyConnection:
        return self._connection or self._open()

    def open_reader(self) -> AbstractContextManager[DuckDBReadClient]:
        return duckdb_client.open_reader(self.extensions, self.context.directory, self._attachments(), self.table)

    def write(self, rows: pa.Table) -> None:  # noqa: ARG002 - DuckDB finds `rows` in this frame, by its name
        self._execute(self._insert)

    def before_commit(self, do: Callable[[], None]) -> None:
        def write(rows: pa.Table) -> None:  # noqa: ARG001 - as in `write`
            with transaction(self._writer, do):
                self._execute(self._insert)

        self.write = write  # type: ignore[method-assign]

    def add_column(self, name: str) -> None:
        self._execute(f"ALTER TABLE {self.table} ADD COLUMN {name} BIGINT")

    def ids(self) -> pa.ChunkedArray:
        with self.open_reader() as other:
            return other.ids()

    def read(self) -> pa.Table:
        with self.open_reader() as other:
            return other.attached().sql(f"FROM {self.table}").to_arrow_table()

    def answer(self, asked: Filter) -> int:
        return len(self._writer.execute(f"SELECT id FROM {self.table} WHERE {asked.sql}").fetchall())

    def files_to_read(self, asked: Filter) -> int:
        query = f"SELECT id FROM {self.table} WHERE {asked.sql}"
        ((_, plan),) = self._writer.execute(f"EXPLAIN ANALYZE {query}").fetchall()
        read = [int(files) for files in FILES_READ.findall(plan)]
        if not read and NO_FILES not in plan:
            raise SystemFailure(f"{self.name}: the plan of '{query}' tells of no files:\n{plan}")
        return sum(read)

    def settings(self) -> Mapping[str, str]:
        rows = self._writer.execute("SELECT name, value FROM duckdb_settings() WHERE name = 'threads'").fetchall()
        return {name: str(value) for name, value in rows} | {"DuckDB release rules": str(DUCKDB.release())}

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return duckdb_client.versions(cls.extensions)

    def client_factory(self) -> DuckDBClientFactory:
        folder, threads = self.context.directory, self.context.threads
        return DuckDBClientFactory(self.extensions, folder, threads, self._attachments(), self.table, self.conflicts)

    def reconnect(self) -> None:
        self.close()  # `_writer` opens a new connection at its next use

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
