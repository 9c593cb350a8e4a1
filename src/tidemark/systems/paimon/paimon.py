"""Apache Paimon, written by its Python client: tables without a primary key, in a file system catalog."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.services.base import files_below
from tidemark.systems.base import TABLE, Capability, Context, Durability, Options, PerWrite
from tidemark.systems.disk import count_and_bytes, read_ids
from tidemark.systems.full_durability import DurabilityOptions, FullDurability
from tidemark.systems.paimon import client, snapshots
from tidemark.systems.paimon.writer import DATABASE, PaimonDoor, PaimonWriter, folder_of, open_catalog
from tidemark.systems.paimon.writer import TABLE as NAME
from tidemark.systems.tables import Committed
from tidemark.systems.writers import Door, of_retries

if TYPE_CHECKING:
    import pyarrow as pa

NOT_HERE = "the client pypaimon is not installed in this stack; with stacks: [paimon] it is"
OVERWRITES = (
    "a commit is a file that is renamed unless one of that name is there, which two processes may find at once: of two "
    "commits that were acknowledged one can be lost"
)


@dataclass(frozen=True, slots=True)
class PaimonOptions(DurabilityOptions):
    commit_retries: int | None = field(default=None, metadata=of_retries("commit.max-retries", "Paimon: 10"))


class Paimon(FullDurability):
    name: ClassVar[str] = "paimon"
    title: ClassVar[str] = "Paimon"
    format: ClassVar[str] = "Apache Paimon"
    client: ClassVar[str] = client.CLIENT
    catalog: str = "Paimon snapshots"
    libraries: ClassVar[tuple[str, ...]] = ("pypaimon", "polars", "_polars_runtime_32", "fastavro")
    notes: tuple[str, ...] = ("no catalog service", "a table without a primary key, in one bucket", OVERWRITES)
    capabilities: frozenset[Capability] = TABLE | {
        Capability.COMMIT_RETRY,
        Capability.READ_BY_OTHERS,
        Capability.WRITERS,
        Capability.HISTORY,
    }
    no_bundles: ClassVar[str] = "its client commits what its own writers prepared, and no files that are there"
    durability: Durability = Durability("Data, manifests and snapshot are left to the page cache; nothing is flushed.")
    # Data, three manifests, snapshot, hint and their folders; occasionally a merge of manifests.
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(9, 10)
    Options: ClassVar[type[Options]] = PaimonOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.say(client.remark())
        self._folder = folder_of(context.directory)
        self._writer: PaimonWriter | None = None

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        return super().unavailable(options) if importlib.util.find_spec(client.CLIENT) else NOT_HERE

    def create(self, schema: pa.Schema) -> None:
        from pypaimon import Schema

        catalog, name = open_catalog(self.context.directory), f"{DATABASE}.{NAME}"
        catalog.create_database(DATABASE, False)
        options = {"bucket": "-1", "file.format": "parquet", "file.compression": self.context.compression}
        if self.options.commit_retries is not None:
            options["commit.max-retries"] = str(self.options.commit_retries)
        catalog.create_table(name, Schema.from_pyarrow_schema(schema, options=options), False)
        self._writer = PaimonWriter(self.context.directory, catalog.get_table(name))
        self._append = self._writer.write
        self._keep_promise_below(self._folder)

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    def door(self) -> Door:
        return PaimonDoor(self.context.directory)

    @property
    def reader(self) -> str:
        import pyarrow as pa

        return (
            f"fastavro {version('fastavro')} (the manifests, without Paimon's client) and PyArrow {pa.__version__} "
            "(the Parquet files)"
        )

    def ids(self) -> pa.ChunkedArray:
        return read_ids(self.data_files())

    def read(self) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        return pa.concat_tables(pq.read_table(path) for path in self.data_files())

    def data_files(self) -> Sequence[Path]:
        return snapshots.data_files(self._folder)

    def footprint(self) -> Footprint:
        files = files_below(self._folder)
        data = count_and_bytes(path for path in files if path.suffix == ".parquet")
        rest = count_and_bytes(path for path in files if path.suffix != ".parquet")
        return Footprint(*data, *rest, 0)

    def commits(self) -> int:
        """Return the number of snapshots plus one for the table's creation, which is no snapshot."""
        last = snapshots.newest(self._folder)
        return 1 + (last.number if last else 0)

    def visible_rows(self) -> int:
        last = snapshots.newest(self._folder)
        return last.rows if last else 0

    def history(self) -> Sequence[Committed]:
        found = (snapshots.snapshot(self._folder, number) for number in snapshots.numbers(self._folder))
        return [Committed(each.at_ms, each.more) for each in found if each.kind == "APPEND"]

    def settings(self) -> Mapping[str, str]:
        return {"location": str(self._folder)}

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {client.CLIENT: client.installed_version()}

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
