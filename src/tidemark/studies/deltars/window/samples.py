"""What one window left behind: a row an operation, a write or a read of a whole table."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.measure.done import DoneWindow

WRITE, READ = "write", "read"


@dataclass(frozen=True, slots=True)
class Done:
    """One operation. Times are of the client's own clock; `start_ns` from the window's beginning.

    `closed` and `refused` count the files that clients of HDFS closed meanwhile, and the times that the NameNode told
    them to ask again.
    """

    call: str
    repetition: int
    start_ns: int
    elapsed_ns: int
    source_ns: int  # for reading what was written, before it
    cpu_ns: int  # of all threads of the client
    peak_bytes: int  # the most memory that the client had meanwhile
    rows: int
    arrow_bytes: int
    closed: int = 0
    refused: int = 0
    # Parts of a write, where its client tells them; what they leave of it is the client's own.
    upload_ns: int = 0
    application_ns: int = 0
    kafka_ns: int = 0
    tasks_ns: int = 0
    driver_ns: int = 0
    hdfs_ns: int = 0


@dataclass(slots=True)
class TablesWindow(DoneWindow[Done]):
    """`elapsed_ns`: from the first operation until the last was checked."""

    checked_ns: int = 0

    def budget(self) -> dict[str, int]:
        """Sources are read by the client before each write; tables are checked after each repetition."""
        parts = {name: sum(each.elapsed_ns for each in self.done if each.call == name) for name in (WRITE, READ)}
        parts |= {"source": sum(each.source_ns for each in self.done), "checking": self.checked_ns}
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}
