"""Baselines without a table format: one Parquet file, on the local disk and on HDFS, and no storage at all.

A file gives the minimum cost of writing the same rows, the null system the overhead of the harness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.services.hdfs import TOOL
from tidemark.systems import duckdb_client
from tidemark.systems.base import Capability, Durability
from tidemark.systems.bulk.base import FETCHED, BulkTable, OnDisk, OnHdfs, ParquetOnHdfs

ALONE = "a file without a table around it: the least that writing the same rows costs"
FILE = "rows.parquet"


class OneFile(BulkTable):
    """Writes by `pyarrow.parquet.write_table`, reads by `read_table`."""

    format: ClassVar[str] = "Parquet"
    client: ClassVar[str] = "PyArrow"
    catalog: str = "none"
    notes: tuple[str, ...] = (ALONE,)

    def footprint(self, name: str) -> Footprint:
        return Footprint(1, sum(self.listed(name).values()), 0, 0, 0)


class ParquetLocal(OnDisk, OneFile):
    name: ClassVar[str] = "parquet-local"
    title: ClassVar[str] = "Parquet file, local disk"
    library: ClassVar[str] = "parquet"

    def place(self, name: str) -> Path:
        return self.context.directory / f"{name}.parquet"

    def relation(self, place: Path) -> str:
        return f"read_parquet({duckdb_client.literal(place)})"

    def listed(self, name: str) -> Mapping[str, int]:
        place = self.place(name)
        return {place.name: place.stat().st_size}

    def counted(self, name: str) -> int:
        import pyarrow.parquet as pq

        return int(pq.read_metadata(self.place(name)).num_rows)

    def remove(self, name: str) -> None:
        self.place(name).unlink(missing_ok=True)


class ParquetHdfs(ParquetOnHdfs, OneFile):
    """File on HDFS through hdfs-native's Python client, whose Rust code is also part of delta-rs."""

    name: ClassVar[str] = "parquet-hdfs"
    title: ClassVar[str] = "Parquet file, HDFS"
    client: ClassVar[str] = "PyArrow, hdfs-native"
    library: ClassVar[str] = "parquet-hdfs"
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    notes: tuple[str, ...] = (*OnHdfs.notes, ALONE)
    reads_by: ClassVar[str] = f"{OnHdfs.reads_by}, {FETCHED}"

    def address(self, name: str) -> str:
        return f"{super().address(name)}/{FILE}"

    def parquet(self, place: Path) -> Sequence[Path]:
        return (place / FILE,)


class NullTables(OnDisk):
    """System that accepts and discards tables."""

    name: ClassVar[str] = "null-tables"
    title: ClassVar[str] = "Null"
    format: ClassVar[str] = "none"
    client: ClassVar[str] = "none"
    catalog: str = "none"
    library: ClassVar[str] = "none"
    notes: tuple[str, ...] = ("accepts and drops: measures the harness",)
    capabilities: frozenset[Capability] = frozenset()
    durability: Durability = Durability("nothing is stored")
    reads_by: ClassVar[str] = "none: this system stores nothing"

    def relation(self, place: Path) -> str:
        raise NotImplementedError(self.reader)

    def counted(self, name: str) -> int:
        raise NotImplementedError(self.reader)

    def footprint(self, name: str) -> Footprint:
        del name
        return Footprint(0, 0, 0, 0, 0)
