"""Samples of one window, one row per operation (a write or a read of a complete table), and its record."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.measure.workload import DoneWindow
from tidemark.runs.serde import Pairs

WRITE, READ = "write", "read"


@dataclass(frozen=True, slots=True)
class Done:
    """One operation. Times are by the client's own clock; `start_ns` counts from the start of the window.

    `closed` and `refused` count the files that HDFS clients closed meanwhile, and the times that the NameNode refused
    a close, so that the client had to ask again.
    """

    call: str
    repetition: int
    start_ns: int
    elapsed_ns: int
    source_ns: int  # reading the source before the write
    cpu_ns: int  # CPU time of all threads of the client
    peak_bytes: int  # peak memory of the client during the operation
    rows: int
    arrow_bytes: int
    closed: int = 0
    refused: int = 0
    # Parts of a write, if its client reports them; the remainder is the client's own time.
    upload_ns: int = 0
    application_ns: int = 0
    kafka_ns: int = 0
    tasks_ns: int = 0
    driver_ns: int = 0
    hdfs_ns: int = 0


@dataclass(frozen=True, slots=True)
class Data:
    """Table that is written, as it was generated; `name` as the configuration spells it."""

    name: str
    file_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class DataRecord(Data):
    rows: int


@dataclass(frozen=True, slots=True)
class TablesRecord:
    """Results of one window, as its run records them."""

    data: DataRecord
    placed: Pairs[tuple[int, ...]]  # processors of the client and of the servers
    departures: tuple[str, ...]  # columns whose type differs from the source's
    client: Pairs[str]  # versions of its libraries


@dataclass(slots=True)
class TablesWindow(DoneWindow[Done]):
    """Window of all operations; `elapsed_ns` is from the first operation to the end of the last check."""

    checked_ns: int = 0

    def budget(self) -> dict[str, int]:
        """Return nanoseconds by activity; sources are read before each write, tables checked after each repetition."""
        parts = {name: sum(each.elapsed_ns for each in self.done if each.call == name) for name in (WRITE, READ)}
        parts |= {"source": sum(each.source_ns for each in self.done), "checking": self.checked_ns}
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}
