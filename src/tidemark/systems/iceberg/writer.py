"""A PyIceberg of its own in a further process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from tidemark.systems.iceberg import client as pyiceberg_client
from tidemark.systems.iceberg.table import set_workers
from tidemark.systems.writers import Door, Fate, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa


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
        catalog = cast(Any, self._table.catalog)
        commit = catalog.commit_table

        def counted(*given: Any, **named: Any) -> Any:
            self._attempts += 1
            return commit(*given, **named)

        catalog.commit_table = counted
        self._append = self._table.append

    def write(self, rows: pa.Table) -> None:
        self._attempts = 0
        self._append(rows)

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
