"""Separate DuckDB in another process, attached to a table that the first process created."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.systems.duckdb_client import connect, literal, transaction
from tidemark.systems.writers import ClientFactory, CommitStatus, DataFile, IdempotencyKey, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

AGAIN_S = 0.02  # between two attempts to open a catalog that others have locked


@dataclass(frozen=True, slots=True)
class DuckDBClientFactory(ClientFactory):
    """ClientFactory to a table that the SQL of `attachments` makes available as `table`.

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

        self._conflicts, self._error = client_factory.conflicts, duckdb.Error
        self._files, self._adding, self._codec = client_factory.files, client_factory.adding, client_factory.codec
        self._maintenance = client_factory.maintenance
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
        self._marking, self._marked = client_factory.marking, client_factory.marked
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
        if self._files is None:
            return super().stage(rows)
        self._files.mkdir(parents=True, exist_ok=True)
        path = self._files / f"{secrets.token_hex(16)}.parquet"
        self._execute(f"COPY rows TO {literal(path)} (FORMAT parquet, COMPRESSION {self._codec})")
        return DataFile(str(path), path.stat().st_size, rows.num_rows)

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        if not self._marking:
            self.write(rows)
            return
        with self._transaction():
            self._execute(self._insert)
            self._execute(self._marking.format(literal(str(key)))).fetchall()

    def has(self, key: IdempotencyKey) -> bool:
        if self._marked:
            found = self._execute(self._marked.format(literal(str(key)))).fetchall()
        else:
            found = self._execute(self._first, [key.first_id]).fetchall()
        return bool(found[0][0])

    def register(self, files: Sequence[DataFile]) -> None:
        with self._transaction():
            for file in files:
                self._execute(self._adding, [file.path]).fetchall()

    def count(self) -> int:
        return int(self._execute(self._count).fetchall()[0][0])

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        return {name: partial(self._to_its_end, sql) for name, sql in self._maintenance}

    def _to_its_end(self, sql: str) -> None:
        # DuckDB continues some procedures only while their rows are fetched.
        self._execute(sql).fetchall()

    def commit_status(self, error: Exception) -> CommitStatus:
        # For a refusal that an extension passes on, DuckDB raises no specific class.
        refused = isinstance(error, self._refusal) or type(error) is self._error
        if refused and any(said in str(error) for said in self._conflicts):
            return CommitStatus.CONFLICT
        return CommitStatus.FAILED if isinstance(error, self._certain) else CommitStatus.UNKNOWN

    def close(self) -> None:
        self._connection.close()
