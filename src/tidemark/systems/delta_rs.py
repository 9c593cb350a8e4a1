"""Delta Lake, written by delta-rs. The commit is an atomic create in the table's log; no service takes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from tidemark.services.base import files_below
from tidemark.systems.base import (
    Capability,
    Context,
    Durability,
    Footprint,
    Merge,
    Options,
    System,
)
from tidemark.systems.disk import count_and_bytes

if TYPE_CHECKING:
    from deltalake import DeltaTable

CHECKPOINT_INTERVAL = "delta.checkpointInterval"
LOG = "_delta_log"


@dataclass(frozen=True, slots=True)
class DeltaOptions(Options):
    checkpoint_interval: int = field(
        default=10,
        metadata={
            "help": "Commits between two checkpoints of the log. Delta's own default, and the thesis's; delta-rs "
            "alone would take 100.",
            "minimum": 1,
            "examples": (3,),
        },
    )


def create_table(location: str, schema: pa.Schema, checkpoint_interval: int) -> DeltaTable:
    """A new Delta table without rows; also for clients that cannot create one themselves."""
    from deltalake import DeltaTable

    return DeltaTable.create(location, schema, configuration={CHECKPOINT_INTERVAL: str(checkpoint_interval)})


def footprint(location: Path) -> Footprint:
    """The table's files: those of the log are metadata, the others data."""
    log = files_below(location / LOG)
    data = set(files_below(location)) - set(log)
    return Footprint(*count_and_bytes(data), *count_and_bytes(log), 0)


class DeltaRs(System):
    name: ClassVar[str] = "delta-rs"
    title: ClassVar[str] = "Delta (delta-rs)"
    format: ClassVar[str] = "Delta Lake"
    client: ClassVar[str] = "delta-rs"
    catalog: ClassVar[str] = "Delta log"
    notes: ClassVar[tuple[str, ...]] = ("no catalog service", "its number of threads cannot be set")
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.READ_BACK, Capability.MERGE})
    durability: ClassVar[Durability] = Durability(
        "Data and log are left to the page cache; nothing is flushed to the disk.",
        "strace: no fsync in 20 writes",
    )
    Options: ClassVar[type[Options]] = DeltaOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._location = context.directory / "table"
        self._table: DeltaTable | None = None

    def create(self, schema: pa.Schema) -> None:
        from deltalake import WriterProperties, write_deltalake

        self._table = create_table(str(self._location), schema, self.options.checkpoint_interval)
        self._properties = WriterProperties(compression=self.context.codec.upper())  # type: ignore[arg-type]
        self._append = write_deltalake

    def write(self, rows: pa.Table) -> None:
        # With the handle kept, delta-rs does not read the log again from its last checkpoint.
        self._append(self._table, rows, mode="append", writer_properties=self._properties)  # type: ignore[call-overload]

    def _open(self) -> DeltaTable:
        """The table as somebody else would open it now."""
        from deltalake import DeltaTable

        return DeltaTable(str(self._location))

    def ids(self) -> pa.ChunkedArray:
        return self._open().to_pyarrow_table(columns=["id"]).column("id")

    def read(self) -> pa.Table:
        return self._open().to_pyarrow_table()

    def footprint(self) -> Footprint:
        return footprint(self._location)

    def data_files(self) -> list[Path]:
        return [Path(uri) for uri in self._open().file_uris()]

    def commits(self) -> int:
        return int(self._open().version()) + 1

    def merge(self) -> Merge:
        table = self._open()
        files_before, bytes_before = count_and_bytes(self.data_files())
        table.optimize.compact(writer_properties=self._properties)
        # The default keeps removed files for a week, in case somebody still reads the old version.
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        files_after, bytes_after = count_and_bytes(self.data_files())
        self._table = table
        return Merge(files_before, files_after, bytes_before, bytes_after)

    def settings(self) -> Mapping[str, str]:
        return {CHECKPOINT_INTERVAL: self._open().metadata().configuration[CHECKPOINT_INTERVAL]}

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        import deltalake

        return {"deltalake": str(deltalake.__version__)}

    def close(self) -> None:
        self._table = None
