"""Lance with a handle on an existing table, in the process that created it or in another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.systems.base import take
from tidemark.systems.writers import DataFile, Door, Fate, TableWriter, Token

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

DATA = "data"  # the folder of a table's data files
WRITER, NUMBER = "tidemark.writer", "tidemark.number"  # properties of a commit that has a token
OVERTAKEN = "commit conflict for version"  # in Lance's message after its last retry
MISFIT = "append with different schema"


@dataclass(frozen=True, slots=True)
class LanceDoor(Door):
    location: str
    packages: tuple[str, ...]  # folders with Lance's packages
    retries: int | None  # of a commit that lost to another one; None: Lance's default

    def open(self) -> LanceWriter:
        take(self.packages)
        import lance

        return LanceWriter(self, lance.dataset(self.location))


class LanceWriter(TableWriter):
    def __init__(self, door: LanceDoor, table: LanceDataset) -> None:
        import lance
        from lance import fragment

        self.table = table
        self._folder = Path(door.location, DATA)
        self._append, self._lance, self._fragment = lance.write_dataset, lance, fragment
        self._retries = door.retries

    def write(self, rows: pa.Table) -> None:
        # With the same handle, Lance only looks for commits after its version.
        if self._retries is None:
            self.table = self._append(rows, self.table, mode="append")
        else:
            self._commit(self._fragments(rows))

    def write_known(self, rows: pa.Table, token: Token) -> None:
        self._commit(self._fragments(rows), {WRITER: token.writer, NUMBER: str(token.number)})

    def has(self, token: Token) -> bool:
        self.refresh()
        for version in range(self.table.version, 0, -1):
            found = self.table.read_transaction(version)
            known = (found.transaction_properties or {}) if found else {}
            if known.get(WRITER) == token.writer:
                return int(known[NUMBER]) >= token.number
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

    def fate(self, error: Exception) -> Fate:
        said = str(error).lower()
        if OVERTAKEN in said:
            return Fate.CONFLICT
        return Fate.FAILED if MISFIT in said else Fate.UNKNOWN

    def refresh(self) -> None:
        self.table.checkout_latest()
