"""Lance, written by its own library; its manifests are read without it.

A manifest is complete, and each commit adds one. The format is Lance's own (table.proto): a protocol buffers message,
preceded by its length. Its offset is in the last bytes of the file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.services.base import files_below
from tidemark.systems import duckdb_client, writers
from tidemark.systems.base import OPEN_TABLE, Capability, Context, Durability, Options, PerWrite, take
from tidemark.systems.full_durability import DurabilityOptions, FullDurability
from tidemark.systems.releases import Client, Release
from tidemark.systems.tables import Committed, footprint_of
from tidemark.systems.writers import CommitStatus, DataFile, IdempotencyKey, OpenedBy, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset


LANCE = Client("pylance", "pylance", (Release((14, 0, 2)),))
FOLDER = "_versions"
LAST_VERSION = (1 << 64) - 1  # files are named by this minus the version, so that the newest comes first
TAIL = struct.Struct("<QHH4s")  # offset of the message, major and minor version, MAGIC
MAGIC = b"LANC"
FRAGMENTS, TIMESTAMP = 2, 7  # fields of a manifest
FILES, PHYSICAL_ROWS = 2, 4  # of a fragment
PATH = 1  # of a file
SECONDS, NANOSECONDS = 1, 2  # of a timestamp
VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5  # wire types


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of the table."""

    at_ms: float  # Unix time
    rows: int
    files: tuple[str, ...]  # in the table's folder `data`


def manifest_paths(table: Path) -> list[Path]:
    """Return the manifests of the table in a folder, oldest first."""
    return sorted((table / FOLDER).glob("*.manifest"), reverse=True)


def version_of(path: Path) -> int:
    return LAST_VERSION - int(path.stem)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; raise ValueError if the file is not one."""
    content = memoryview(path.read_bytes())
    place, _, _, magic = TAIL.unpack(content[-TAIL.size :])
    if magic != MAGIC:
        raise ValueError(f"{path} does not end as a manifest of Lance")
    (length,) = struct.unpack_from("<I", content, place)
    at_ms, rows, files = 0.0, 0, []
    for number_of_field, _, value in _fields(content[place + 4 : place + 4 + length]):
        if number_of_field == TIMESTAMP:
            parts = {part: number for part, number, _ in _fields(value)}
            at_ms = parts.get(SECONDS, 0) * 1e3 + parts.get(NANOSECONDS, 0) / 1e6
        elif number_of_field == FRAGMENTS:
            for part, number, file in _fields(value):
                if part == PHYSICAL_ROWS:
                    rows += number
                elif part == FILES:
                    files += [bytes(name).decode() for inner, _, name in _fields(file) if inner == PATH]
    return Manifest(at_ms, rows, tuple(files))


def _fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield the number of each field of a message, its integer value, and its bytes, which may be a message."""
    place, nothing = 0, message[:0]
    while place < len(message):
        key, place = _varint(message, place)
        field, kind = key >> 3, key & 7
        if kind == VARINT:
            number, place = _varint(message, place)
            yield field, number, nothing
            continue
        if kind == BYTES:
            size, place = _varint(message, place)
        elif kind in (FIXED_64, FIXED_32):
            size = 8 if kind == FIXED_64 else 4
        else:
            raise ValueError(f"found a field of kind {kind}, which messages of today do not have")
        yield field, 0, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """Return the integer that begins at `place`, and the offset after it."""
    number = shift = 0
    while True:
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place
        shift += 7


DATA = "data"  # the folder of a table's data files
WRITER, NUMBER = "tidemark.writer", "tidemark.number"  # properties of a commit that has a token
OVERTAKEN = "commit conflict for version"  # in Lance's message after its last retry
MISFIT = "append with different schema"


class LanceWriter(TableWriter):
    """Writer with a handle of its own unless it gets a `table`; `packages` are folders with Lance's packages.

    `retries` are those of a commit that lost to another one; None: Lance's default.
    """

    def __init__(
        self, location: str, packages: tuple[str, ...], retries: int | None, table: LanceDataset | None = None
    ) -> None:
        take(packages)
        import lance
        from lance import fragment

        self.table = lance.dataset(location) if table is None else table
        self._folder = Path(location, DATA)
        self._append, self._lance, self._fragment = lance.write_dataset, lance, fragment
        self._retries = retries

    def write(self, rows: pa.Table) -> None:
        # With the same handle, Lance only looks for commits after its version.
        if self._retries is None:
            self.table = self._append(rows, self.table, mode="append")
        else:
            self._commit(self._fragments(rows))

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        self._commit(self._fragments(rows), {WRITER: key.writer, NUMBER: str(key.number)})

    def has(self, key: IdempotencyKey) -> bool:
        self.refresh()
        for number in range(self.table.version, 0, -1):
            found = self.table.read_transaction(number)
            known = (found.transaction_properties or {}) if found else {}
            if known.get(WRITER) == key.writer:
                return int(known[NUMBER]) >= key.number
        return False

    def stage(self, rows: pa.Table) -> DataFile:
        (made,) = self._fragments(rows)
        (file,) = made.files
        path = self._folder / str(file.path)
        return DataFile(path.name, path.stat().st_size, rows.num_rows)

    def register(self, files: Sequence[DataFile]) -> None:
        made = [(self._fragment.DataFile.create(self.table, each.path), each.rows) for each in files]
        self._commit([self._fragment.FragmentMetadata(0, [file], rows) for file, rows in made])

    def _fragments(self, rows: pa.Table) -> list[Any]:
        return list(self._fragment.write_fragments(rows, self.table, mode="append"))

    def _commit(self, fragments: list[Any], properties: Mapping[str, str] | None = None) -> None:
        lance = self._lance
        transaction = lance.Transaction(
            self.table.version, lance.LanceOperation.Append(fragments), transaction_properties=dict(properties or {})
        )
        retries = {} if self._retries is None else {"max_retries": self._retries}
        self.table = lance.LanceDataset.commit(self.table, transaction, **retries)

    def count(self) -> int:
        self.refresh()
        return int(self.table.to_table(columns=["id"]).num_rows)

    def compact(self) -> None:
        """Replace small files by larger ones."""
        self.table.optimize.compact_files()

    def cleanup(self) -> None:
        """Remove all versions but the newest, and files only they use; by default they are kept for two weeks."""
        self.table.cleanup_old_versions(older_than=timedelta(0))

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        def compact() -> None:
            self.refresh()  # what others wrote in the meantime
            self.compact()

        return {"compact": compact, "cleanup": self.cleanup}

    def commit_status(self, error: Exception) -> CommitStatus:
        text = str(error).lower()
        if OVERTAKEN in text:
            return CommitStatus.CONFLICT
        return CommitStatus.FAILED if MISFIT in text else CommitStatus.UNKNOWN

    def refresh(self) -> None:
        self.table.checkout_latest()


READER = ("lance",)  # DuckDB's extension


@dataclass(frozen=True, slots=True)
class LanceOptions(DurabilityOptions):
    commit_retries: int | None = writers.commit_retries_option("max_retries", "Lance: 20")


class Lance(FullDurability):
    name: ClassVar[str] = "lance"
    title: ClassVar[str] = "Lance"
    format: ClassVar[str] = "Lance"
    client: ClassVar[str] = LANCE.name
    catalog: str = "Lance manifests"
    packages: ClassVar[Mapping[str, str]] = {LANCE.name: LANCE.package}
    libraries: ClassVar[tuple[str, ...]] = ("lance",)
    tools: ClassVar[tuple[str, ...]] = ("lance",)
    notes: tuple[str, ...] = (
        "no catalog service",
        "its files are no Parquet: they have Lance's own encodings, and `compression` is not of them",
        "Lance runs its own threads; what sets their number is read from the environment (LANCE_CPU_THREADS)",
    )
    compressions: ClassVar[frozenset[str]] = frozenset()
    maintains: ClassVar[tuple[str, ...]] = ("compact", "cleanup")
    capabilities: frozenset[Capability] = OPEN_TABLE | {
        Capability.MERGE,
        Capability.COMMIT_RETRY,
        Capability.MAINTENANCE,
        Capability.BUNDLES,
    }
    durability: Durability = Durability(
        "Data, transaction and manifest are left to the page cache; nothing is flushed to the disk."
    )
    full_syncs_per_write: ClassVar[PerWrite] = PerWrite(7, 7)  # data, transaction, manifest, hint, 3 folders
    Options: ClassVar[type[Options]] = LanceOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        take(context.tools.values())
        self.say(LANCE.remark())
        self._location = context.directory / "table.lance"  # DuckDB recognises it by this suffix
        self._writer: LanceWriter | None = None

    def create(self, schema: pa.Schema) -> None:
        import lance

        table = lance.write_dataset(schema.empty_table(), str(self._location))
        self._writer = LanceWriter(**self.client_factory().values, table=table)
        self._append = self._writer.write
        self._keep_promise_below(self._location)

    def write(self, rows: pa.Table) -> None:
        self._append(rows)

    def client_factory(self) -> OpenedBy[LanceWriter]:
        packages = tuple(map(str, self.context.tools.values()))
        values = {"location": str(self._location), "packages": packages, "retries": self.options.commit_retries}
        return OpenedBy(LanceWriter, values)

    @property
    def reader(self) -> str:
        if duckdb_client.has_extensions(READER):
            return duckdb_client.reader_name(*READER)
        installed = f"{LANCE.name} {LANCE.installed()}"
        return f"{installed}, as the writer, on a separate handle: DuckDB's extension is not here"

    def ids(self) -> pa.ChunkedArray:
        if not duckdb_client.has_extensions(READER):
            return self._load().to_table(columns=["id"]).column(0)
        with duckdb_client.connect(READER, self.context.directory, check=False) as connection:
            return connection.sql(f"SELECT id FROM {duckdb_client.literal(self._location)}").to_arrow_table().column(0)

    def read(self) -> pa.Table:
        return self._load().to_table()

    def _load(self) -> LanceDataset:
        """Return the table as a new client would open it now."""
        import lance

        return lance.dataset(str(self._location))

    def data_files(self) -> Sequence[Path]:
        return [self._location / DATA / name for name in self._newest().files]

    def _newest(self) -> Manifest:
        return read_manifest(manifest_paths(self._location)[-1])

    def footprint(self) -> Footprint:
        files = files_below(self._location)
        return footprint_of((path.parent.name == DATA, path.stat().st_size) for path in files)

    def commits(self) -> int:
        return version_of(manifest_paths(self._location)[-1])

    def visible_rows(self) -> int:
        return self._newest().rows

    def history(self) -> Sequence[Committed]:
        """Return the commits by the manifests: the time of each, and its row count minus the previous one's."""
        versions = [read_manifest(path) for path in manifest_paths(self._location)]
        grown = ((after.at_ms, after.rows - before.rows) for before, after in pairwise(versions))
        return [Committed(at_ms, rows) for at_ms, rows in grown if rows > 0]

    def merge(self) -> None:
        assert self._writer is not None
        self._writer.compact()
        self._writer.cleanup()

    def close(self) -> None:
        self._writer = None
