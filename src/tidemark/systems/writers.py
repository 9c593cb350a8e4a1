"""Additional clients of an existing table, each in its own process: how to open one, and the outcome of its writes.

factory = system.client_factory()       in the process that created the table; pickled and sent to another process
writer = factory.open()                 in that process: a client that shares nothing with others but the table
try:
    writer.write(rows)                  acknowledged when it returns
except Exception as error:
    writer.commit_status(error)         whether the rows can be in the table nevertheless
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tidemark.systems.base import option

if TYPE_CHECKING:
    import pyarrow as pa


def commit_retries_option(setting: str, by_default: str) -> Any:
    """Return the option `commit_retries` of a client that implements it by `setting`."""
    text = f"How often a commit that another one overtook is tried again ({setting}); {by_default}."
    return option(None, text, minimum=0, examples=(50,))


class CommitStatus(StrEnum):
    """Final status of a write that was not acknowledged."""

    CONFLICT = "conflict"  # refused because another writer's commit came first: not committed
    FAILED = "failed"  # refused for another reason: not committed
    UNKNOWN = "unknown"  # it may be committed or not


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file in a table's folder; part of the table once it is registered."""

    path: str
    size: int  # bytes
    rows: int


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Identifier stored with a commit, by which the commit can be found later."""

    writer: str  # unique to one writer of the table
    number: int  # increases with each batch of the writer
    first_id: int  # the first id in the batch's rows

    def __str__(self) -> str:
        return f"{self.writer}-{self.number}"


class TableWriter(ABC):
    """Separate client, created by `ClientFactory.open`, for one thread."""

    @abstractmethod
    def write(self, rows: pa.Table) -> None:
        """Append `rows` in one commit, as `TableSystem.write` does; a write that raises is not acknowledged."""

    def commit_status(self, error: Exception) -> CommitStatus:
        """Return the status of the write that raised `error`; UNKNOWN unless the client guarantees another one."""
        del error
        return CommitStatus.UNKNOWN

    def before_commit(self, do: Callable[[], None]) -> None:  # noqa: B027 - some have none
        """Make this client's writes call `do` before the commit, as `TableSystem.before_commit` does."""

    def write_known(self, rows: pa.Table, key: IdempotencyKey) -> None:
        """Append `rows` as `write` does, and store `token` in the commit itself if the format can hold one."""
        del key
        self.write(rows)

    def has(self, key: IdempotencyKey) -> bool:
        """Return True if a commit with this token is in the table; for formats without tokens, look for its first row.

        A commit that a server is still processing is not in the table yet.
        """
        raise NotImplementedError(f"{type(self).__name__} does not look for what it committed")

    def refresh(self) -> None:  # noqa: B027 - most need nothing
        """Reload the table after a write that was not acknowledged, if the client does not do so by itself."""

    def attempts(self) -> int | None:
        """Return the number of commits that the last write attempted, including its retries; None if unknown."""
        return None

    def stage(self, rows: pa.Table) -> DataFile:
        """Write `rows` to a data file, which is not visible yet; requires `Capability.BUNDLES`."""
        raise NotImplementedError(f"{type(self).__name__} makes no files without a commit")

    def register(self, files: Sequence[DataFile]) -> None:
        """Add files staged by any client of the table, in one commit; otherwise like `write`."""
        raise NotImplementedError(f"{type(self).__name__} commits no files that are there")

    def count(self) -> int:
        """Return the table's current row count as this client reads it; the query scans the ids."""
        raise NotImplementedError(f"{type(self).__name__} does not read")

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        """Return the client's maintenance operations, which keep the table small, by name and in order of execution.

        Requires `Capability.MAINTENANCE`. `commit_status` classifies their exceptions as it does those of a write.
        """
        raise NotImplementedError(f"{type(self).__name__} maintains nothing")

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Close connections."""


class ClientFactory(ABC):
    """Parameters with which another process opens a client: picklable plain values, which may include secrets."""

    @abstractmethod
    def open(self) -> TableWriter: ...


@dataclass(frozen=True, slots=True)
class OpenedBy[W: TableWriter](ClientFactory):
    """Factory of clients that `writer`, a class of a module, makes of `values`."""

    writer: Callable[..., W]
    values: Mapping[str, Any] = field(repr=False)  # may hold secrets

    def open(self) -> W:
        return self.writer(**self.values)
