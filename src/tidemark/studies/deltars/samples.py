"""Settings of a series; samples of a window, one row per operation (write or read of a table), and its record."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from tidemark.measure.workload import DoneWindow
from tidemark.runs.serde import Pairs
from tidemark.runs.spec import WorkloadSettings

WRITE, READ = "write", "read"
DATA = re.compile(r"(?P<table>supplier|lineitem)_sf(?P<scale>0\.\d*[1-9]|[1-9]\d*)")
ROWS = {"supplier": 10_000, "lineitem": 6_000_000}  # about as many at scale factor 1


@dataclass(frozen=True, slots=True)
class DeltarsSettings(WorkloadSettings):
    """Settings that identify a series, in addition to the system and its options."""

    data: str  # table that is written and read, such as supplier_sf10
    cores: int  # processors of the client
    repetitions: int
    timeout_seconds: float  # per write or read
    checked_rows: int  # larger tables are compared by value only in the first and last repetition
    label_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<data>.+)-(?P<cores>\d+)")

    @property
    def cell(self) -> tuple[str, int]:
        """Table and processors."""
        return self.data, self.cores

    @property
    def rows(self) -> float:
        """Rows of the table, within 1 %."""
        found = DATA.fullmatch(self.data)
        return ROWS[found["table"]] * float(found["scale"]) if found else 0.0


def processors_text(cores: int) -> str:
    """Return `1 processor` or `2 processors`."""
    return f"{cores} processor{'s' if cores > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Done:
    """One operation. Times are by the client's own clock; `start_ns` counts from the start of the window.

    `closed` and `refused` count the files that HDFS clients closed meanwhile, and the times that the NameNode refused
    a close, so that the client had to ask again.
    """

    call: str  # write or read
    repetition: int  # number of the repetition
    start_ns: int  # begin of the call in the window
    elapsed_ns: int  # duration of the call
    source_ns: int  # time of reading the source before the write
    cpu_ns: int  # CPU time of all threads of the client
    peak_bytes: int  # peak memory of the client during the operation
    rows: int  # rows of the table
    arrow_bytes: int  # size of the rows in Arrow's format
    closed: int = 0  # files that HDFS clients closed meanwhile
    refused: int = 0  # closes that the NameNode refused
    # Parts of a write, if its client reports them; the remainder is the client's own time.
    upload_ns: int = 0  # part of a write: rows into the topic
    application_ns: int = 0  # part of a write: Spark's application started and ended
    kafka_ns: int = 0  # part of a write: topic read and decoded
    tasks_ns: int = 0  # part of a write: tasks of the table's format
    driver_ns: int = 0  # part of a write: Spark's driver
    hdfs_ns: int = 0  # part of a write: calls of HDFS


@dataclass(frozen=True, slots=True)
class Data:
    """Table that is written, as it was generated; `name` as the configuration spells it."""

    name: str  # name in the configuration
    file_bytes: int  # size of the generated file
    sha256: str  # SHA-256 of the generated file


@dataclass(frozen=True, slots=True)
class DataRecord(Data):
    """Table that is written, with its rows."""

    rows: int  # rows of the table


@dataclass(frozen=True, slots=True)
class TablesRecord:
    """Results of one window, as its run records them."""

    data: DataRecord  # table that is written
    placed: Pairs[tuple[int, ...]]  # processors of the client and of the servers
    departures: tuple[str, ...]  # columns whose type differs from the source's
    client: Pairs[str]  # versions of the client's libraries


@dataclass(slots=True)
class TablesWindow(DoneWindow[Done]):
    """Window of all operations; `elapsed_ns` is from the first operation to the end of the last check."""

    checked_ns: int = 0

    def budget(self) -> dict[str, int]:
        """Return nanoseconds by activity; sources are read before each write, tables checked after each repetition."""
        parts = {name: sum(each.elapsed_ns for each in self.done if each.call == name) for name in (WRITE, READ)}
        parts |= {"source": sum(each.source_ns for each in self.done), "checking": self.checked_ns}
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}
