"""Delta Lake, written by delta-rs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.systems import duckdb_client
from tidemark.systems.base import TABLE, Capability, Context, Options
from tidemark.systems.delta import client as delta_client
from tidemark.systems.delta.table import CLIENT_INTERVAL, NO_SERVICE, DeltaRsOptions, DeltaTable
from tidemark.systems.delta.writer import DeltaRsDoor, DeltaRsWriter
from tidemark.systems.in_bucket import HTTPFS

if TYPE_CHECKING:
    import pyarrow as pa

READER = ("delta",)  # DuckDB's extension


class DeltaRs(DeltaTable):
    name: ClassVar[str] = "delta-rs"
    title: ClassVar[str] = "Delta (delta-rs)"
    client: ClassVar[str] = "delta-rs"
    libraries: ClassVar[tuple[str, ...]] = ("deltalake",)
    notes: tuple[str, ...] = (
        NO_SERVICE,
        "delta-rs runs its own threads, and has no setting for their number",
    )
    capabilities: frozenset[Capability] = TABLE | {
        Capability.MERGE,
        Capability.COMMIT_RETRY,
        Capability.READ_BY_OTHERS,
        Capability.WRITERS,
        Capability.BUNDLES,
    }
    Options: ClassVar[type[Options]] = DeltaRsOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if options.checkpoint_interval != CLIENT_INTERVAL:
            self.say(
                f"a checkpoint every {options.checkpoint_interval} commits, where delta-rs left alone makes one every "
                f"{CLIENT_INTERVAL}: 10 is the format's default, and the thesis's"
            )
        self._writer: DeltaRsWriter | None = None

    def create(self, schema: pa.Schema) -> None:
        table = self._create(schema)
        self._writer = DeltaRsWriter(self.door(), table)
        self._append = self._writer.write

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    def door(self) -> DeltaRsDoor:
        return DeltaRsDoor(self._location, self._access(), self.context.codec, self.options.commit_retries)

    @property
    def reader(self) -> str:
        if duckdb_client.has_extensions(READER):
            return duckdb_client.reader_name(*READER)
        return f"{delta_client.reader_name()}, as the writer, on a handle of its own: DuckDB's extension is not here"

    def ids(self) -> pa.ChunkedArray:
        if not duckdb_client.has_extensions(READER):
            return self._ids_by_delta_rs()
        extensions = READER if self.folder is None else (*READER, HTTPFS)
        with duckdb_client.connect(extensions, self.context.directory) as connection:
            if self.folder is not None:
                connection.execute(self.folder.for_readers().secret())
            scan = f"delta_scan({duckdb_client.literal(self._location)})"
            return connection.sql(f"SELECT id FROM {scan}").to_arrow_table().column(0)

    def read(self) -> pa.Table:
        return self._load().to_pyarrow_table()

    def data_files(self) -> Sequence[PurePath]:
        return self._listed()

    def merge(self) -> None:
        # The handle that wrote knows the newest version; whoever writes has it, and need not load the table again.
        assert self._writer is not None
        table = self._writer.table
        table.optimize.compact(writer_properties=self._writer.properties)
        # By default removed files stay for a week, in case somebody still reads the old version.
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {"deltalake": delta_client.installed_version()}

    def close(self) -> None:
        self._writer = None
