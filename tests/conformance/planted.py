"""Systems that do a little more in each commit than their clients, for the tests of what counts commits."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import psycopg

from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.servers import DuckLake
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.iceberg.sinks import KafkaConnectIceberg

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


class LosesItsThirdCommit(DeltaRs):
    name: ClassVar[str] = DeltaRs.name
    commits: int = 0

    def write(self, rows: pa.Table) -> None:
        self.commits += 1
        if self.commits != 3:
            super().write(rows)


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


class OneMoreInTheThird(KafkaConnectIceberg):
    """A pipeline whose third commit takes one request and one file more than the second."""

    name: ClassVar[str] = KafkaConnectIceberg.name
    metadata_files: int = 4  # after the third commit: the table began with one

    def check(self) -> None:
        super().check()
        place = Path(self.context.directory)
        if len(list(place.rglob("*.metadata.json"))) == self.metadata_files and not (place / "more.parquet").exists():
            (place / "more.parquet").touch()
            urllib.request.urlopen(f"{self._catalog.uri}/v1/config").close()
