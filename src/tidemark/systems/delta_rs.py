"""Delta Lake, written by delta-rs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from tidemark.systems import delta_client
from tidemark.systems.base import TABLE, Capability, Context, Merge
from tidemark.systems.delta_table import NO_SERVICE, DeltaTable
from tidemark.systems.disk import count_and_bytes

if TYPE_CHECKING:
    from deltalake import DeltaTable as Table


class DeltaRs(DeltaTable):
    name: ClassVar[str] = "delta-rs"
    title: ClassVar[str] = "Delta (delta-rs)"
    client: ClassVar[str] = "delta-rs"
    notes: tuple[str, ...] = (
        NO_SERVICE,
        "delta-rs runs its own threads, and has no setting for their number",
    )
    capabilities: frozenset[Capability] = TABLE | {
        Capability.MERGE,
        Capability.COMMIT_RETRY,
        Capability.READ_BY_OTHERS,
    }

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._table: Table | None = None

    def create(self, schema: pa.Schema) -> None:
        from deltalake import WriterProperties, write_deltalake

        self._table = self._create(schema)
        self._properties = WriterProperties(compression=self.context.codec.upper())  # type: ignore[arg-type]
        self._append = write_deltalake

    def write(self, rows: pa.Table) -> None:
        # With the handle kept, delta-rs does not read the log again from its last checkpoint on.
        self._append(self._table, rows, mode="append", writer_properties=self._properties)  # type: ignore[call-overload]

    def ids(self) -> pa.ChunkedArray:
        return self._load().to_pyarrow_table(columns=["id"]).column("id")

    def read(self) -> pa.Table:
        return self._load().to_pyarrow_table()

    def data_files(self) -> list[Path]:
        return [Path(uri) for uri in self._load().file_uris()]

    def merge(self) -> Merge:
        table = self._load()
        files_before, bytes_before = count_and_bytes(self.data_files())
        table.optimize.compact(writer_properties=self._properties)
        # By default removed files stay for a week, in case somebody still reads the old version.
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        files_after, bytes_after = count_and_bytes(self.data_files())
        self._table = table
        return Merge(files_before, files_after, bytes_before, bytes_after)

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {"deltalake": delta_client.installed_version()}

    def close(self) -> None:
        self._table = None
