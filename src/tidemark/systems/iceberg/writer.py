"""Separate PyIceberg client in another process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tidemark.systems.iceberg import client as pyiceberg_client
from tidemark.systems.iceberg.table import set_workers
from tidemark.systems.writers import Door, Fate, TableWriter, Token

if TYPE_CHECKING:
    import pyarrow as pa


TOKEN = "tidemark.token"  # in a snapshot's summary


@dataclass(frozen=True, slots=True)
class PyIcebergDoor(Door):
    access: Mapping[str, str] = field(repr=False)
    table: tuple[str, str]
    threads: int

    def open(self) -> PyIcebergWriter:
        return PyIcebergWriter(self)


class PyIcebergWriter(TableWriter):
    def __init__(self, door: PyIcebergDoor) -> None:
        from pyiceberg import exceptions

        self._conflict = exceptions.CommitFailedException
        self._certain = (
            exceptions.BadRequestError,
            exceptions.ForbiddenError,
            exceptions.NoSuchTableError,
            exceptions.UnauthorizedError,
            exceptions.ValidationError,
            ValueError,  # rows that do not fit the table
        )
        set_workers(door.threads)
        self._table = pyiceberg_client.catalog(door.access).load_table(door.table)
        self._attempts = 0
        pyiceberg_client.before_commits(self._table, self._count_attempt)
        self._append = self._table.append

    def _count_attempt(self) -> None:
        self._attempts += 1

    def before_commit(self, do: Callable[[], None]) -> None:
        pyiceberg_client.before_commits(self._table, do)

    def write(self, rows: pa.Table) -> None:
        self._attempts = 0
        self._append(rows)

    def write_known(self, rows: pa.Table, token: Token) -> None:
        self._attempts = 0
        self._append(rows, snapshot_properties={TOKEN: str(token)})

    def has(self, token: Token) -> bool:
        self._table.refresh()
        summaries = [each.summary for each in self._table.snapshots()]
        return any(each is not None and each.get(TOKEN) == str(token) for each in summaries)

    def count(self) -> int:
        self._table.refresh()
        return int(self._table.scan(selected_fields=("id",)).to_arrow().num_rows)

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        def expire() -> None:
            self._table.refresh()  # what others wrote in the meantime
            pyiceberg_client.expire_snapshots(self._table)

        return {"expire": expire}

    def fate(self, error: Exception) -> Fate:
        if isinstance(error, self._conflict):
            return Fate.CONFLICT
        return Fate.FAILED if isinstance(error, self._certain) else Fate.UNKNOWN

    def refresh(self) -> None:
        self._table.refresh()

    def attempts(self) -> int:
        return self._attempts

    def close(self) -> None:
        cast(Any, self._table.catalog)._session.close()
