"""Apache Paimon, written by its Python client: tables without a primary key, in a file system catalog.

Snapshots and manifests are read without the client.
"""

from __future__ import annotations

import importlib.util
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.services.base import files_below
from tidemark.systems.base import OPEN_TABLE, Capability, Context, Durability, Options, PerWrite
from tidemark.systems.full_durability import DurabilityOptions, FullDurability
from tidemark.systems.releases import Client, Release
from tidemark.systems.tables import Committed, and_pyarrow, footprint_of, read_ids
from tidemark.systems.writers import CommitStatus, IdempotencyKey, OpenedBy, TableWriter, commit_retries_option

if TYPE_CHECKING:
    import pyarrow as pa


PAIMON = Client("pypaimon", "pypaimon", (Release((2, 1, 0)),))
FOLDER, PREFIX = "snapshot", "snapshot-"
MANIFESTS = "manifest"
ADDED = 0  # kind of an entry; the other kind removes a file from the table


def numbers(table: Path) -> list[int]:
    """Return the numbers of the snapshots of the table in a folder, oldest first."""
    names = (path.name.removeprefix(PREFIX) for path in (table / FOLDER).glob(f"{PREFIX}*"))
    return sorted(int(name) for name in names if name.isdigit())


def snapshot(table: Path, number: int) -> dict[str, Any]:
    """Return a commit as its file records it; `commitIdentifier` is the number that `commitUser` gave it."""
    return dict(json.loads((table / FOLDER / f"{PREFIX}{number}").read_text()))


def newest(table: Path) -> dict[str, Any] | None:
    """Return the newest snapshot; None if nothing was committed yet."""
    found = numbers(table)
    return snapshot(table, found[-1]) if found else None


def data_files(table: Path) -> list[Path]:
    """Return the files that hold the table's rows, by the manifests of its newest snapshot."""
    last = newest(table)
    added: dict[Path, None] = {}
    removed: set[Path] = set()
    for name in (last["baseManifestList"], last["deltaManifestList"]) if last else ():
        for manifest in _records(table / MANIFESTS / name):
            for entry in _records(table / MANIFESTS / manifest["_FILE_NAME"]):
                path = table / f"bucket-{entry['_BUCKET']}" / entry["_FILE"]["_FILE_NAME"]
                if entry["_KIND"] == ADDED:
                    added[path] = None
                else:
                    removed.add(path)
    return [path for path in added if path not in removed]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    import fastavro

    with path.open("rb") as file:
        yield from fastavro.reader(file)


DATABASE, TABLE_NAME = "tidemark", "trips"
OVERTAKEN = "commit conflicts between multiple jobs"  # in its message after the last retry


def open_catalog(warehouse: Path) -> Any:
    from pypaimon import CatalogFactory

    return CatalogFactory.create({"warehouse": str(warehouse)})


def folder_of(warehouse: Path) -> Path:
    """Return the table's folder in a warehouse of the file system."""
    return warehouse / f"{DATABASE}.db" / TABLE_NAME


class PaimonWriter(TableWriter):
    """Stream writer, whose commits have a user that is unique to it, and an increasing number."""

    def __init__(self, warehouse: Path) -> None:
        self._folder = folder_of(warehouse)
        self._table = open_catalog(warehouse).get_table(f"{DATABASE}.{TABLE_NAME}")
        self._user, self._number = secrets.token_hex(16), 0
        self._begin(self._user)

    def _begin(self, user: str) -> None:
        builder = self._table.new_stream_write_builder()
        builder.commit_user = self._by = user
        self._write, self._commit = builder.new_write(), builder.new_commit()

    def write(self, rows: pa.Table) -> None:
        self._number += 1
        self._append(rows, self._number)

    def _append(self, rows: pa.Table, number: int) -> None:
        self._write.write_arrow(rows)
        self._commit.commit(self._write.prepare_commit(number), number)

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        if self._by != key.writer:
            self._end()
            self._begin(key.writer)
        self._append(rows, key.number)

    def has(self, key: IdempotencyKey) -> bool:
        for number in reversed(numbers(self._folder)):
            found = snapshot(self._folder, number)
            if found["commitUser"] == key.writer:
                return bool(found["commitIdentifier"] >= key.number)
        return False

    def commit_status(self, error: Exception) -> CommitStatus:
        # If the commit itself raised an error, the client does not know its outcome.
        if OVERTAKEN in str(error):
            return CommitStatus.CONFLICT if error.__cause__ is None else CommitStatus.UNKNOWN
        return CommitStatus.FAILED if isinstance(error, (ValueError, KeyError)) else CommitStatus.UNKNOWN

    def refresh(self) -> None:
        """Start a new writer, so that rows that were not committed are not part of the next commit."""
        self._end()
        self._begin(self._by)

    def _end(self) -> None:
        self._write.close()
        self._commit.close()

    def close(self) -> None:
        self._end()


NOT_HERE = "the client pypaimon is not installed in this stack; with stacks: [paimon] it is"
OVERWRITES = (
    "a commit is a file that is renamed unless one of that name is there, which two processes may find at once: of two "
    "commits that were acknowledged one can be lost"
)


@dataclass(frozen=True, slots=True)
class PaimonOptions(DurabilityOptions):
    commit_retries: int | None = commit_retries_option("commit.max-retries", "Paimon: 10")


class Paimon(FullDurability):
    name: ClassVar[str] = "paimon"
    title: ClassVar[str] = "Paimon"
    format: ClassVar[str] = "Apache Paimon"
    client: ClassVar[str] = PAIMON.name
    catalog: str = "Paimon snapshots"
    packages: ClassVar[Mapping[str, str]] = {PAIMON.name: PAIMON.package}
    libraries: ClassVar[tuple[str, ...]] = ("pypaimon", "polars", "_polars_runtime_32", "fastavro")
    notes: tuple[str, ...] = ("no catalog service", "a table without a primary key, in one bucket", OVERWRITES)
    capabilities: frozenset[Capability] = OPEN_TABLE | {Capability.COMMIT_RETRY}
    no_bundles: ClassVar[str] = "its client commits what its own writers prepared, and no files that are there"
    durability: Durability = Durability("Data, manifests and snapshot are left to the page cache; nothing is flushed.")
    # Data, three manifests, snapshot, hint and their folders; occasionally a merge of manifests.
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(9, 10)
    Options: ClassVar[type[Options]] = PaimonOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self.say(PAIMON.remark())
        self._folder = folder_of(context.directory)
        self._writer: PaimonWriter | None = None

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        return super().unavailable(options) if importlib.util.find_spec(PAIMON.name) else NOT_HERE

    def create(self, schema: pa.Schema) -> None:
        from pypaimon import Schema

        catalog = open_catalog(self.context.directory)
        catalog.create_database(DATABASE, False)
        options = {"bucket": "-1", "file.format": "parquet", "file.compression": self.context.compression}
        if self.options.commit_retries is not None:
            options["commit.max-retries"] = str(self.options.commit_retries)
        made_of = Schema.from_pyarrow_schema(schema, options=options)
        catalog.create_table(f"{DATABASE}.{TABLE_NAME}", made_of, False)
        self._writer = PaimonWriter(self.context.directory)
        self._append = self._writer.write
        self._keep_promise_below(self._folder)

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    def client_factory(self) -> OpenedBy[PaimonWriter]:
        return OpenedBy(PaimonWriter, {"warehouse": self.context.directory})

    @property
    def reader(self) -> str:
        return and_pyarrow(f"fastavro {version('fastavro')} (the manifests, without Paimon's client)")

    def ids(self) -> pa.ChunkedArray:
        return read_ids(self.data_files())

    def read(self) -> pa.Table:
        import pyarrow as pa
        import pyarrow.parquet as pq

        return pa.concat_tables(pq.read_table(path) for path in self.data_files())

    def data_files(self) -> Sequence[Path]:
        return data_files(self._folder)

    def footprint(self) -> Footprint:
        files = files_below(self._folder)
        return footprint_of((path.suffix == ".parquet", path.stat().st_size) for path in files)

    def commits(self) -> int:
        """Return the number of snapshots plus one for the table's creation, which is no snapshot."""
        last = newest(self._folder)
        return 1 + (int(last["id"]) if last else 0)

    def visible_rows(self) -> int:
        last = newest(self._folder)
        return int(last["totalRecordCount"]) if last else 0

    def history(self) -> Sequence[Committed]:
        commits = (snapshot(self._folder, number) for number in numbers(self._folder))
        added = (each for each in commits if each["commitKind"] == "APPEND")
        return [Committed(float(each["timeMillis"]), each["deltaRecordCount"]) for each in added]

    def settings(self) -> Mapping[str, str]:
        return {"location": str(self._folder)}

    def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
