"""Delta Lake, written by DuckDB's delta extension to a table that delta-rs created."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.services.base import files_below
from tidemark.systems.base import TABLE, Capability, Context
from tidemark.systems.delta import table as delta_client
from tidemark.systems.delta.table import LOG, NO_SERVICE, DeltaTable
from tidemark.systems.duckdb_client import DUCKDB, literal, reader_name
from tidemark.systems.duckdb_table import DuckDBSystem

if TYPE_CHECKING:
    import pyarrow as pa

# DuckDB gives the table in an attached Delta directory the name of the alias.
ALIAS = "trips"
PERCENT = re.compile("%.?")  # its writer takes this for the start of a printf conversion
INVALID_LOG = (
    "what DuckDB 1.4.4 writes only DuckDB can read: the log's paths begin with a slash, and in place of a file's size "
    "it has its number of rows"
)


class DeltaDuckDB(DeltaTable, DuckDBSystem):
    name: ClassVar[str] = "delta-duckdb"
    title: ClassVar[str] = "Delta (DuckDB)"
    notes: tuple[str, ...] = (NO_SERVICE, "DuckDB's Delta writer makes no checkpoints", INVALID_LOG)
    extensions: tuple[str, ...] = ("delta",)
    conflicts: ClassVar[tuple[str, ...]] = ("commit conflict at version",)
    table = f"{ALIAS}.{ALIAS}"
    capabilities: frozenset[Capability] = TABLE | {Capability.THREADS, Capability.WRITERS}
    never_in_paths: ClassVar[re.Pattern[str]] = PERCENT
    compressions: ClassVar[frozenset[str]] = frozenset({"snappy"})  # the extension has no setting

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if Capability.READ_BY_OTHERS in self.capabilities:
            self.withdraw(INVALID_LOG)

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        return frozenset({Capability.READ_BY_OTHERS} if DUCKDB.release().delta_log_is_valid else ())

    def create(self, schema: pa.Schema) -> None:
        self._create(schema)
        self._open()

    def _attachments(self) -> tuple[str, ...]:
        return (f"ATTACH {literal(self._location)} AS {ALIAS} (TYPE delta)",)

    @property
    def reader(self) -> str:
        if Capability.READ_BY_OTHERS in self.capabilities:
            return delta_client.reader_name()
        return f"{reader_name('delta')}, as the writer, on a separate connection: no other can read this log"

    def ids(self) -> pa.ChunkedArray:
        return self._ids_by_delta_rs() if Capability.READ_BY_OTHERS in self.capabilities else super().ids()

    def read(self) -> pa.Table:
        # If the log is valid, delta-rs is the reader that has least in common with the writer.
        return self._load().to_pyarrow_table() if Capability.READ_BY_OTHERS in self.capabilities else super().read()

    def data_files(self) -> Sequence[PurePath]:
        if Capability.READ_BY_OTHERS in self.capabilities:
            return self._listed()
        return [path for path in files_below(Path(self._location)) if path.parent.name != LOG]

    def settings(self) -> Mapping[str, str]:
        return {**DuckDBSystem.settings(self), **DeltaTable.settings(self)}
