"""Table formats on an engine that takes SQL: how tables are made, merged into and made compact, declared as statements.

    system.open()                                  a session of its own on the engine
    for statement in system.create("store_sales", query, key):
        system.run(statement, "load store_sales")
    system.run("SELECT count(*) FROM store_sales", "count")
    system.location("store_sales")                 where who knows nothing of the engine reads the table

What a statement says is the format's own affair; when it is run, and how often, is that of who measures.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from tidemark.runs.manifest import Footprint
from tidemark.services.spark.events import Job
from tidemark.systems.base import System

NO_CATALOG = "there is no catalog but files"
METADATA = ("_delta_log", "metadata", ".hoodie")  # folders of what is no data, in any of the formats


@dataclass(frozen=True, slots=True)
class Ran:
    """What a statement came to; times in nanoseconds, of the engine's own clock.

    `planned_ns`: until its plan was there, which of a command is its end; None where the engine does not tell.
    """

    elapsed_ns: int
    planned_ns: int | None = None
    rows: tuple[tuple[Any, ...], ...] = field(default=(), repr=False)
    submitted_ms: int = 0  # since 1970, by the clock of the engine's log


@dataclass(frozen=True, slots=True)
class Written:
    """Parquet files that lie there already, each in a folder of its own partition, and what formats know them by.

    `metadata` has, by the name of a format's reader, the folder of its metadata; it need not be below `folder`.
    """

    folder: Path
    files: int
    data_bytes: int
    metadata: Mapping[str, Path] = field(default_factory=dict)

    def footprint(self, metadata: Path | None) -> Footprint:
        """Of the files as a table whose metadata lie in a folder."""
        sizes = [path.stat().st_size for path in metadata.iterdir() if path.suffix != ".crc"] if metadata else []
        return Footprint(self.files, self.data_bytes, len(sizes), sum(sizes), None, NO_CATALOG)


class Lakehouse(System):
    """One format on one engine; tables are known by their plain names."""

    kind: ClassVar[str] = "a table format on an engine"
    reader: ClassVar[str]  # by which name a reader without the engine is known: parquet, delta, iceberg, hudi
    merges: ClassVar[bool] = True  # whether rows can be merged into its tables
    registers: ClassVar[bool] = True  # whether files that somebody else wrote can be made a table of it

    @abstractmethod
    def open(self) -> None:
        """Begin a session, which knows tables by plain names; SystemFailure or ServiceError where there is none."""

    @abstractmethod
    def run(self, statement: str, label: str) -> Ran:
        """Run one statement to its end and bring all of its rows; SystemFailure, with why, where it is refused.

        `label` is what the engine's log knows it by.
        """

    @abstractmethod
    def parquet(self, path: Path) -> str:
        """A Parquet file as statements name it behind FROM."""

    @abstractmethod
    def location(self, table: str) -> Path:
        """The folder that holds `table`, metadata included."""

    @abstractmethod
    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        """Statements that make `table` of the rows of `query`; partitioned by the column `date`, where one is given."""

    @abstractmethod
    def merge(self, table: str, source: str, key: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
        """Statements that merge the relation `source` into `table`: a row whose `key` is there replaces it."""

    @abstractmethod
    def compact(self, table: str) -> Sequence[str]:
        """Statements that write `table` anew in few files, as its users do; none where there is no such command."""

    def register(self, table: str, written: Written) -> None:
        """Make `table` of files that lie there, by metadata alone; only where it `registers`."""
        raise NotImplementedError(f"{self.title} knows only files of its own; asked for {table} of {written.folder}")

    def log_events(self, folder: Path) -> None:
        """Begin to note, in the empty `folder`, what the engine does for each statement, where it keeps such a log."""

    def logged(self, folder: Path) -> Sequence[Job]:
        """What was noted in `folder`, which ends with this; nothing where the engine keeps no such log."""
        del folder
        return ()

    def footprint(self, table: str) -> Footprint:
        """Files and bytes of `table` on the disk, old versions among them."""
        data, other = [0, 0], [0, 0]
        for parent, _, names in os.walk(self.location(table)):
            is_metadata = any(name in Path(parent).parts for name in METADATA)
            for name in names:
                if name.endswith(".crc"):
                    continue  # checksums that the engine's file system puts beside every file
                kept = other if is_metadata else data
                kept[0] += 1
                kept[1] += Path(parent, name).stat().st_size
        return Footprint(data[0], data[1], other[0], other[1], None, NO_CATALOG)

    def in_force(self) -> Mapping[str, str]:
        """Settings of the session that decide a measurement, read back from it."""
        return {}
