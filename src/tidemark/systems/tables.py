"""Interface of a table system: one format, one client and one catalog. Each instance has one newly created table.

Before it: the queries that a table's clients answer. After it: counts and sizes of files, and the ids stored in them.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tidemark.runs.manifest import Footprint
from tidemark.systems.base import TABLE, Capability, System
from tidemark.systems.writers import ClientFactory

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem

    from tidemark.services.base import Service


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter on rows; `where` is a condition in the common subset of SQL and PyIceberg's filters, empty for all rows.

    `contains`: a text column and a substring of its values. Not every client can express such a filter.
    """

    where: str = ""
    contains: tuple[str, str] | None = None

    @property
    def sql(self) -> str:
        """Both conditions as one SQL condition."""
        text = [] if self.contains is None else [f"{self.contains[0]} LIKE '%{self.contains[1]}%'"]
        return " AND ".join([*([self.where] if self.where else []), *text]) or "true"


class ReadClient(ABC):
    """Client that never wrote to the table (see `TableSystem.open_reader`); its first query also opens the table."""

    @abstractmethod
    def count(self) -> int:
        """Return the row count by SQL's count(*), which the client may answer by its fastest means."""

    @abstractmethod
    def sum_ids(self) -> int:
        """Return the sum of all ids; the query also sums `total_amount`, so that it has to read rows."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Commit that added rows, as the table itself records it."""

    at_ms: float  # Unix time by the committer's clock, taken before the commit is visible to others
    rows: int


class TableSystem(System):
    """One table of one system, from `create` to `close`."""

    kind: ClassVar[str] = "a table"
    capabilities: frozenset[Capability] = TABLE
    no_bundles: ClassVar[str] = "its client has no call that makes files that are there part of the table"
    no_maintenance: ClassVar[str] = "its client has no call that maintains a table"
    maintains: ClassVar[tuple[str, ...]] = ()  # its client's maintenance operations, unless options change them
    maintained_by: ClassVar[type[TableSystem] | None] = None  # system whose client can, in a process beside the writer
    not_maintained: ClassVar[str | None] = None  # maintenance that its client does not perform, if it performs any
    look_differs: ClassVar[str] = ""  # how `visible_rows` differs from what a client that reads does, in words
    is_linked: ClassVar[bool] = False  # a commit on the local disk is a link to a file, whose first name then goes
    hands_over: ClassVar[bool] = False  # one process at a time may write its table, and any process may be the one
    time_limit: ClassVar[str | None] = None  # the client's setting for its longest wait for a server's answer
    commits_at_once: int = 1  # that `make_commits` makes by the format's own files; 1: the client writes each

    @abstractmethod
    def create(self, schema: pa.Schema) -> None:
        """Create a new, empty table with the columns of `schema`. Not timed."""

    @abstractmethod
    def write(self, rows: pa.Table) -> None:
        """Append `rows` in one commit; return once they are committed. This is the timed call."""

    def make_commits(self, rows: pa.Table, ids: range) -> None:
        """Commit `rows`, one row, once for each of `ids`, with that id. Not timed.

        For a client that would take too long, the format's own files are written instead; the table then already has a
        commit of such a row.
        """
        for number in ids:
            self.write(with_id(rows, number))

    def before_commit(self, do: Callable[[], None]) -> None:
        """Make `write` call `do` when all but the commit is done; `do` is never called if the client has no such point.

        The contents of its files are written by then, but not yet visible to anything else.
        """

    @property
    @abstractmethod
    def reader(self) -> str:
        """Name and version of the library that `ids` reads with, and the reason if it is the writer's own."""

    @abstractmethod
    def ids(self) -> pa.ChunkedArray:
        """Return the current `id` column (int64[rows]), in any order; the oracle calls this before all other reads.

        Read with another library than the writer's wherever one exists, and never through the writer's connection.
        """

    @abstractmethod
    def read(self) -> pa.Table:
        """Return all rows and columns as an independent reader sees them, in any order; for the conformance suite."""

    @abstractmethod
    def footprint(self) -> Footprint:
        """Return the files and bytes of the table in its current state."""

    def data_files(self) -> Sequence[PurePath]:
        """Return the Parquet files that hold the table's current rows: paths, or bucket and name of objects."""
        return []

    def weigh(self, files: Iterable[PurePath]) -> tuple[int, int]:
        """Return the number of these files of the table, and their total size in bytes."""
        return count_and_bytes(map(Path, files))

    def inlined_rows(self) -> int:
        """Return the number of rows that are in the catalog and not, or not yet, in Parquet files."""
        return 0

    def commits(self) -> int | None:
        """Return the number of commits in the table's history, including its creation; None if it keeps no history."""
        return None

    def history(self) -> Sequence[Committed]:
        """Return the commits that added rows, in order, read as by `ids`; requires `Capability.HISTORY`."""
        raise NotImplementedError(f"{self.name} declares no {Capability.HISTORY}")

    def visible_rows(self) -> int:
        """Return the row count that a new client sees in the metadata, with `Capability.HISTORY`; thread-safe."""
        raise NotImplementedError(f"{self.name} declares no {Capability.HISTORY}")

    @classmethod
    def refuses_writers(cls, options: Any) -> str | None:
        """Return why several processes cannot write to the table at once with `options`; None if they can."""
        del options
        if Capability.WRITERS in cls.capabilities:
            return None
        reason = "it is for one writer" if cls.hands_over else "one process at a time may write its table"
        return f"{cls.title}: {reason}"

    @classmethod
    def refuses_bundles(cls, options: Any) -> str | None:
        """Return why writers with `options` cannot commit several existing data files at once; None if they can."""
        del options
        return None if Capability.BUNDLES in cls.capabilities else f"{cls.title}: {cls.no_bundles}"

    @classmethod
    def refuses_maintenance(cls, options: Any) -> str | None:
        """Return why no client with `options` can run maintenance while others write; None if one can."""
        del options
        return None if Capability.MAINTENANCE in cls.capabilities else f"{cls.title}: {cls.no_maintenance}"

    @classmethod
    def refuses_columns(cls) -> str | None:
        """Return why no column can be added to its table; None if one can."""
        can = Capability.ADD_COLUMN in cls.capabilities | cls.of_release()
        return None if can else f"{cls.title}: its client cannot add a column"

    @classmethod
    def operations(cls, options: Any) -> tuple[str, ...]:
        """Return the names of its clients' maintenance operations with `options`, in order of execution."""
        del options
        if not cls.maintains:
            raise NotImplementedError(f"{cls.name} declares no {Capability.MAINTENANCE}")
        return cls.maintains

    def client_factory(self) -> ClientFactory:
        """Return the `ClientFactory` for other processes that write to the table: requires `Capability.WRITERS`, or
        `hands_over` for one that writes before this one is used again.

        Their writes have the guarantees of `write`. `ids` and all other methods see their rows once acknowledged.
        """
        raise NotImplementedError(f"{self.name} declares no {Capability.WRITERS}")

    def maintainer(self) -> ClientFactory:
        """Return the factory of clients that maintain the table beside its writer: its own, or of `maintained_by`."""
        return self.client_factory()

    def reached_by(self, services: Mapping[type[Service], Service]) -> Self:
        """Return this created table with clients (`client_factory`) that reach its servers as in `services`.

        A server in it may be behind a proxy. Only `client_factory` of what is returned may be used.
        """
        other = copy.copy(self)
        other.context = replace(self.context, services=services)
        return other

    def waiting(self, seconds: int) -> Self:
        """Return what `reached_by` does, with clients that wait `seconds` for an answer; requires a `time_limit`."""
        other = copy.copy(self)
        other.context = replace(self.context, answer_s=seconds)
        return other

    def reconnect(self) -> None:
        """Drop connections to a server that the system uses, after that server was restarted."""

    def refused(self) -> int | None:
        """Return how many commits the catalog refused since `create` because another came first, including those that
        clients retried themselves; complete once all writers are closed. None if the catalog does not count them.
        """
        return None

    def answer(self, asked: Filter) -> int:
        """Return the number of rows in the client's own answer to `asked`; requires `Capability.PLANS`. Timed."""
        raise NotImplementedError(f"{self.name} declares no {Capability.PLANS}")

    def files_to_read(self, asked: Filter) -> int:
        """Return the number of data files that `asked` leaves the client to read; requires `Capability.PLANS`."""
        raise NotImplementedError(f"{self.name} declares no {Capability.PLANS}")

    def open_reader(self) -> AbstractContextManager[ReadClient]:
        """Return a new client, fully loaded, that has not accessed the table yet; requires `Capability.ASKED`."""
        raise NotImplementedError(f"{self.name} declares no {Capability.ASKED}")

    def add_column(self, name: str) -> None:
        """Add the column `name` (int64, null in all rows), which `write` then takes; requires `ADD_COLUMN`. Timed."""
        raise NotImplementedError(f"{self.name} declares no {Capability.ADD_COLUMN}")

    def flush(self) -> None:
        """Move inlined rows to Parquet; requires `Capability.FLUSH`. Timed: only the client's own calls."""
        raise NotImplementedError(f"{self.name} declares no {Capability.FLUSH}")

    def merge(self) -> None:
        """Merge small files into larger ones and remove the small ones; requires `Capability.MERGE`. Also timed."""
        raise NotImplementedError(f"{self.name} declares no {Capability.MERGE}")


def with_id(rows: pa.Table, number: int) -> pa.Table:
    """Return `rows`, one row, with this id."""
    import pyarrow as pa

    place = rows.schema.get_field_index("id")
    return rows.set_column(place, rows.schema.field(place), pa.array([number], pa.int64()))


def count_and_bytes(files: Iterable[Path]) -> tuple[int, int]:
    """Return the number of files, and their total size in bytes."""
    sizes = [path.stat().st_size for path in files]
    return len(sizes), sum(sizes)


def footprint_of(files: Iterable[tuple[bool, int]], catalog: int | None = 0, reason: str | None = None) -> Footprint:
    """Return the footprint of `files`: of each, whether it is a data file, and its size; `catalog` is in bytes."""
    sizes: dict[bool, list[int]] = {True: [], False: []}
    for is_data, size in files:
        sizes[is_data].append(size)
    data, metadata = sizes[True], sizes[False]
    return Footprint(len(data), sum(data), len(metadata), sum(metadata), catalog, reason)


def and_pyarrow(lists_files: str) -> str:
    """Return the name of a reader that lists a table's files by `lists_files` and reads them with PyArrow."""
    return f"{lists_files} and PyArrow {version('pyarrow')} (the Parquet files)"


def read_ids(files: Iterable[PurePath], file_system: FileSystem | None = None) -> pa.ChunkedArray:
    """Return the `id` column (int64) of Parquet files; reads no other column, as there may be 20,000 one-row files.

    `file_system` holds the files; None for the local one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    chunks: list[pa.Array] = []
    for path in files:
        with pq.ParquetFile(str(path), filesystem=file_system) as file:
            chunks += file.read(columns=["id"]).column(0).chunks
    return pa.chunked_array(chunks, pa.int64())
