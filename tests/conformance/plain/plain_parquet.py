"""A minimal system: a folder of Parquet files, one per write. The registry finds it if this folder is one of those
of `tidemark.systems`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.runs.manifest import Footprint
from tidemark.systems.base import Durability
from tidemark.systems.tables import TableSystem, count_and_bytes, read_ids


class PlainParquet(TableSystem):
    name = "plain-parquet"
    title = "Plain Parquet"
    format = "Parquet"
    client = "PyArrow"
    catalog = "none"
    durability = Durability("files are in the page cache")

    @classmethod
    def versions(cls) -> dict[str, str]:
        return {"pyarrow": pa.__version__}

    def create(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._count = 0

    def write(self, rows: pa.Table) -> None:
        self._count += 1
        path = self.context.directory / f"{self._count:06}.parquet"
        pq.write_table(rows, path, compression=self.context.codec if self.context.codec != "uncompressed" else "none")

    def data_files(self) -> Sequence[Path]:
        return sorted(self.context.directory.glob("*.parquet"))

    @property
    def reader(self) -> str:
        return f"PyArrow {pa.__version__}, as the writer"

    def ids(self) -> pa.ChunkedArray:
        return read_ids(self.data_files())

    def read(self) -> pa.Table:
        return pa.concat_tables([self._schema.empty_table(), *map(pq.read_table, self.data_files())])

    def commits(self) -> int:
        return 1 + self._count

    def footprint(self) -> Footprint:
        return Footprint(*count_and_bytes(self.data_files()), 0, 0, 0)

    def close(self) -> None:
        pass
