"""What one window left behind: a row an operation, a write or a read of a whole table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

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


@dataclass(slots=True)
class TablesWindow:
    """`elapsed_ns`: from the first operation until the last was checked."""

    elapsed_ns: int = 0
    checked_ns: int = 0
    done: list[Done] = field(default_factory=list)

    @property
    def operations(self) -> int:
        return len(self.done)

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.done)

    def elapsed(self) -> NDArray[np.int64]:
        return np.array([each.elapsed_ns for each in self.done], np.int64)

    def budget(self) -> dict[str, int]:
        """Sources are read by the client before each write; tables are checked after each repetition."""
        parts = {name: sum(each.elapsed_ns for each in self.done if each.call == name) for name in (WRITE, READ)}
        parts |= {"source": sum(each.source_ns for each in self.done), "checking": self.checked_ns}
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist([asdict(each) for each in self.done]), path, compression="zstd")
