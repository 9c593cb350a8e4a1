"""Paimon's Python client with an existing table, in the process that created it or in another one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.systems.paimon import snapshots
from tidemark.systems.writers import Door, Fate, TableWriter, Token

if TYPE_CHECKING:
    import pyarrow as pa

DATABASE, TABLE = "tidemark", "trips"
OVERTAKEN = "commit conflicts between multiple jobs"  # in its message after the last retry


def open_catalog(warehouse: Path) -> Any:
    from pypaimon import CatalogFactory

    return CatalogFactory.create({"warehouse": str(warehouse)})


def folder_of(warehouse: Path) -> Path:
    """Return the table's folder in a warehouse of the file system."""
    return warehouse / f"{DATABASE}.db" / TABLE


@dataclass(frozen=True, slots=True)
class PaimonDoor(Door):
    warehouse: Path

    def open(self) -> PaimonWriter:
        return PaimonWriter(self.warehouse, open_catalog(self.warehouse).get_table(f"{DATABASE}.{TABLE}"))


class PaimonWriter(TableWriter):
    """Stream writer, whose commits have a user that is unique to it, and an increasing number."""

    def __init__(self, warehouse: Path, table: Any) -> None:
        self._folder, self._table = folder_of(warehouse), table
        self._user, self._number = secrets.token_hex(16), 0
        self._begin(self._user)

    def _begin(self, user: str) -> None:
        builder = self._table.new_stream_write_builder()
        builder.commit_user = self._by = user
        self._write, self._commit = builder.new_write(), builder.new_commit()

    def write(self, rows: pa.Table) -> None:
        self._number += 1
        self._append(rows, self._number)

    def _append(self, rows: pa.Table, number: int) -> None:
        self._write.write_arrow(rows)
        self._commit.commit(self._write.prepare_commit(number), number)

    def write_known(self, rows: pa.Table, token: Token) -> None:
        if self._by != token.writer:
            self._end()
            self._begin(token.writer)
        self._append(rows, token.number)

    def has(self, token: Token) -> bool:
        for number in reversed(snapshots.numbers(self._folder)):
            found = snapshots.snapshot(self._folder, number)
            if found.user == token.writer:
                return found.identifier >= token.number
        return False

    def fate(self, error: Exception) -> Fate:
        # If the commit itself raised an error, the client does not know its outcome.
        if OVERTAKEN in str(error):
            return Fate.CONFLICT if error.__cause__ is None else Fate.UNKNOWN
        return Fate.FAILED if isinstance(error, (ValueError, KeyError)) else Fate.UNKNOWN

    def refresh(self) -> None:
        """Start a new writer, so that rows that were not committed are not part of the next commit."""
        self._end()
        self._begin(self._by)

    def _end(self) -> None:
        self._write.close()
        self._commit.close()

    def close(self) -> None:
        self._end()
