"""Stand-alone program: one writer with its own client, in a closed loop.

    python -m tidemark.studies.ingest.load.writer

It reads its `WorkerConfig`, pickled, from standard input, and then exchanges lines:

    prints "ready", reads "write", prints "warm", reads "go <start> <end>", prints "done <errors as JSON>"

On `write` it writes the uncounted warm-up batches; `start` and `end` are nanoseconds of the kernel's monotonic
clock, which all processes share. After `end` it begins no batch, and retries none.

The module also has what the other programs of the load share: their batches, and the lines that they exchange.
"""

from __future__ import annotations

import json
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.ingest.load.records import ACKED, CONFLICT, GIVEN_UP, NUMBERS, Records
from tidemark.systems.writers import ClientFactory, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

SLICES = 64  # different batches of trips, which a writer cycles through
FIRST_WAIT_S, LONGEST_WAIT_S = 0.005, 0.2  # upper bound of the wait before a retry, doubled with each try; its maximum
MOST_KEPT, LONGEST = 3, 400  # error messages kept, and characters of one
ID_BITS = 40  # low bits of a row's id, below its writer's number


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    client_factory: ClientFactory
    number: int  # of the writer, from 1
    trips: Path
    rows: int
    tries: int
    uncounted: int
    seed: int
    records: Path
    most: int  # attempts that its records have room for


def batches(trips: Path, rows: int, number: int) -> Callable[[int], pa.Table]:
    """Return a function from a batch's sequence number to its rows: trips, with ids that no other batch has."""
    return partial(prepared(trips, rows), number)


def prepared(trips: Path, rows: int) -> Callable[[int, int], pa.Table]:
    """Return `batches` for all writers: a function from writer number and sequence number to the rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    whole = pq.ParquetFile(trips)
    first = pa.Table.from_batches([next(whole.iter_batches(min(SLICES * rows, whole.metadata.num_rows)))])
    first = first.replace_schema_metadata()
    while first.num_rows < rows:
        first = pa.concat_tables([first, first])
    count = first.num_rows // rows
    slices = [first.slice(rows * place, rows).combine_chunks() for place in range(count)]
    field, numbers = first.schema.field("id"), np.arange(rows, dtype=np.int64)

    def batch(number: int, sequence: int) -> pa.Table:
        ids = pa.array(numbers + ((number << ID_BITS) + rows * sequence))
        return slices[sequence % count].set_column(0, field, ids)

    return batch


class WriterLoop:
    """Loop of a writer; its attempts are in its records, the first errors in `said`."""

    def __init__(self, order: WorkerConfig, writer: TableWriter, records: Records) -> None:
        self.said: list[str] = []
        self._order, self._writer, self._records = order, writer, records
        self._batch = batches(order.trips, order.rows, order.number)
        self._waits = random.Random(order.seed * 1000 + order.number)
        self._sequence = 0
        self._end_ns = sys.maxsize

    def count(self, batches: int) -> None:
        for _ in range(batches):
            self._commit()

    def until(self, end_ns: int) -> None:
        self._end_ns = end_ns
        while not self._is_over():
            self._commit()

    def _is_over(self) -> bool:
        return time.perf_counter_ns() >= self._end_ns or self._records.is_full

    def _commit(self) -> None:
        """Write one batch, with retries until it is acknowledged, definitely refused, or of unknown outcome."""
        sequence, self._sequence = self._sequence, self._sequence + 1
        rows, records, writer, clock = self._batch(sequence), self._records, self._writer, time.perf_counter_ns
        for attempt in range(1, self._order.tries + 1):
            place, outcome = records.begin(clock(), sequence, attempt), ACKED
            try:
                self._write(writer, rows, sequence)
                records.end(place, clock(), NUMBERS[ACKED], writer.attempts())
                return
            except Exception as error:
                ended, outcome = clock(), str(writer.commit_status(error))
                self._keep(error)
            if outcome == CONFLICT and attempt == self._order.tries:
                outcome = GIVEN_UP
            records.end(place, ended, NUMBERS[outcome], writer.attempts())
            time.sleep(self._waits.uniform(0, min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**attempt)))
            self._refresh(outcome)
            if not self._is_to_be_tried(outcome, sequence, attempt) or self._is_over():
                return
            writer = self._writer  # a subclass may have replaced it

    def _write(self, writer: TableWriter, rows: pa.Table, sequence: int) -> None:
        del sequence
        writer.write(rows)

    def _is_to_be_tried(self, outcome: str, sequence: int, attempt: int) -> bool:
        """Return True if a batch is to be resent after an attempt that was not acknowledged."""
        del sequence, attempt
        return outcome == CONFLICT

    def _refresh(self, outcome: str) -> None:
        """Refresh the client's view of the table, after an attempt that was not acknowledged."""
        del outcome
        try:
            self._writer.refresh()
        except Exception as error:  # the next attempt shows the consequences
            self._keep(error)

    def _keep(self, error: Exception) -> None:
        if len(self.said) < MOST_KEPT:
            self.said.append(f"{type(error).__name__}: {error}"[:LONGEST])


def obey(warm: Callable[[], None], until: Callable[[int], None]) -> None:
    """Print "ready"; call `warm` on each "write", and on "go <start> <end>" wait for `start` and call `until(end)`."""
    print("ready", flush=True)
    for line in sys.stdin.buffer:
        match line.decode().split():
            case ["write"]:
                warm()
                print("warm", flush=True)
            case ["go", start, end]:
                time.sleep(max(0, int(start) - time.perf_counter_ns()) / 1e9)
                until(int(end))
                return
            case other:
                sys.exit(f"received something other than 'write' or 'go': {other}")


def told_span() -> tuple[int, int]:
    """Print "ready", read "go <start> <end>", and return both."""
    print("ready", flush=True)
    match sys.stdin.buffer.readline().decode().split():
        case ["go", start, end]:
            return int(start), int(end)
        case other:
            sys.exit(f"received something other than 'go': {other}")


def told_to_go(end: Callable[[], None]) -> None:
    """Print "ready" and wait for "go"; call `end` in a thread at the next line, or if the parent is gone."""
    print("ready", flush=True)
    line = sys.stdin.buffer.readline().decode().strip()
    if line != "go":
        sys.exit(f"received something other than 'go': {line}")

    def until_told() -> None:
        sys.stdin.buffer.readline()  # "end", or end of file
        end()

    threading.Thread(target=until_told, daemon=True).start()


def main() -> None:
    order: WorkerConfig = pickle.load(sys.stdin.buffer)
    loop = WriterLoop(order, writer := order.client_factory.open(), Records(order.records, order.most))
    obey(partial(loop.count, order.uncounted), loop.until)
    writer.close()
    print("done", json.dumps(loop.said), flush=True)


if __name__ == "__main__":
    main()
