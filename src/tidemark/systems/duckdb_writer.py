"""A DuckDB of its own in a further process, attached to a table that another one made."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.systems.duckdb_client import connect
from tidemark.systems.writers import Door, Fate, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class DuckDBDoor(Door):
    """`attachments` are SQL that makes the table reachable as `table`; `conflict` is what a refused commit says."""

    extensions: tuple[str, ...]
    directory: Path
    threads: int
    attachments: tuple[str, ...] = field(repr=False)  # may hold secrets
    table: str
    conflict: str

    def open(self) -> DuckDBWriter:
        return DuckDBWriter(self)


class DuckDBWriter(TableWriter):
    def __init__(self, door: DuckDBDoor) -> None:
        import duckdb

        self._conflict = door.conflict
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

    def fate(self, error: Exception) -> Fate:
        if isinstance(error, self._refusal) and self._conflict in str(error):
            return Fate.CONFLICT
        return Fate.FAILED if isinstance(error, self._certain) else Fate.UNKNOWN

    def close(self) -> None:
        self._connection.close()
