"""Parquet files, each written by DataFusion's Python package in the process that has the rows.

It is a stand-in for a server with DataFusion, which no registry has. One writer at a time has such a table; it may be
another process than the one that created it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from tidemark.runs.manifest import Footprint
from tidemark.systems.base import Context, Durability, take
from tidemark.systems.tables import TableSystem, and_pyarrow, count_and_bytes, read_ids
from tidemark.systems.writers import OpenedBy, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = "rows"


class DataFusionWriter(TableWriter):
    def __init__(self, packages: tuple[str, ...], folder: str, codec: str) -> None:
        """Write to `folder`; `packages` are folders with DataFusion's packages."""
        take(packages)
        from datafusion import SessionContext

        self._folder, self._codec = folder, codec
        self._session = SessionContext()

    def write(self, rows: pa.Table) -> None:
        try:
            frame = self._session.from_arrow(rows, ROWS)
            frame.write_parquet(f"{self._folder}/{uuid4().hex}.parquet", self._codec)
        finally:
            self._session.deregister_table(ROWS)  # which would keep the rows in memory


class ParquetDataFusion(TableSystem):
    name: ClassVar[str] = "parquet-datafusion"
    title: ClassVar[str] = "Parquet with DataFusion (stand-in)"
    format: ClassVar[str] = "Parquet"
    client: ClassVar[str] = "DataFusion"
    catalog: str = "none"
    packages: ClassVar[Mapping[str, str]] = {"DataFusion": "datafusion"}
    libraries: ClassVar[tuple[str, ...]] = ("datafusion",)
    tools: ClassVar[tuple[str, ...]] = ("datafusion",)
    notes: tuple[str, ...] = (
        "a stand-in for a server with DataFusion: its engine in the writer's process, and no network",
        "no table format: each write adds a Parquet file, which gets its name once it is complete",
        "DataFusion runs its own threads, one for each processor",
    )
    durability: Durability = Durability("The file is left to the page cache; nothing is flushed to the disk.")
    hands_over: ClassVar[bool] = True

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        take(context.tools.values())

    def create(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = self.client_factory().open()

    def write(self, rows: pa.Table) -> None:
        self._writer.write(rows)

    def client_factory(self) -> OpenedBy[DataFusionWriter]:
        packages = tuple(map(str, self.context.tools.values()))
        values = {"packages": packages, "folder": str(self.context.directory), "codec": self.context.codec}
        return OpenedBy(DataFusionWriter, values)

    @property
    def reader(self) -> str:
        return and_pyarrow("the folder's listing")

    def ids(self) -> pa.ChunkedArray:
        return read_ids(self.data_files())

    def read(self) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        return pa.concat_tables([self._schema.empty_table(), *map(pq.read_table, self.data_files())])

    def data_files(self) -> Sequence[Path]:
        return sorted(self.context.directory.glob("*.parquet"))

    def commits(self) -> int:
        return 1 + len(self.data_files())  # with that of `create`

    def footprint(self) -> Footprint:
        return Footprint(*count_and_bytes(self.data_files()), 0, 0, 0)
