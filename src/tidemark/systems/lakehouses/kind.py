"""Table formats on an SQL engine: statements that create tables, merge rows into them and compact them.

    system.open()                                  a separate session on the engine
    for statement in system.create("store_sales", query, key):
        system.run(statement, "load store_sales")
    system.run("SELECT count(*) FROM store_sales", "count")
    system.location("store_sales")                 the folder, for readers that do not use the engine

The format defines the text of a statement; the study decides when and how often it runs.
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
METADATA = ("_delta_log", "metadata", ".hoodie")  # metadata folders of all formats


@dataclass(frozen=True, slots=True)
class Ran:
    """Result of a statement; times in nanoseconds, by the engine's own clock.

    `planned_ns`: time until the plan was ready, which for a command is its end; None if the engine does not report it.
    """

    elapsed_ns: int
    planned_ns: int | None = None
    rows: tuple[tuple[Any, ...], ...] = field(default=(), repr=False)
    submitted_ms: int = 0  # Unix time, by the clock of the engine's log


@dataclass(frozen=True, slots=True)
class Written:
    """Existing Parquet files, each in the folder of its partition, and the metadata by which formats read them.

    `metadata` maps the name of a format's reader to the folder of its metadata, which need not be below `folder`.
    """

    folder: Path
    files: int
    data_bytes: int
    metadata: Mapping[str, Path] = field(default_factory=dict)

    def footprint(self, metadata: Path | None) -> Footprint:
        """Return the footprint of the files as a table with the metadata folder `metadata`, if any."""
        sizes = [path.stat().st_size for path in metadata.iterdir() if path.suffix != ".crc"] if metadata else []
        return Footprint(self.files, self.data_bytes, len(sizes), sum(sizes), None, NO_CATALOG)


class Lakehouse(System):
    """One format on one engine; tables are identified by their unqualified names."""

    kind: ClassVar[str] = "a table format on an engine"
    reader: ClassVar[str]  # name of a reader without the engine: parquet, delta, iceberg, hudi
    merges: ClassVar[bool] = True  # whether rows can be merged into its tables
    registers: ClassVar[bool] = True  # whether existing files of another writer can be registered as a table

    @abstractmethod
    def open(self) -> None:
        """Begin a session that resolves unqualified table names; raise SystemFailure or ServiceError on failure."""

    @abstractmethod
    def run(self, statement: str, label: str) -> Ran:
        """Run one statement and return all of its rows; raise SystemFailure, with the reason, if it is refused.

        `label` identifies the statement in the engine's log.
        """

    @abstractmethod
    def parquet(self, path: Path) -> str:
        """Return the name of a Parquet file in statements, after FROM."""

    @abstractmethod
    def location(self, table: str) -> Path:
        """Return the folder that holds `table`, including its metadata."""

    @abstractmethod
    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        """Return statements that create `table` from the rows of `query`, partitioned by the column `date` if given."""

    @abstractmethod
    def merge(self, table: str, source: str, key: Sequence[str], columns: Sequence[str]) -> Sequence[str]:
        """Return statements that merge the relation `source` into `table`: a row replaces the one with its `key`."""

    @abstractmethod
    def compact(self, table: str) -> Sequence[str]:
        """Return statements that rewrite `table` in few files, as its users do; empty if there is no such command."""

    def register(self, table: str, written: Written) -> None:
        """Create `table` from existing files, by metadata alone; only if `registers` is true."""
        raise NotImplementedError(f"{self.title} knows only its own files; asked for {table} of {written.folder}")

    def log_events(self, folder: Path) -> None:
        """Start to log in the empty `folder` what the engine does for each statement, if it keeps such a log."""

    def logged(self, folder: Path) -> Sequence[Job]:
        """Stop logging to `folder` and return the log's jobs; empty if the engine keeps no such log."""
        del folder
        return ()

    def footprint(self, table: str) -> Footprint:
        """Return the files and bytes of `table` on the disk, including old versions."""
        data, other = [0, 0], [0, 0]
        for parent, _, names in os.walk(self.location(table)):
            is_metadata = any(name in Path(parent).parts for name in METADATA)
            for name in names:
                if name.endswith(".crc"):
                    continue  # checksums that the engine's file system adds for every file
                kept = other if is_metadata else data
                kept[0] += 1
                kept[1] += Path(parent, name).stat().st_size
        return Footprint(data[0], data[1], other[0], other[1], None, NO_CATALOG)

    def in_force(self) -> Mapping[str, str]:
        """Return the session's settings that affect a measurement, read back from the session."""
        return {}
