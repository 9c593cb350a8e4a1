"""Lance, written by its own library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.services.base import files_below
from tidemark.systems import duckdb_client
from tidemark.systems.base import TABLE, Capability, Context, Durability, Options, PerWrite, take
from tidemark.systems.disk import count_and_bytes
from tidemark.systems.full_durability import DurabilityOptions, FullDurability
from tidemark.systems.lance import client, manifests
from tidemark.systems.lance.writer import DATA, LanceDoor, LanceWriter
from tidemark.systems.tables import Committed
from tidemark.systems.writers import Door, of_retries

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

READER = ("lance",)  # DuckDB's extension


@dataclass(frozen=True, slots=True)
class LanceOptions(DurabilityOptions):
    commit_retries: int | None = field(default=None, metadata=of_retries("max_retries", "Lance: 20"))


class Lance(FullDurability):
    name: ClassVar[str] = "lance"
    title: ClassVar[str] = "Lance"
    format: ClassVar[str] = "Lance"
    client: ClassVar[str] = client.CLIENT
    catalog: str = "Lance manifests"
    libraries: ClassVar[tuple[str, ...]] = ("lance",)
    tools: ClassVar[tuple[str, ...]] = ("lance",)
    notes: tuple[str, ...] = (
        "no catalog service",
        "its files are no Parquet: they have Lance's own encodings, and `compression` is not of them",
        "Lance runs its own threads; what sets their number is read from the environment (LANCE_CPU_THREADS)",
    )
    compressions: ClassVar[frozenset[str]] = frozenset()
    capabilities: frozenset[Capability] = TABLE | {
        Capability.MERGE,
        Capability.COMMIT_RETRY,
        Capability.READ_BY_OTHERS,
        Capability.WRITERS,
        Capability.MAINTENANCE,
        Capability.BUNDLES,
        Capability.HISTORY,
    }
    durability: Durability = Durability(
        "Data, transaction and manifest are left to the page cache; nothing is flushed to the disk."
    )
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(7, 7)  # data, transaction, manifest, hint, 3 folders
    Options: ClassVar[type[Options]] = LanceOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        take(context.tools.values())
        self.say(client.remark())
        self._location = context.directory / "table.lance"  # DuckDB recognises it by this suffix
        self._writer: LanceWriter | None = None

    def create(self, schema: pa.Schema) -> None:
        import lance

        table = lance.write_dataset(schema.empty_table(), str(self._location))
        self._writer = LanceWriter(self._entrance(), table)
        self._append = self._writer.write
        self._keep_promise_below(self._location)

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    def door(self) -> Door:
        return self._entrance()

    def _entrance(self) -> LanceDoor:
        packages = tuple(str(folder) for folder in self.context.tools.values())
        return LanceDoor(str(self._location), packages, self.options.commit_retries)

    @property
    def reader(self) -> str:
        if duckdb_client.has_extensions(READER):
            return duckdb_client.reader_name(*READER)
        installed = f"{client.CLIENT} {client.installed_version()}"
        return f"{installed}, as the writer, on a separate handle: DuckDB's extension is not here"

    def ids(self) -> pa.ChunkedArray:
        if not duckdb_client.has_extensions(READER):
            return self._load().to_table(columns=["id"]).column(0)
        with duckdb_client.connect(READER, self.context.directory) as connection:
            return connection.sql(f"SELECT id FROM {duckdb_client.literal(self._location)}").to_arrow_table().column(0)

    def read(self) -> pa.Table:
        return self._load().to_table()

    def _load(self) -> LanceDataset:
        """Return the table as a new client would open it now."""
        import lance

        return lance.dataset(str(self._location))

    def data_files(self) -> Sequence[Path]:
        return [self._location / DATA / name for name in self._newest().files]

    def _newest(self) -> manifests.Manifest:
        return manifests.read(manifests.paths(self._location)[-1])

    def footprint(self) -> Footprint:
        files = files_below(self._location)
        data = count_and_bytes(path for path in files if path.parent.name == DATA)
        rest = count_and_bytes(path for path in files if path.parent.name != DATA)
        return Footprint(*data, *rest, 0)

    def commits(self) -> int:
        return manifests.version_of(manifests.paths(self._location)[-1])

    def visible_rows(self) -> int:
        return self._newest().rows

    def history(self) -> Sequence[Committed]:
        """Return the commits by the manifests: the time of each, and its row count minus the previous one's."""
        versions = [manifests.read(path) for path in manifests.paths(self._location)]
        grown = ((after.at_ms, after.rows - before.rows) for before, after in pairwise(versions))
        return [Committed(at_ms, rows) for at_ms, rows in grown if rows > 0]

    def merge(self) -> None:
        assert self._writer is not None
        self._writer.compact()
        self._writer.cleanup()

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {client.CLIENT: client.installed_version()}

    def close(self) -> None:
        self._writer = None
