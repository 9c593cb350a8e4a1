"""Delta Lake, written by DuckDB's delta extension to a table that delta-rs created."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from tidemark.services.base import files_below
from tidemark.systems.base import Capability, Context, Durability, Footprint, Options
from tidemark.systems.delta_rs import LOG, DeltaOptions, create_table, footprint
from tidemark.systems.duckdb_client import DuckDBSystem, literal

if TYPE_CHECKING:
    import duckdb

# DuckDB names the table in an attached Delta directory after the alias.
ALIAS = "trips"


class DeltaDuckDB(DuckDBSystem):
    name: ClassVar[str] = "delta-duckdb"
    title: ClassVar[str] = "Delta (DuckDB)"
    format: ClassVar[str] = "Delta Lake"
    catalog: ClassVar[str] = "Delta log"
    notes: ClassVar[tuple[str, ...]] = (
        "no catalog service",
        "DuckDB's Delta writer makes no checkpoints",
        "under DuckDB 1.4.4 only DuckDB can read the table: the log gives paths with a leading slash, and each "
        "file's number of rows in place of its size",
    )
    extensions: ClassVar[tuple[str, ...]] = ("delta",)
    table: ClassVar[str] = f"{ALIAS}.{ALIAS}"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.READ_BACK, Capability.THREADS})
    compressions: ClassVar[frozenset[str]] = frozenset({"snappy"})  # the extension has no setting
    durability: ClassVar[Durability] = Durability(
        "Data and log are left to the page cache; nothing is flushed to the disk.",
        "strace: no fsync in 20 writes",
    )
    Options: ClassVar[type[Options]] = DeltaOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._location = context.directory / "table"

    def create(self, schema: pa.Schema) -> None:
        create_table(str(self._location), schema, self.options.checkpoint_interval)
        self._open()

    def _attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"ATTACH {literal(self._location)} AS {ALIAS} (TYPE delta)")

    def data_files(self) -> list[Path]:
        return [path for path in files_below(self._location) if path.parent.name != LOG]

    def footprint(self) -> Footprint:
        return footprint(self._location)

    def commits(self) -> int:
        return len(list((self._location / LOG).glob("*.json")))

    def settings(self) -> Mapping[str, str]:
        return {**super().settings(), "checkpoints": str(len(list((self._location / LOG).glob("*.parquet"))))}
