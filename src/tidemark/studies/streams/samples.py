"""Samples of a stream window: five numbers per operation, and a time budget."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

GROW = 1 << 16  # operations by which the arrays grow: 2.5 MB
ROWS_AT_ONCE = 1 << 20
COLUMNS = {
    "first_id": "id of the first event of the write",
    "rows": "events of the write",
    "poll_ns": "reading the events from the broker",
    "decode_ns": "decoding them",
    "assemble_ns": "making one table of them",
    "write_ns": "the write: the call of the system, until it has returned",
    "start_ns": "begin of the operation",
}
OPERATIONS = pa.schema([(name, pa.int32() if name == "rows" else pa.int64()) for name in COLUMNS])

Numbers = npt.NDArray[np.int64]


@dataclass(slots=True)
class Samples:
    """Five numbers per operation, in nanoseconds; `count` operations are filled."""

    rows_per_operation: int
    count: int = 0
    start: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    poll: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    decode: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    assemble: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))
    write: array[int] = field(default_factory=lambda: array("q", bytes(8 * GROW)))

    def grow(self) -> None:
        for numbers in (self.start, self.poll, self.decode, self.assemble, self.write):
            numbers.frombytes(bytes(8 * GROW))

    def column(self, name: str) -> Numbers:
        """Return one of the five columns as int64[count], without a copy."""
        return np.frombuffer(getattr(self, name), np.int64, self.count)

    @property
    def events(self) -> int:
        return self.count * self.rows_per_operation

    def table(self, first: int, count: int) -> pa.Table:
        """Return operations `first` .. `first` + `count` - 1 as rows of operations.parquet."""
        size = self.rows_per_operation
        columns = [
            pa.array(np.arange(first, first + count, dtype=np.int64) * size),
            pa.array(np.full(count, size, np.int32)),
        ]
        names = ("poll", "decode", "assemble", "write", "start")
        columns += [pa.array(self.column(name)[first : first + count]) for name in names]
        return pa.Table.from_arrays(columns, schema=OPERATIONS)


@dataclass(slots=True)
class StreamWindow:
    """Samples of one window. All times are in nanoseconds.

    A window may be measured in several stretches. Time between stretches is not counted, and `start` of an operation is
    that of a clock that stands still between them.

    With overlap, `poll`, `decode` and `assemble` of an operation ran during the previous write, so they are not part of
    the wall-clock time. `stalled` is part of it: the time that the writer waited for the next batch.
    """

    samples: Samples
    elapsed_ns: int = 0
    bookkeeping_ns: int = 0
    wait_for_producer_ns: int = 0
    stalled_ns: int = 0
    overlapped: bool = False
    stretches: int = 0

    @property
    def operations(self) -> int:
        return self.samples.count

    @property
    def rows(self) -> int:
        return self.samples.events

    @property
    def events_per_s(self) -> float:
        """Harness throughput: events divided by the length of the window."""
        return self.rows / (self.elapsed_ns / 1e9)

    def elapsed(self) -> Numbers:
        """Return the time of each write as int64[operations]."""
        return self.samples.column("write")

    def write_parquet(self, path: Path) -> None:
        """Write operations.parquet a million rows at a time, so that 10 million operations take no more memory."""
        with pq.ParquetWriter(
            path,
            OPERATIONS,
            compression="zstd",
            use_dictionary=False,
            column_encoding=dict.fromkeys(OPERATIONS.names, "DELTA_BINARY_PACKED"),
        ) as writer:
            for first in range(0, self.operations, ROWS_AT_ONCE):
                writer.write_table(self.samples.table(first, min(ROWS_AT_ONCE, self.operations - first)))

    def budget(self) -> dict[str, int]:
        """Return the wall-clock time by part; the parts sum to `elapsed_ns`, and `rest` is what no part covers."""
        parts = {name: int(self.samples.column(name).sum()) for name in ("poll", "decode", "assemble", "write")}
        if self.overlapped:
            parts |= {"poll": 0, "decode": self.stalled_ns, "assemble": 0}
        parts["bookkeeping"] = self.bookkeeping_ns
        parts["wait_for_producer"] = self.wait_for_producer_ns
        parts["rest"] = self.elapsed_ns - sum(parts.values())
        return parts
