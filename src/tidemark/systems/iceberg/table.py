"""Common base of Iceberg tables, for all writers: catalog, creation, files, history."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from tidemark.errors import SystemFailure
from tidemark.runs.manifest import Footprint
from tidemark.services.base import Service
from tidemark.services.iceberg.rest import RestCatalog as Server
from tidemark.services.seaweedfs import InBucket
from tidemark.systems.base import FULL, Context, Durability, Options, PerWrite, option
from tidemark.systems.full_durability import SUMMARY
from tidemark.systems.iceberg import client as pyiceberg_client
from tidemark.systems.iceberg.catalog import CATALOGS, HADOOP, IN_S3, NIO, NOT_OURS, REFERENCE, as_it_is, chosen_catalog
from tidemark.systems.object_store import S3, Folder, StorageOptions, Stored, path_of
from tidemark.systems.postgres_catalog import promised, shown
from tidemark.systems.tables import Committed, footprint_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table

TABLE = "trips"
CODEC = "write.parquet.compression-codec"
WORKERS = "PYICEBERG_MAX_WORKERS"


def set_workers(threads: int) -> None:
    """Set the number of PyIceberg's workers to `threads`; a process has one pool, which is created at first use."""
    from pyiceberg.utils.concurrent import ExecutorFactory

    os.environ[WORKERS] = str(threads)
    pool, ExecutorFactory._instance = ExecutorFactory._instance, None
    if pool is not None:
        pool.shutdown(wait=False)


def workers() -> int:
    """Return the number of workers in PyIceberg's pool."""
    from pyiceberg.utils.concurrent import ExecutorFactory

    return int(cast(Any, ExecutorFactory.get_or_create())._max_workers)


@dataclass(frozen=True, slots=True)
class IcebergOptions(StorageOptions):
    catalog: str = option(
        "reference",
        "The server that commits go through: Iceberg's own reference server, Apache Polaris, or Nessie, with storage: "
        "s3.",
        choices=tuple(CATALOGS),
        follows="catalog",
    )
    file_io: str = option(
        HADOOP,
        "How the reference server writes table metadata. hadoop: as it comes, which starts 2 processes "
        "(chmod) a commit on a local disk. nio: by java.nio alone, which starts none and writes no checksum files.",
        choices=(HADOOP, NIO),
    )


class IcebergTable(Stored):
    """Table in the REST catalog, created by PyIceberg; a subclass defines how rows are written and read."""

    format: ClassVar[str] = "Iceberg"
    catalog: str = REFERENCE.label
    durability: Durability = REFERENCE.durability
    in_thesis: ClassVar[bool] = True
    notes: tuple[str, ...] = REFERENCE.notes
    needs: ClassVar[tuple[type[Service], ...]] = (REFERENCE.server,)
    # Data, manifest, manifest list and metadata, its checksums if Hadoop wrote it, and two folders.
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(6, 7)
    full_summary: ClassVar[str] = (
        f"{SUMMARY} The server writes the file of metadata within the commit: a power failure before that is synced "
        "can leave a catalog that names one which is not there."
    )
    Options: ClassVar[type[Options]] = IcebergOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.say(pyiceberg_client.PYICEBERG.remark())
        choice = chosen_catalog(options)
        self._rest = cast(Server, context.services[choice.server])
        chosen = as_it_is(choice, self._rest)
        self.catalog, self.durability = chosen.label, chosen.durability
        self.notes = (*chosen.notes, *(note for note in self.notes if note not in REFERENCE.notes))
        self.programs_per_write = {chosen.server: chosen.programs_per_commit}
        self._namespace = f"tidemark_{secrets.token_hex(6)}"
        self._empty_bytes = 0

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        return (chosen_catalog(options).server,)

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        if options.file_io != HADOOP and options.catalog != "reference":
            return f"file_io: {options.file_io} is of the reference server alone; the catalog is {options.catalog}"
        if options.catalog == IN_S3:
            if (options.storage, options.rtt_ms) != (S3, None):
                return "catalog: nessie keeps tables in an S3 server alone, without rtt_ms; give storage: s3"
            return super().unavailable(options)
        if options.storage == S3 and (options.catalog, options.file_io) != ("reference", HADOOP):
            return (
                "storage: s3 is of the reference server with a FileIO for it; found catalog: "
                f"{options.catalog}, file_io: {options.file_io}"
            )
        return super().unavailable(options)

    @cached_property
    def folder(self) -> Folder | None:
        if not isinstance(self._rest, InBucket):
            return None
        near, name = self._rest.bucket, f"warehouse/{self._namespace}"
        name += f"/{TABLE}" if self._rest.places_are_free else ""  # else the catalog chooses the folder in this one
        return Folder(near.by_way_of(self._rest.way), near, name)

    def reached_by(self, services: Mapping[type[Service], Service]) -> Self:
        other = super().reached_by(services)
        other._rest = cast(Server, services[chosen_catalog(self.options).server])
        return other

    @property
    def identifier(self) -> tuple[str, str]:
        """Namespace and name of the table in the catalog, for its other clients."""
        return self._namespace, TABLE

    def _access(self, folder: Folder | None) -> dict[str, str]:
        """Return the properties for a catalog client; `folder` is a bucket's, or None for files on the local disk."""
        access, shown = self._rest.oauth, {}
        if access is not None:
            shown = {
                "credential": f"{access.client_id}:{access.client_secret}",
                "oauth2-server-uri": access.token_uri,
                "scope": access.scope,
                # Files on a local disk need no credentials, and a server without any refuses a request for them.
                "header.X-Iceberg-Access-Delegation": "",
            }
        files = {} if folder is None else folder.for_pyiceberg()
        if self.options.catalog == IN_S3:
            files[pyiceberg_client.FILE_IO] = pyiceberg_client.BY_PYARROW  # Nessie asks for fsspec
        return {"uri": self._rest.uri, "warehouse": self._rest.warehouse, **shown, **files}

    def _load(self) -> Table:
        """Return the table as a new client would open it now."""
        folder = None if self.folder is None else self.folder.for_readers()
        table: Table = pyiceberg_client.catalog(self._access(folder)).load_table(self.identifier)
        return table

    def _properties(self) -> dict[str, str]:
        """Return the properties to create the table with. Without a codec the reference server would set zstd."""
        return {CODEC: self.context.codec}

    def _create(self, schema: pa.Schema) -> Table:
        catalog = pyiceberg_client.catalog(self._access(self.folder))
        self._rest.note_namespace(self._namespace)
        catalog.create_namespace(self._namespace)
        self._empty_bytes = self._rest.database_bytes() or 0
        database = self._rest.database
        self.durability = NOT_OURS if database is None else promised(self.durability, self.durability_level, *database)
        # A plain path: DuckDB 1.4.4 does not support the scheme `file`. An external catalog has its own rules.
        ours = self._rest.places_are_free and not self._rest.is_external
        location = str(self._rest.place(self.context.directory / "table")) if ours else None
        if self.folder is not None and self._rest.places_are_free:
            location = self.folder.uri
        properties = self._properties()
        table: Table = catalog.create_table(self.identifier, schema, location=location, properties=properties)
        return table

    def _promise(self, table: Table) -> None:
        """Apply the option `durability`, or raise SystemFailure; a subclass calls this at the end of its `create`."""
        if self.durability_level != FULL:
            return
        if self._rest.is_external:
            raise SystemFailure("durability: full cannot be had of a catalog that is not ours; leave it at default.")
        if (directory := self._directory(table)) is None:
            raise SystemFailure(
                f"durability: full cannot be had: the table lies at {table.location()}, not on a disk of this machine. "
                "Leave durability at default."
            )
        self._keep_promise_below(directory)

    def _directory(self, table: Table) -> Path | None:
        """Return the table's folder; None if it is not on a disk of this machine."""
        location = table.location()
        path = Path(path_of(location))
        return path if location.startswith(("/", "file:")) and path.is_dir() else None

    def _ids_by_pyiceberg(self) -> pa.ChunkedArray:
        return self._load().scan(selected_fields=("id",)).to_arrow().column("id")

    def footprint(self) -> Footprint:
        table, size = self._load(), self._rest.database_bytes()
        directory = self._directory(table)
        reason = "the catalog is a server that is not ours" if size is None else None
        if directory is None and self.folder is None:
            return Footprint(0, 0, 0, 0, None, f"the table lies at {table.location()}, not on this machine")
        place = path_of(table.location())
        # Hadoop's local file system adds a checksum file, with a leading dot, to each file of the reference server and
        # Polaris. It is part of neither the format nor the table, and is not counted.
        sizes = {path: size for path, size in self._sizes_below(Path(place)).items() if not path.name.startswith(".")}
        found = ((path.is_relative_to(place / "data"), each) for path, each in sizes.items())
        return footprint_of(found, None if size is None else size - self._empty_bytes, reason)

    def data_files(self) -> Sequence[PurePath]:
        return [path_of(task.file.file_path) for task in self._load().scan().plan_files()]

    def commits(self) -> int:
        """Return the number of the last commit plus one for the creation, so that expired snapshots count as well."""
        return 1 + int(self._load().last_sequence_number)

    def visible_rows(self) -> int:
        snapshot = self._load().current_snapshot()
        summary = None if snapshot is None else snapshot.summary
        return int(summary["total-records"] or 0) if summary and "total-records" in summary else 0

    def history(self) -> Sequence[Committed]:
        """Return the commits by the snapshots' summaries, without file replacements and expired snapshots."""
        if not self._rest.lists_snapshots:
            raise SystemFailure(f"{self._rest.title} shows a table's last snapshot alone, and no earlier commit.")
        found = []
        for snapshot in sorted(self._load().snapshots(), key=lambda each: each.sequence_number or 0):
            summary = snapshot.summary
            rows = int(summary["added-records"] or 0) if summary and "added-records" in summary else 0
            if rows and summary and summary.operation.value == "append":
                found.append(Committed(float(snapshot.timestamp_ms), rows))
        return found

    def settings(self) -> Mapping[str, str]:
        table = self._load()
        # Polaris adds `created-at`: a timestamp is not a setting, and would make any two runs differ.
        kept = {name: value for name, value in table.properties.items() if not name.endswith("-at")}
        database = self._rest.database
        promises = {} if database is None else shown(database[0].durability_settings(database[1]))
        return {**kept, "format-version": str(table.format_version), **promises}
