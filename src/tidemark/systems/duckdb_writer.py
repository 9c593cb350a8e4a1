"""A DuckDB of its own in a further process, attached to a table that another one made."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.systems.duckdb_client import connect, literal
from tidemark.systems.writers import DataFile, Door, Fate, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DuckDBDoor(Door):
    """`attachments` are SQL that makes the table reachable as `table`; `conflict` is what a refused commit says.

    Where files can be made part of the table, `files` is the folder for them, and `adding` SQL that adds one.
    """

    extensions: tuple[str, ...]
    directory: Path
    threads: int
    attachments: tuple[str, ...] = field(repr=False)  # may hold secrets
    table: str
    conflict: str
    files: Path | None = None
    adding: str = ""
    codec: str = "snappy"

    def open(self) -> DuckDBWriter:
        return DuckDBWriter(self)


class DuckDBWriter(TableWriter):
    def __init__(self, door: DuckDBDoor) -> None:
        import duckdb

        self._conflict, self._error = door.conflict, duckdb.Error
        self._files, self._adding, self._codec = door.files, door.adding, door.codec
        # Raised while a statement is bound or its rows are made, before anything is committed.
        self._certain = (duckdb.BinderException, duckdb.CatalogException, duckdb.ConversionException)
        self._refusal = duckdb.TransactionException
        self._connection = connect(door.extensions, door.directory, door.threads)
        for statement in door.attachments:
            self._connection.execute(statement)
        self._execute = self._connection.execute
        self._insert = f"INSERT INTO {door.table} SELECT * FROM rows"

    def write(self, rows: pa.Table) -> None:  # noqa: ARG002 - DuckDB finds `rows` in this frame, by its name
        self._execute(self._insert)

    def stage(self, rows: pa.Table) -> DataFile:
        if self._files is None:
            return super().stage(rows)
        self._files.mkdir(parents=True, exist_ok=True)
        path = self._files / f"{secrets.token_hex(16)}.parquet"
        self._execute(f"COPY rows TO {literal(path)} (FORMAT parquet, COMPRESSION {self._codec})")
        return DataFile(str(path), path.stat().st_size, rows.num_rows)

    def register(self, files: Sequence[DataFile]) -> None:
        self._execute("BEGIN")
        try:
            for file in files:
                self._execute(self._adding, [file.path]).fetchall()
            self._execute("COMMIT")
        except Exception:
            with suppress(self._error):  # there is none any more where the commit itself was refused
                self._execute("ROLLBACK")
            raise

    def fate(self, error: Exception) -> Fate:
        if isinstance(error, self._refusal) and self._conflict in str(error):
            return Fate.CONFLICT
        return Fate.FAILED if isinstance(error, self._certain) else Fate.UNKNOWN

    def close(self) -> None:
        self._connection.close()
