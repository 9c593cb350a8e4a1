"""Delta Lake, written by delta-rs, in the process that created the table or in another one."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.systems import duckdb_client
from tidemark.systems.base import OPEN_TABLE, Capability, Context, Options
from tidemark.systems.delta import table as delta_client
from tidemark.systems.delta.table import CLIENT_INTERVAL, LOG, NO_SERVICE, TIMEOUT, DeltaRsOptions, DeltaTable
from tidemark.systems.duckdb_client import DuckDBReadClient
from tidemark.systems.object_store import HTTPFS
from tidemark.systems.tables import Filter, with_id
from tidemark.systems.writers import CommitStatus, DataFile, IdempotencyKey, OpenedBy, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable as Table


OVERTAKEN = "Failed to commit transaction"  # in delta-rs's message after its last retry


class DeltaRsWriter(TableWriter):
    """Writer with a handle of its own unless it gets a `table`; `access` to the storage is None for the local disk.

    `retries` are those of a commit that lost to another one; None: delta-rs's default.
    """

    def __init__(
        self, location: str, access: dict[str, str] | None, codec: str, retries: int | None, table: Table | None = None
    ) -> None:
        from deltalake import CommitProperties, DeltaTable, WriterProperties, exceptions, write_deltalake

        self.table = DeltaTable(location, storage_options=access) if table is None else table
        self._location, self._codec, self._retries = location, codec, retries
        self.properties = WriterProperties(compression=codec.upper())  # type: ignore[arg-type]
        self._commit = None if retries is None else CommitProperties(max_commit_retries=retries)
        self._conflict = exceptions.CommitFailedError
        self._certain = (exceptions.SchemaMismatchError, exceptions.TableNotFoundError)
        self._append = write_deltalake

    def write(self, rows: pa.Table) -> None:
        # With the same handle, delta-rs does not reread the log from its last checkpoint.
        self._append(self.table, rows, mode="append", writer_properties=self.properties, commit_properties=self._commit)

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        from deltalake import CommitProperties, Transaction

        marks = [Transaction(key.writer, key.number)]
        known = CommitProperties(max_commit_retries=self._retries, app_transactions=marks)
        self._append(self.table, rows, mode="append", writer_properties=self.properties, commit_properties=known)

    def has(self, key: IdempotencyKey) -> bool:
        # delta-rs accepts the same transaction twice, so that it must be queried.
        self.table.update_incremental()
        last = self.table.transaction_version(key.writer)
        return last is not None and last >= key.number

    def stage(self, rows: pa.Table) -> DataFile:
        import pyarrow.parquet as pq

        path = Path(self._location, f"part-{secrets.token_hex(16)}.{self._codec}.parquet")
        pq.write_table(rows, path, compression="none" if self._codec == "uncompressed" else self._codec)
        return DataFile(path.name, path.stat().st_size, rows.num_rows)

    def register(self, files: Sequence[DataFile]) -> None:
        from deltalake.transaction import AddAction

        now = round(time.time() * 1000)
        adds: list[Any] = [AddAction(e.path, e.size, {}, now, True, json.dumps({"numRecords": e.rows})) for e in files]
        self.table.create_write_transaction(adds, "append", self.table.schema(), commit_properties=self._commit)
        self.table.update_incremental()  # which a write does by itself

    def count(self) -> int:
        from deltalake import QueryBuilder

        self.table.update_incremental()
        found = QueryBuilder().register("trips", self.table).execute("SELECT count(id), max(id) FROM trips")
        return int(found.read_all()[0][0].as_py())

    def compact(self) -> None:
        """Replace small files by larger ones."""
        self.table.optimize.compact(writer_properties=self.properties, commit_properties=self._commit)

    def vacuum(self) -> None:
        """Remove replaced files; by default they are kept for a week, for readers of old versions."""
        self.table.vacuum(
            retention_hours=0, enforce_retention_duration=False, dry_run=False, commit_properties=self._commit
        )

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        def compact() -> None:
            self.table.update_incremental()  # what others wrote in the meantime
            self.compact()

        return {"compact": compact, "vacuum": self.vacuum, "checkpoint": self.table.create_checkpoint}

    def commit_status(self, error: Exception) -> CommitStatus:
        if isinstance(error, self._conflict) and OVERTAKEN in str(error):
            return CommitStatus.CONFLICT
        return CommitStatus.FAILED if isinstance(error, self._certain) else CommitStatus.UNKNOWN

    def refresh(self) -> None:
        self.table.update_incremental()


AT_ONCE = 500  # log entries before the client makes a checkpoint


def add_log_entries(folder: Path, version: int, rows: pa.Table, ids: range, codec: str) -> None:
    """Add a commit for each of `ids`: a Parquet file of `rows`, one row, with that id, and an entry of the log.

    An entry is that of the client's last commit, with another data file: delta-rs itself takes 0.14 ms longer for each
    commit that a table has, and two hours for 10,000. `version` is the table's: its last commit, by delta-rs or made
    here, added one such row.
    """
    import pyarrow.parquet as pq

    lines = (folder / LOG / f"{version:020d}.json").read_text().splitlines()
    entry: dict[str, Any] = {name: each for line in lines for name, each in json.loads(line).items()}
    statistics = json.loads(entry["add"]["stats"])
    for number in ids:
        version += 1
        path = folder / f"part-00000-{secrets.token_hex(16)}-c000.{codec}.parquet"
        pq.write_table(with_id(rows, number), path, compression="none" if codec == "uncompressed" else codec)
        statistics["minValues"]["id"] = statistics["maxValues"]["id"] = number
        now = round(time.time() * 1000)
        own = {"path": path.name, "size": path.stat().st_size, "modificationTime": now, "stats": json.dumps(statistics)}
        made = {**entry, "add": {**entry["add"], **own}, "commitInfo": {**entry["commitInfo"], "timestamp": now}}
        text = "\n".join(json.dumps({name: each}) for name, each in made.items())
        (folder / LOG / f"{version:020d}.json").write_text(text)


READER = ("delta",)  # DuckDB's extension
FILES_LEFT = re.compile(r"files_ranges_pruned_statistics=(\d+) total")  # left to read after pruning by the log
NO_FILES = "files_scanned=0"


class DeltaRs(DeltaTable):
    name: ClassVar[str] = "delta-rs"
    title: ClassVar[str] = "Delta (delta-rs)"
    client: ClassVar[str] = "delta-rs"
    packages: ClassVar[Mapping[str, str]] = {"deltalake": "deltalake"}
    libraries: ClassVar[tuple[str, ...]] = ("deltalake",)
    notes: tuple[str, ...] = (NO_SERVICE, "delta-rs runs its own threads, and has no setting for their number")
    capabilities: frozenset[Capability] = OPEN_TABLE | {
        Capability.MERGE,
        Capability.PLANS,
        Capability.COMMIT_RETRY,
        Capability.MAINTENANCE,
        Capability.BUNDLES,
        Capability.ADD_COLUMN,
    }
    Options: ClassVar[type[Options]] = DeltaRsOptions
    written_through: ClassVar[tuple[str, ...]] = (".", LOG)  # it cannot be interrupted before its commit
    time_limit: ClassVar[str | None] = TIMEOUT
    maintains: ClassVar[tuple[str, ...]] = ("compact", "vacuum", "checkpoint")

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
        self._writer = DeltaRsWriter(**self._values(), table=table)
        self._append = self._writer.write

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    @property
    def commits_at_once(self) -> int:  # type: ignore[override]
        return AT_ONCE if self.folder is None else 1

    def make_commits(self, rows: pa.Table, ids: range) -> None:
        if self.commits_at_once == 1:
            super().make_commits(rows, ids)
            return
        assert self._writer is not None
        add_log_entries(self.place, self._writer.table.version(), rows, ids, self.context.codec)
        self._writer.refresh()
        self._writer.table.create_checkpoint()

    def add_column(self, name: str) -> None:
        from deltalake.schema import Field, PrimitiveType

        assert self._writer is not None
        self._writer.table.alter.add_columns(Field(name, PrimitiveType("long")))

    def client_factory(self) -> OpenedBy[DeltaRsWriter]:
        return OpenedBy(DeltaRsWriter, self._values())

    def _values(self) -> dict[str, Any]:
        place = {"location": self._location, "access": self._access()}
        return {**place, "codec": self.context.codec, "retries": self.options.commit_retries}

    @property
    def reader(self) -> str:
        if duckdb_client.has_extensions(READER):
            return duckdb_client.reader_name(*READER)
        return f"{delta_client.reader_name()}, as the writer, on a separate handle: DuckDB's extension is not here"

    def ids(self) -> pa.ChunkedArray:
        if not duckdb_client.has_extensions(READER):
            return self._ids_by_delta_rs()
        with self.open_reader() as other:
            return other.ids()

    def open_reader(self) -> AbstractContextManager[DuckDBReadClient]:
        # As a URI: the extension parses a % in a plain path as a printf conversion.
        address = self.place.as_uri() if self._location.startswith("/") else self._location
        directory, scan = self.context.directory, f"delta_scan({duckdb_client.literal(address)})"
        if self.folder is None:
            return duckdb_client.open_reader(READER, directory, (), scan)
        return duckdb_client.open_reader((*READER, HTTPFS), directory, (self.folder.for_readers().secret(),), scan)

    def read(self) -> pa.Table:
        return self._load().to_pyarrow_table()

    def data_files(self) -> Sequence[PurePath]:
        return self._listed()

    def merge(self) -> None:
        # The writer's handle knows the newest version, so that a writing client need not load the table again.
        assert self._writer is not None
        self._writer.compact()
        self._writer.vacuum()

    def answer(self, asked: Filter) -> int:
        return len(self._ask(f"SELECT id FROM trips WHERE {asked.sql}"))

    def files_to_read(self, asked: Filter) -> int:
        query = f"SELECT id FROM trips WHERE {asked.sql}"
        plan = str(self._ask(f"EXPLAIN ANALYZE {query}").to_pydict())
        left = [int(files) for files in FILES_LEFT.findall(plan)]
        if not left and NO_FILES not in plan:
            raise SystemFailure(f"{self.name}: the plan of '{query}' tells of no files: {plan}")
        return sum(left)

    def _ask(self, query: str) -> pa.Table:
        import pyarrow as pa
        from deltalake import QueryBuilder

        return pa.table(QueryBuilder().register("trips", self._load()).execute(query).read_all())

    def close(self) -> None:
        self._writer = None
