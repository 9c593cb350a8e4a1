"""System that accepts and discards all rows: measuring it gives the overhead of the harness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidemark.runs.manifest import Footprint
from tidemark.systems.base import Capability, Durability
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory, DataFile, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa


class NullClientFactory(ClientFactory):
    def open(self) -> NullWriter:
        return NullWriter()


class NullWriter(TableWriter):
    def write(self, rows: pa.Table) -> None:
        pass

    def stage(self, rows: pa.Table) -> DataFile:
        return DataFile("", rows.nbytes, rows.num_rows)

    def register(self, files: Sequence[DataFile]) -> None:
        pass


class Null(TableSystem):
    name = "null"
    title = "Null"
    format = "none"
    client = "none"
    catalog = "none"
    notes: tuple[str, ...] = ("accepts and drops: measures the harness",)
    capabilities: frozenset[Capability] = frozenset({Capability.WRITERS, Capability.BUNDLES})
    durability = Durability("nothing is stored")

    def create(self, schema: pa.Schema) -> None:
        pass

    def write(self, rows: pa.Table) -> None:
        pass

    def client_factory(self) -> NullClientFactory:
        return NullClientFactory()

    @property
    def reader(self) -> str:
        return "none: this system stores nothing"

    def ids(self) -> pa.ChunkedArray:
        import pyarrow as pa

        return pa.chunked_array([], pa.int64())

    def read(self) -> pa.Table:
        import pyarrow as pa

        return pa.table({})

    def footprint(self) -> Footprint:
        return Footprint(0, 0, 0, 0, 0)
