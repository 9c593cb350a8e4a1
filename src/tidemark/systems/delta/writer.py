"""delta-rs with a handle on an existing table, in the process that created it or in another one."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.systems.writers import DataFile, Door, Fate, TableWriter, Token

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable as Table

OVERTAKEN = "Failed to commit transaction"  # in delta-rs's message after its last retry


@dataclass(frozen=True, slots=True)
class DeltaRsDoor(Door):
    location: str
    access: Mapping[str, str] | None = field(repr=False)  # to the storage; None for the local disk
    codec: str
    retries: int | None  # of a commit that lost to another one; None: delta-rs's default

    def open(self) -> DeltaRsWriter:
        from deltalake import DeltaTable

        return DeltaRsWriter(
            self, DeltaTable(self.location, storage_options=None if self.access is None else dict(self.access))
        )


class DeltaRsWriter(TableWriter):
    def __init__(self, door: DeltaRsDoor, table: Table) -> None:
        from deltalake import CommitProperties, WriterProperties, exceptions, write_deltalake

        self.table = table
        self._location, self._codec = door.location, door.codec
        self.properties = WriterProperties(compression=door.codec.upper())  # type: ignore[arg-type]
        self._commit = None if door.retries is None else CommitProperties(max_commit_retries=door.retries)
        self._retries = door.retries
        self._conflict = exceptions.CommitFailedError
        self._certain = (exceptions.SchemaMismatchError, exceptions.TableNotFoundError)
        self._append = write_deltalake

    def write(self, rows: pa.Table) -> None:
        # With the same handle, delta-rs does not reread the log from its last checkpoint.
        self._append(self.table, rows, mode="append", writer_properties=self.properties, commit_properties=self._commit)

    def write_known(self, rows: pa.Table, token: Token) -> None:
        from deltalake import CommitProperties, Transaction

        known = CommitProperties(
            max_commit_retries=self._retries, app_transactions=[Transaction(token.writer, token.number)]
        )
        self._append(self.table, rows, mode="append", writer_properties=self.properties, commit_properties=known)

    def has(self, token: Token) -> bool:
        # delta-rs accepts the same transaction twice, so that it must be queried.
        self.table.update_incremental()
        last = self.table.transaction_version(token.writer)
        return last is not None and last >= token.number

    def stage(self, rows: pa.Table) -> DataFile:
        import pyarrow.parquet as pq

        path = Path(self._location, f"part-{secrets.token_hex(16)}.{self._codec}.parquet")
        pq.write_table(rows, path, compression="none" if self._codec == "uncompressed" else self._codec)
        return DataFile(path.name, path.stat().st_size, rows.num_rows)

    def register(self, files: Sequence[DataFile]) -> None:
        from deltalake.transaction import AddAction, RemoveAction

        now = round(time.time() * 1000)
        adds: list[AddAction | RemoveAction] = [
            AddAction(e.path, e.size, {}, now, True, json.dumps({"numRecords": e.rows})) for e in files
        ]
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

    def fate(self, error: Exception) -> Fate:
        if isinstance(error, self._conflict) and OVERTAKEN in str(error):
            return Fate.CONFLICT
        return Fate.FAILED if isinstance(error, self._certain) else Fate.UNKNOWN

    def refresh(self) -> None:
        self.table.update_incremental()
