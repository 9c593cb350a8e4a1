"""The system that accepts and drops: what remains when it is measured is the harness itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.runs.manifest import Footprint
from tidemark.systems.base import Capability, Durability, System

if TYPE_CHECKING:
    import pyarrow as pa


class Null(System):
    name = "null"
    title = "Null"
    format = "none"
    client = "none"
    catalog = "none"
    notes: tuple[str, ...] = ("accepts and drops: measures the harness",)
    capabilities: frozenset[Capability] = frozenset()
    durability = Durability("nothing is stored")

    def create(self, schema: pa.Schema) -> None:
        pass

    def write(self, rows: pa.Table) -> None:
        pass

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

    def close(self) -> None:
        pass
