"""Delta Lake, written by DuckDB's delta extension to a table that delta-rs created."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from tidemark.services.base import files_below
from tidemark.systems.base import Capability
from tidemark.systems.delta_table import LOG, NO_SERVICE, DeltaTable
from tidemark.systems.duckdb_client import DuckDBSystem, literal

if TYPE_CHECKING:
    import duckdb

# DuckDB gives the table in an attached Delta directory the name of the alias.
ALIAS = "trips"


class DeltaDuckDB(DeltaTable, DuckDBSystem):
    name: ClassVar[str] = "delta-duckdb"
    title: ClassVar[str] = "Delta (DuckDB)"
    notes: tuple[str, ...] = (
        NO_SERVICE,
        "DuckDB's Delta writer makes no checkpoints",
        "what DuckDB 1.4.4 writes only DuckDB can read: the log's paths begin with a slash, and in place of a "
        "file's size it has its number of rows",
    )
    extensions: ClassVar[tuple[str, ...]] = ("delta",)
    table = f"{ALIAS}.{ALIAS}"
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.READ_BACK, Capability.THREADS})
    compressions: ClassVar[frozenset[str]] = frozenset({"snappy"})  # the extension has no setting

    def create(self, schema: pa.Schema) -> None:
        self._create(schema)
        self._open()

    def _attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"ATTACH {literal(self._location)} AS {ALIAS} (TYPE delta)")

    def data_files(self) -> list[Path]:
        return [path for path in files_below(self._location) if path.parent.name != LOG]

    def settings(self) -> Mapping[str, str]:
        return {**DuckDBSystem.settings(self), **DeltaTable.settings(self)}
