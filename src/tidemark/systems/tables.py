"""Tables: what can be done to a system of one format, one client and one catalog. Each has one table, made anew."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.systems.base import TABLE, Capability, System
from tidemark.systems.disk import count_and_bytes
from tidemark.systems.queries import Answered, Asker, Filter
from tidemark.systems.writers import Door

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that added rows, as the table itself remembers it."""

    at_ms: float  # since 1970, by the clock of whoever made it, and before others could see it
    rows: int


class TableSystem(System):
    """One table of one system, from `create` to `close`."""

    kind: ClassVar[str] = "a table"
    capabilities: frozenset[Capability] = TABLE
    no_bundles: ClassVar[str] = "its client has no call that makes files that are there part of the table"
    no_maintenance: ClassVar[str] = "its client has no call that maintains a table"
    not_maintained: ClassVar[str | None] = None  # what its client leaves undone where it maintains a table at all

    @abstractmethod
    def create(self, schema: pa.Schema) -> None:
        """Make a fresh, empty table with `schema`'s columns. Not timed."""

    @abstractmethod
    def write(self, rows: pa.Table) -> None:
        """Append `rows` in one commit. THE timed call: it returns once the rows are committed."""

    def before_commit(self, do: Callable[[], None]) -> None:
        """From now on `write` calls `do` when all but the commit is done; never, where the client has no such moment.

        What its files hold is written by then, and nobody sees it yet.
        """

    @property
    @abstractmethod
    def reader(self) -> str:
        """What `ids` reads through, and its version; where that is the writer's own library, the reason."""

    @abstractmethod
    def ids(self) -> pa.ChunkedArray:
        """The `id` column (int64) as it lies in the table now, in any order; the harness asks it first of all.

        Read through another library than the writer's wherever one exists, and never through the writer's connection.
        """

    @abstractmethod
    def read(self) -> pa.Table:
        """Every row and column as an independent reader sees them, in any order: for the conformance suite."""

    @abstractmethod
    def footprint(self) -> Footprint:
        """Files and bytes of the table as it is now."""

    def data_files(self) -> Sequence[PurePath]:
        """The Parquet files that hold the table's current rows: paths, or bucket and name where they are objects."""
        return []

    def weigh(self, files: Iterable[PurePath]) -> tuple[int, int]:
        """How many of the table's files these are, and their bytes together."""
        return count_and_bytes(map(Path, files))

    def inlined_rows(self) -> int:
        """Rows that lie in the catalog and not, or not yet, in Parquet files."""
        return 0

    def commits(self) -> int | None:
        """How many commits the table's history shows, creation included; None where nothing is kept."""
        return None

    def history(self) -> Sequence[Committed]:
        """The commits that added rows, in their order, where `Capability.HISTORY` is declared; read as `ids` is."""
        raise NotImplementedError(f"{self.name} declares no {Capability.HISTORY}")

    def visible_rows(self) -> int:
        """Rows that somebody who opens the table now finds, by its metadata, with `Capability.HISTORY`; any thread."""
        raise NotImplementedError(f"{self.name} declares no {Capability.HISTORY}")

    @classmethod
    def refuses_writers(cls, options: Any) -> str | None:
        """Why several processes cannot write the table at once with `options`; None where they can."""
        del options
        if Capability.WRITERS in cls.capabilities:
            return None
        return f"{cls.title}: one process at a time may write its table"

    @classmethod
    def refuses_bundles(cls, options: Any) -> str | None:
        """Why writers with `options` cannot commit several data files that they made before; None where they can."""
        del options
        return None if Capability.BUNDLES in cls.capabilities else f"{cls.title}: {cls.no_bundles}"

    @classmethod
    def refuses_maintenance(cls, options: Any) -> str | None:
        """Why no client with `options` can keep the table small while others write; None where one can."""
        del options
        return None if Capability.MAINTENANCE in cls.capabilities else f"{cls.title}: {cls.no_maintenance}"

    def door(self) -> Door:
        """How further processes write to this table, once it is created, where `Capability.WRITERS` is declared.

        Their writes promise what `write` does. `ids` and all else here sees their rows, from the acknowledgement on.
        """
        raise NotImplementedError(f"{self.name} declares no {Capability.WRITERS}")

    def reconnect(self) -> None:
        """After a server that it stands on was started again: let go of what was connected to the one before."""

    def refused(self) -> int | None:
        """Commits that the catalog refused since `create` because another came first, those that clients tried again
        by themselves among them; complete once writers are closed. None where the catalog does not count.
        """
        return None

    def answer(self, asked: Filter) -> Answered:
        """What the client itself finds of the rows that fit, where `Capability.PLANS` is declared."""
        raise NotImplementedError(f"{self.name} declares no {Capability.PLANS}")

    def asking(self) -> AbstractContextManager[Asker]:
        """A client made anew, all that it needs loaded, which has not looked yet; with `Capability.ASKED`."""
        raise NotImplementedError(f"{self.name} declares no {Capability.ASKED}")

    def flush(self) -> None:
        """Move inlined rows to Parquet, where `Capability.FLUSH` is declared. Timed: the client's own calls alone."""
        raise NotImplementedError(f"{self.name} declares no {Capability.FLUSH}")

    def merge(self) -> None:
        """Replace small files by larger ones, where `Capability.MERGE` is declared, and remove the small. Timed too."""
        raise NotImplementedError(f"{self.name} declares no {Capability.MERGE}")
