"""Systems that do a little more in each commit than their clients, for the tests of what counts commits."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar

import psycopg

from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.servers import DuckLake
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg

if TYPE_CHECKING:
    import pyarrow as pa


class OneMoreSyncAndFile(DeltaRs):
    name: ClassVar[str] = DeltaRs.name
    files: int = 0

    def write(self, rows: pa.Table) -> None:
        super().write(rows)
        self.files += 1
        file = os.open(self.context.directory / f"more-{self.files}.parquet", os.O_WRONLY | os.O_CREAT)
        os.fsync(file)
        os.close(file)


class OneMoreStatement(DuckLake):
    name: ClassVar[str] = DuckLake.name

    def create(self, schema: pa.Schema) -> None:
        super().create(schema)
        self._more: psycopg.Connection[tuple[object, ...]] = self._postgres.connect(self._database, autocommit=True)

    def write(self, rows: pa.Table) -> None:
        super().write(rows)
        self._more.execute("SELECT 1")


class OneMoreRequest(IcebergPyIceberg):
    name: ClassVar[str] = IcebergPyIceberg.name

    def write(self, rows: pa.Table) -> None:
        super().write(rows)
        assert self._table is not None
        self._table.refresh()
