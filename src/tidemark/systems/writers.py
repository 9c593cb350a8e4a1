"""One more client of a table that exists, in a process of its own: how it is opened, and what becomes of its writes.

door = system.door()                    in the process that made the table; pickled, and handed to another one
writer = door.open()                    there: a client with nothing in common with others but the table
try:
    writer.write(rows)                  acknowledged when it returns
except Exception as error:
    writer.fate(error)                  whether the rows can be in the table all the same
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def of_retries(setting: str, by_default: str) -> dict[str, Any]:
    """What describes and bounds the option `commit_retries` of a client that has `setting` for it."""
    said = f"How often a commit that another one overtook is tried again ({setting}); {by_default}."
    return {"help": said, "minimum": 0, "examples": (50,)}


class Fate(StrEnum):
    """What became of a write that was not acknowledged."""

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
class Token:
    """What a commit is known by to whoever looks for it later."""

    writer: str  # of one writer of the table alone
    number: int  # grows with each batch of the writer
    first_id: int  # of the batch's rows

    def __str__(self) -> str:
        return f"{self.writer}-{self.number}"


class TableWriter(ABC):
    """A client of its own, made by `Door.open`, for one thread."""

    @abstractmethod
    def write(self, rows: pa.Table) -> None:
        """Append `rows` in one commit, as `TableSystem.write` does; an exception is no acknowledgement."""

    @abstractmethod
    def fate(self, error: Exception) -> Fate:
        """What became of the write that ended with `error`; UNKNOWN for whatever the client does not vouch for."""

    def before_commit(self, do: Callable[[], None]) -> None:  # noqa: B027 - some have none
        """As `TableSystem.before_commit`, of the writes of this client."""

    def write_known(self, rows: pa.Table, token: Token) -> None:
        """As `write`; the commit itself has `token`, where the format has a place for one."""
        del token
        self.write(rows)

    def has(self, token: Token) -> bool:
        """Whether a commit with this token is in the table now; without a place for tokens, whether its first row is.

        A commit that a server still works on is not there yet.
        """
        raise NotImplementedError(f"{type(self).__name__} does not look for what it committed")

    def refresh(self) -> None:  # noqa: B027 - most need nothing
        """After a write that was not acknowledged: look at the table anew, where the client does not by itself."""

    def attempts(self) -> int | None:
        """Commits that the last write tried, the client's own retries among them; None where it does not tell."""
        return None

    def stage(self, rows: pa.Table) -> DataFile:
        """Make a data file of `rows`, where `Capability.BUNDLES` is declared; nobody sees it yet."""
        raise NotImplementedError(f"{type(self).__name__} makes no files without a commit")

    def register(self, files: Sequence[DataFile]) -> None:
        """Make files that any client of the table staged part of it, in one commit; as `write` otherwise."""
        raise NotImplementedError(f"{type(self).__name__} commits no files that are there")

    def count(self) -> int:
        """How many rows the table has now, as this client reads it; it goes through the id of each."""
        raise NotImplementedError(f"{type(self).__name__} does not read")

    def maintenance(self) -> Mapping[str, Callable[[], object]]:
        """What its client offers to keep the table small, by name and in the order in which it is done.

        Where `Capability.MAINTENANCE` is declared. An exception of one is told by `fate` as that of a write is.
        """
        raise NotImplementedError(f"{type(self).__name__} maintains nothing")

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Let go of connections."""


class Door(ABC):
    """How another process opens a client: plain values that can be pickled. They may hold secrets."""

    @abstractmethod
    def open(self) -> TableWriter: ...
