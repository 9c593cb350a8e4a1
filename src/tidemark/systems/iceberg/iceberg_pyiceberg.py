"""Iceberg, written by PyIceberg through a REST catalog, with the table properties that determine its growth."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tidemark.systems import duckdb_client
from tidemark.systems.base import OPEN_TABLE, Capability, Context, Options, PerWrite, option
from tidemark.systems.duckdb_client import DuckDBReadClient
from tidemark.systems.iceberg import client as pyiceberg_client
from tidemark.systems.iceberg.catalog import EXTENSIONS, attachments, refuses
from tidemark.systems.iceberg.catalog import SQL_CATALOG as CATALOG
from tidemark.systems.iceberg.table import TABLE as TABLE_NAME
from tidemark.systems.iceberg.table import IcebergOptions, IcebergTable, set_workers, workers
from tidemark.systems.tables import Filter, with_id
from tidemark.systems.writers import CommitStatus, IdempotencyKey, OpenedBy, TableWriter, commit_retries_option

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.table import DataScan, Table

AT_ONCE = 500  # snapshots in one commit to the catalog


@dataclass(frozen=True, slots=True)
class PyIcebergOptions(IcebergOptions):
    delete_after_commit: bool = option(
        False, "Each commit removes the oldest metadata file (write.metadata.delete-after-commit.enabled)."
    )
    previous_versions_max: int | None = option(
        None,
        "Old metadata files that are kept track of (write.metadata.previous-versions-max); Iceberg: 100.",
        minimum=1,
        examples=(2,),
    )
    manifest_merge: bool = option(False, "Merge manifests when 100 have come together (commit.manifest-merge.enabled).")
    commit_retries: int | None = commit_retries_option("commit.retry.num-retries", "PyIceberg 0.12: 4. 0.10 never does")
    retry_wait_ms: int | None = option(
        None,
        "Wait before the first of these (commit.retry.min-wait-ms); PyIceberg 0.12: 100.",
        minimum=1,
        examples=(5,),
    )
    expire_every: int | None = option(
        None,
        "Expire all snapshots but the current one after this many writes, inside the last of them.",
        minimum=1,
        examples=(5,),
    )


class IcebergPyIceberg(IcebergTable):
    name: ClassVar[str] = "iceberg-pyiceberg"
    title: ClassVar[str] = "Iceberg (PyIceberg)"
    client: ClassVar[str] = "PyIceberg"
    packages: ClassVar[Mapping[str, str]] = {"pyiceberg": "pyiceberg", "pyarrow": "pyarrow"}
    libraries: ClassVar[tuple[str, ...]] = ("pyiceberg*",)
    capabilities: frozenset[Capability] = OPEN_TABLE | {
        Capability.THREADS,
        Capability.PLANS,
        Capability.MAINTENANCE,
        Capability.ADD_COLUMN,
    }
    maintains: ClassVar[tuple[str, ...]] = ("expire",)
    not_maintained: ClassVar[str | None] = "small files stay: PyIceberg has no call that merges them"
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(7, 8)  # the metadata folder before and after the commit
    no_bundles: ClassVar[str] = "PyIceberg takes in files without field ids alone, unlike those that it writes"
    Options: ClassVar[type[Options]] = PyIcebergOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._table: Table | None = None
        self._writes = 0

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        retries = {Capability.COMMIT_RETRY} if pyiceberg_client.PYICEBERG.release().retries_commits else set()
        asked = {Capability.ASKED} if duckdb_client.has_extensions(EXTENSIONS) else set()
        return frozenset(retries | asked)

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        are_set = (options.commit_retries, options.retry_wait_ms) != (None, None)
        if are_set and Capability.COMMIT_RETRY not in cls.of_release():
            own = pyiceberg_client.reader_name()
            return f"{own} tries no commit again, whatever commit_retries and retry_wait_ms say"
        return super().unavailable(options)

    @classmethod
    def refuses_writers(cls, options: Any) -> str | None:
        if options.expire_every is not None:
            return "expire_every counts the writes of one process"
        return super().refuses_writers(options)

    def _properties(self) -> dict[str, str]:
        own = self.options
        given = {
            "commit.retry.num-retries": own.commit_retries,
            "commit.retry.min-wait-ms": own.retry_wait_ms,
            "write.metadata.delete-after-commit.enabled": own.delete_after_commit or None,
            "write.metadata.previous-versions-max": own.previous_versions_max,
            "commit.manifest-merge.enabled": own.manifest_merge or None,
        }
        chosen = {name: str(value).lower() for name, value in given.items() if value is not None}
        return {**super()._properties(), **chosen}

    def create(self, schema: pa.Schema) -> None:
        set_workers(self.context.threads)
        self._table = self._create(schema)
        # Chosen once, so that Tidemark adds no cost to a write.
        self._append = self._table.append if self.options.expire_every is None else self._append_and_expire
        self._promise(self._table)

    def before_commit(self, do: Callable[[], None]) -> None:
        assert self._table is not None
        pyiceberg_client.before_commits(self._table, do)

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    @property
    def commits_at_once(self) -> int:  # type: ignore[override]
        own = self.options
        is_plain = not (own.expire_every or own.manifest_merge or own.delete_after_commit)
        return AT_ONCE if is_plain and self.folder is None else 1

    def make_commits(self, rows: pa.Table, ids: range) -> None:
        if self.commits_at_once == 1:
            super().make_commits(rows, ids)
            return
        assert self._table is not None
        add_snapshots(self._table, rows, ids)

    def add_column(self, name: str) -> None:
        from pyiceberg.types import LongType

        assert self._table is not None
        with self._table.update_schema() as change:
            change.add_column(name, LongType())

    def client_factory(self) -> OpenedBy[PyIcebergWriter]:
        values = {"access": self._access(self.folder), "table": self.identifier, "threads": self.context.threads}
        return OpenedBy(PyIcebergWriter, values)

    def _append_and_expire(self, rows: pa.Table) -> None:
        assert self._table is not None
        self._table.append(rows)
        self._writes += 1
        if self._writes % self.options.expire_every == 0:
            pyiceberg_client.expire_snapshots(self._table)

    @property
    def reader(self) -> str:
        if not duckdb_client.has_extensions(EXTENSIONS):
            own = pyiceberg_client.reader_name()
            return f"{own}, as the writer, on a separate client: DuckDB's extension is not here"
        duckdb = duckdb_client.reader_name("iceberg")
        return f"{duckdb}, given the metadata file by PyIceberg" if refuses(self._rest.uri) else duckdb

    def ids(self) -> pa.ChunkedArray:
        if not duckdb_client.has_extensions(EXTENSIONS):
            return self._ids_by_pyiceberg()
        with self.open_reader() as other:
            return other.ids()

    def open_reader(self) -> AbstractContextManager[DuckDBReadClient]:
        if refuses(self._rest.uri):
            scan = f"iceberg_scan({duckdb_client.literal(self._load().metadata_location)})"
            return duckdb_client.open_reader(EXTENSIONS, self.context.directory, (), scan)
        folder = None if self.folder is None else self.folder.for_readers()
        name = f"{CATALOG}.{self._namespace}.{TABLE_NAME}"
        return duckdb_client.open_reader(EXTENSIONS, self.context.directory, attachments(self._rest, folder), name)

    def read(self) -> pa.Table:
        return self._load().scan().to_arrow()

    def answer(self, asked: Filter) -> int:
        """Query with PyIceberg, which has no substring filter: `contains` is applied to rows after they are read."""
        import pyarrow.compute as pc

        rows = self._scan(asked).to_arrow()
        if asked.contains is not None:
            column, text = asked.contains
            rows = rows.filter(pc.match_substring(rows.column(column), text))
        return len(rows)

    def files_to_read(self, asked: Filter) -> int:
        return len(list(self._scan(asked).plan_files()))

    def _scan(self, asked: Filter) -> DataScan:
        assert self._table is not None
        return self._table.scan(row_filter=asked.where) if asked.where else self._table.scan()

    def settings(self) -> Mapping[str, str]:
        rules = {"PyIceberg release rules": str(pyiceberg_client.PYICEBERG.release())}
        return {**super().settings(), **rules, "threads": str(workers())}

    def close(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            cast(Any, table.catalog)._session.close()


TOKEN = "tidemark.token"  # in a snapshot's summary


class PyIcebergWriter(TableWriter):
    def __init__(self, access: Mapping[str, str], table: tuple[str, str], threads: int) -> None:
        from pyiceberg import exceptions

        self._conflict = exceptions.CommitFailedException
        self._certain = (
            exceptions.BadRequestError,
            exceptions.ForbiddenError,
            exceptions.NoSuchTableError,
            exceptions.UnauthorizedError,
            exceptions.ValidationError,
            ValueError,  # rows that do not fit the table
        )
        set_workers(threads)
        self._table = pyiceberg_client.catalog(access).load_table(table)
        self._attempts = 0
        pyiceberg_client.before_commits(self._table, self._count_attempt)
        self._append = self._table.append

    def _count_attempt(self) -> None:
        self._attempts += 1

    def before_commit(self, do: Callable[[], None]) -> None:
        pyiceberg_client.before_commits(self._table, do)

    def write(self, rows: pa.Table) -> None:
        self._attempts = 0
        self._append(rows)

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        self._attempts = 0
        self._append(rows, snapshot_properties={TOKEN: str(key)})

    def has(self, key: IdempotencyKey) -> bool:
        self._table.refresh()
        summaries = [each.summary for each in self._table.snapshots()]
        return any(each is not None and each.get(TOKEN) == str(key) for each in summaries)

    def count(self) -> int:
        self._table.refresh()
        return int(self._table.scan(selected_fields=("id",)).to_arrow().num_rows)

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        def expire() -> None:
            self._table.refresh()  # what others wrote in the meantime
            pyiceberg_client.expire_snapshots(self._table)

        return {"expire": expire}

    def commit_status(self, error: Exception) -> CommitStatus:
        if isinstance(error, self._conflict):
            return CommitStatus.CONFLICT
        return CommitStatus.FAILED if isinstance(error, self._certain) else CommitStatus.UNKNOWN

    def refresh(self) -> None:
        self._table.refresh()

    def attempts(self) -> int:
        return self._attempts

    def close(self) -> None:
        cast(Any, self._table.catalog)._session.close()


def add_snapshots(table: Table, rows: pa.Table, ids: range) -> None:
    """Add a snapshot for each of `ids`, with `rows`, one row, as a data file, and refresh `table`.

    PyIceberg takes 0.75 ms longer for each commit that a table has: each one lists all manifests, and has all snapshots
    sent back to it. Here its own writers of files are used, and the catalog is asked once for many snapshots. Each of
    them has a data file and a manifest. Of the lists of manifests only the last is written: the others are needed by
    readers of earlier snapshots alone.
    """
    from pyiceberg.io.pyarrow import _dataframe_to_data_files
    from pyiceberg.manifest import write_manifest_list
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.update import AddSnapshotUpdate, AssertRefSnapshotId, SetSnapshotRefUpdate

    metadata: Any = table.metadata
    before = last = table.current_snapshot()
    manifests = [] if before is None else before.manifests(table.io)
    sequence = metadata.last_sequence_number
    made: list[Any] = []
    for number in ids:
        sequence += 1
        (file,) = _dataframe_to_data_files(metadata, with_id(rows, number), table.io)
        identity, name = metadata.new_snapshot_id(), uuid.uuid4()
        manifests.insert(0, _manifest(table, identity, sequence, file, name))
        last = cast(Any, Snapshot)(
            snapshot_id=identity,
            parent_snapshot_id=None if last is None else last.snapshot_id,
            manifest_list=table.location_provider().new_metadata_location(f"snap-{identity}-0-{name}.avro"),
            sequence_number=sequence,
            summary=_summary(table, file, last),
            schema_id=metadata.current_schema_id,
        )
        made.append(last)
    if last is None or not made:
        return
    with write_manifest_list(
        metadata.format_version,
        table.io.new_output(last.manifest_list),
        last.snapshot_id,
        last.parent_snapshot_id,
        sequence,
        _codec(table),
    ) as writer:
        writer.add_manifests(manifests)
    reference = cast(Any, SetSnapshotRefUpdate)(ref_name="main", type="branch", snapshot_id=last.snapshot_id)
    table.catalog.commit_table(
        table,
        (cast(Any, AssertRefSnapshotId)(ref="main", snapshot_id=None if before is None else before.snapshot_id),),
        (*(cast(Any, AddSnapshotUpdate)(snapshot=each) for each in made), reference),
    )
    table.refresh()


def _manifest(table: Table, snapshot: int, sequence: int, file: DataFile, name: uuid.UUID) -> ManifestFile:
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

    metadata = table.metadata
    output = table.io.new_output(table.location_provider().new_metadata_location(f"{name}-m0.avro"))
    with write_manifest(
        metadata.format_version, metadata.spec(), metadata.schema(), output, snapshot, _codec(table)
    ) as writer:
        entry = cast(Any, ManifestEntry.from_args)(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=snapshot,
            sequence_number=None,
            file_sequence_number=None,
            data_file=file,
        )
        writer.add(entry)
    made = writer.to_manifest_file()
    # A list of manifests assigns the number to those of its own snapshot alone.
    made.sequence_number = made.min_sequence_number = sequence
    return made


def _summary(table: Table, file: DataFile, last: Any) -> Any:
    from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries

    collector = SnapshotSummaryCollector()
    collector.add_file(file, table.metadata.schema(), table.metadata.spec())
    return update_snapshot_summaries(
        summary=Summary(operation=Operation.APPEND, **collector.build()),
        previous_summary=None if last is None else last.summary,
    )


def _codec(table: Table) -> Any:
    from pyiceberg.table import TableProperties

    name, default = TableProperties.WRITE_AVRO_COMPRESSION, TableProperties.WRITE_AVRO_COMPRESSION_DEFAULT
    return table.metadata.properties.get(name, default)
