"""What is there without a table format: one Parquet file; and nothing at all, which measures the harness."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.systems import duckdb_client
from tidemark.systems.base import Capability, Durability
from tidemark.systems.wholes.kind import WholeSystem


class ParquetLocal(WholeSystem):
    """`pyarrow.parquet.write_table` and `read_table`."""

    name: ClassVar[str] = "parquet-local"
    title: ClassVar[str] = "Parquet file, local disk"
    format: ClassVar[str] = "Parquet"
    client: ClassVar[str] = "PyArrow"
    catalog: str = "none"
    library: ClassVar[str] = "parquet"
    notes: tuple[str, ...] = ("a file without a table around it: the least that writing the same rows costs",)

    def address(self, name: str) -> str:
        return str(self.context.directory / f"{name}.parquet")

    @property
    def reader(self) -> str:
        return f"DuckDB {duckdb_client.installed_version()}"

    def fetched(self, name: str, folder: Path) -> Path:
        del folder
        return Path(self.address(name))

    def relation(self, place: Path) -> str:
        return f"read_parquet({duckdb_client.literal(place)})"

    def listed(self, name: str) -> Mapping[str, int]:
        place = Path(self.address(name))
        return {place.name: place.stat().st_size}

    def counted(self, name: str) -> int:
        import pyarrow.parquet as pq

        return int(pq.read_metadata(self.address(name)).num_rows)

    def footprint(self, name: str) -> Footprint:
        return Footprint(1, sum(self.listed(name).values()), 0, 0, 0)

    def remove(self, name: str) -> None:
        Path(self.address(name)).unlink(missing_ok=True)


class NullTables(WholeSystem):
    """Accepts and drops."""

    name: ClassVar[str] = "null-tables"
    title: ClassVar[str] = "Null"
    format: ClassVar[str] = "none"
    client: ClassVar[str] = "none"
    catalog: str = "none"
    library: ClassVar[str] = "none"
    notes: tuple[str, ...] = ("accepts and drops: measures the harness",)
    capabilities: frozenset[Capability] = frozenset()
    durability: Durability = Durability("nothing is stored")

    def address(self, name: str) -> str:
        return name

    @property
    def reader(self) -> str:
        return "none: this system stores nothing"

    def fetched(self, name: str, folder: Path) -> Path:
        raise NotImplementedError(self.reader)

    def relation(self, place: Path) -> str:
        raise NotImplementedError(self.reader)

    def listed(self, name: str) -> Mapping[str, int]:
        del name
        return {}

    def counted(self, name: str) -> int:
        raise NotImplementedError(self.reader)

    def footprint(self, name: str) -> Footprint:
        del name
        return Footprint(0, 0, 0, 0, 0)

    def remove(self, name: str) -> None:
        pass
