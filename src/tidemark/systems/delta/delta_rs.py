"""Delta Lake, written by delta-rs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.systems import duckdb_client
from tidemark.systems.base import TABLE, Capability, Context, Options
from tidemark.systems.delta import client as delta_client
from tidemark.systems.delta.table import CLIENT_INTERVAL, LOG, NO_SERVICE, DeltaRsOptions, DeltaTable
from tidemark.systems.delta.writer import DeltaRsDoor, DeltaRsWriter
from tidemark.systems.duckdb_client import DuckDBAsker
from tidemark.systems.in_bucket import HTTPFS
from tidemark.systems.queries import Answered, Filter
from tidemark.systems.writers import Door

if TYPE_CHECKING:
    import pyarrow as pa

READER = ("delta",)  # DuckDB's extension
FILES_LEFT = re.compile(r"files_ranges_pruned_statistics=(\d+) total")  # left to read after pruning by the log
NO_FILES = "files_scanned=0"


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
        Capability.PLANS,
        Capability.COMMIT_RETRY,
        Capability.READ_BY_OTHERS,
        Capability.WRITERS,
        Capability.MAINTENANCE,
        Capability.BUNDLES,
        Capability.HISTORY,
    }
    Options: ClassVar[type[Options]] = DeltaRsOptions
    written_through: ClassVar[tuple[str, ...]] = (".", LOG)  # it cannot be interrupted before its commit

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if options.checkpoint_interval != CLIENT_INTERVAL:
            self.say(
                f"a checkpoint every {options.checkpoint_interval} commits, where delta-rs left alone makes one every "
                f"{CLIENT_INTERVAL}: 10 is the format's default, and the thesis's"
            )
        self._writer: DeltaRsWriter | None = None

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        return frozenset({Capability.ASKED} if duckdb_client.has_extensions(READER) else ())

    def create(self, schema: pa.Schema) -> None:
        table = self._create(schema)
        self._writer = DeltaRsWriter(self._entrance(), table)
        self._append = self._writer.write

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    def door(self) -> Door:
        return self._entrance()

    def _entrance(self) -> DeltaRsDoor:
        return DeltaRsDoor(self._location, self._access(), self.context.codec, self.options.commit_retries)

    @property
    def reader(self) -> str:
        if duckdb_client.has_extensions(READER):
            return duckdb_client.reader_name(*READER)
        return f"{delta_client.reader_name()}, as the writer, on a separate handle: DuckDB's extension is not here"

    def ids(self) -> pa.ChunkedArray:
        if not duckdb_client.has_extensions(READER):
            return self._ids_by_delta_rs()
        with self.asking() as other:
            return other.ids()

    def asking(self) -> AbstractContextManager[DuckDBAsker]:
        address = duckdb_client.literal(delta_client.address_for_duckdb(self._location))
        directory, scan = self.context.directory, f"delta_scan({address})"
        if self.folder is None:
            return duckdb_client.asking(READER, directory, (), scan)
        return duckdb_client.asking((*READER, HTTPFS), directory, (self.folder.for_readers().secret(),), scan)

    def read(self) -> pa.Table:
        return self._load().to_pyarrow_table()

    def data_files(self) -> Sequence[PurePath]:
        return self._listed()

    def merge(self) -> None:
        # The writer's handle knows the newest version, so that a writing client need not load the table again.
        assert self._writer is not None
        self._writer.compact()
        self._writer.vacuum()

    def answer(self, asked: Filter) -> Answered:
        import pyarrow as pa
        from deltalake import QueryBuilder

        engine = QueryBuilder().register("trips", self._load())
        query = f"SELECT id FROM trips WHERE {asked.sql}"
        plan = str(pa.table(engine.execute(f"EXPLAIN ANALYZE {query}").read_all()).to_pydict())
        left = [int(files) for files in FILES_LEFT.findall(plan)]
        if not left and NO_FILES not in plan:
            raise SystemFailure(f"{self.name}: the plan of '{query}' tells of no files: {plan}")
        return Answered(engine.execute(query).read_all().num_rows, sum(left))

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {"deltalake": delta_client.installed_version()}

    def close(self) -> None:
        self._writer = None
