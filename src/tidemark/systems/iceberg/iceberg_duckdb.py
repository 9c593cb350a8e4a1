"""Iceberg, written by DuckDB's iceberg extension through a REST catalog, to a table that PyIceberg created."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.systems.base import OPEN_TABLE, Capability, Context, Options, option
from tidemark.systems.duckdb_client import DUCKDB, literal
from tidemark.systems.duckdb_table import DuckDBSystem
from tidemark.systems.iceberg import client as pyiceberg_client
from tidemark.systems.iceberg.catalog import EXTENSIONS, attachments, refuses
from tidemark.systems.iceberg.catalog import SQL_CATALOG as CATALOG
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg, PyIcebergWriter
from tidemark.systems.iceberg.table import TABLE, IcebergOptions, IcebergTable
from tidemark.systems.tables import Committed, TableSystem
from tidemark.systems.writers import OpenedBy

if TYPE_CHECKING:
    import pyarrow as pa

CLIENT_SETTING = "httpfs_client_implementation"
TIMEOUT = "http_timeout"  # seconds
ONE_TABLE = "one"
SLOW_HTTP = "DuckDB 1.4.4's default HTTP client adds some 40 ms to a commit; http_client: curl does not"


@dataclass(frozen=True, slots=True)
class IcebergDuckDBOptions(IcebergOptions):
    http_client: str = option(
        "default",
        "DuckDB's HTTP client. The default one of 1.4.4 adds some 40 ms to each commit against a catalog "
        "on this machine; curl does not.",
        choices=("default", "curl"),
    )
    commit_endpoint: str = option(
        "several",
        "Catalog's endpoint for commits. several: the one for changes of several tables, DuckDB's default, at which "
        "the reference catalog loses commits if another client commits as well. one: that of the table, which DuckDB "
        "1.4.4 cannot be told to use.",
        choices=("several", ONE_TABLE),
    )


class IcebergDuckDB(IcebergTable, DuckDBSystem):
    name: ClassVar[str] = "iceberg-duckdb"
    title: ClassVar[str] = "Iceberg (DuckDB)"
    notes: tuple[str, ...] = (*IcebergTable.notes, SLOW_HTTP)
    extensions: tuple[str, ...] = EXTENSIONS
    conflicts: ClassVar[tuple[str, ...]] = ("Conflict_409",)
    capabilities: frozenset[Capability] = OPEN_TABLE | {Capability.THREADS, Capability.PLANS}
    no_maintenance: ClassVar[str] = "DuckDB has no call that maintains it; PyIceberg's client can, beside the writer"
    maintained_by: ClassVar[type[TableSystem] | None] = IcebergPyIceberg
    # The writer of 1.4.4 ignores the table's property.
    compressions: ClassVar[frozenset[str]] = frozenset({"snappy"})
    time_limit: ClassVar[str | None] = TIMEOUT
    Options: ClassVar[type[Options]] = IcebergDuckDBOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        if not DUCKDB.release().http_client_is_slow:
            self.withdraw(SLOW_HTTP)
        self.table = f"{CATALOG}.{self._namespace}.{TABLE}"

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        return frozenset({Capability.ADD_COLUMN} if DUCKDB.release().iceberg_adds_columns else ())

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        if options.commit_endpoint == ONE_TABLE and not DUCKDB.release().iceberg_commits_to_one_table:
            return f"DuckDB {DUCKDB.installed()} cannot be told to commit to the endpoint of one table"
        return super().unavailable(options)

    def create(self, schema: pa.Schema) -> None:
        # DuckDB does not create the folders of a table that it creates with rows, and 1.4.4's CREATE TABLE accepts no
        # properties, such as the codec. For PyIceberg the server creates the folders.
        table = self._create(schema)
        self._open()
        self._promise(table)

    def _attachments(self) -> tuple[str, ...]:
        if refuses(self._rest.uri):
            raise SystemFailure(
                f"{self.name}: the catalog's address {self._rest.uri} has capital letters, which this DuckDB would "
                "change to small ones. Give the catalog an address without, or use a later DuckDB."
            )
        wait = () if self.context.answer_s is None else (f"SET {TIMEOUT} = {self.context.answer_s}",)
        client = f"SET {CLIENT_SETTING} = {literal(self.options.http_client)}"
        one_table = self.options.commit_endpoint == ONE_TABLE
        return (client, *wait, *attachments(self._rest, self.folder, one_table))

    # DuckDB's summaries of snapshots hold no numbers of rows; its lists of manifests do.
    def visible_rows(self) -> int:
        table = self._load()
        snapshot = table.current_snapshot()
        manifests = [] if snapshot is None else snapshot.manifests(table.io)
        return sum((each.added_rows_count or 0) + (each.existing_rows_count or 0) for each in manifests)

    def history(self) -> Sequence[Committed]:
        table = self._load()
        found = []
        for snapshot in sorted(table.snapshots(), key=lambda each: each.sequence_number or 0):
            own = [each for each in snapshot.manifests(table.io) if each.added_snapshot_id == snapshot.snapshot_id]
            if rows := sum(each.added_rows_count or 0 for each in own):
                found.append(Committed(float(snapshot.timestamp_ms), rows))
        return found

    def maintainer(self) -> OpenedBy[PyIcebergWriter]:
        values = {"access": self._access(self.folder), "table": self.identifier, "threads": self.context.threads}
        return OpenedBy(PyIcebergWriter, values)

    @property
    def reader(self) -> str:
        return pyiceberg_client.reader_name()

    def ids(self) -> pa.ChunkedArray:
        return self._ids_by_pyiceberg()

    def settings(self) -> Mapping[str, str]:
        found = self._writer.execute(f"SELECT value FROM duckdb_settings() WHERE name = '{CLIENT_SETTING}'").fetchall()
        return {**DuckDBSystem.settings(self), **IcebergTable.settings(self), CLIENT_SETTING: str(found[0][0])}
