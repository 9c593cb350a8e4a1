"""Stand-alone program: one writer with its own client, in a closed loop or by a schedule.

    python -m tidemark.studies.ingest.load.writer

It reads its `WorkerConfig`, pickled, from standard input, and follows the protocol of `schedule`; a request is a batch.

With a `place`, the writer outlives the servers that it writes through, and exchanges these lines:

    prints "ready", reads "go", and later "end", prints "done <errors as JSON>"

After a write of unknown outcome it closes its client and opens another one, repeatedly until one opens or it reads
"end". `retry` decides on the batch of that write: NEVER does not resend it, so that its rows are present once or not
at all; CHECK looks for its token, and resends it if the token is missing; BLIND resends it.

The module also has what the other programs of the load share: their batches, the lines that they exchange, and files
with values that change.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.studies.ingest.load.records import (
    ACKED,
    BLIND,
    CHECK,
    CONFLICT,
    GIVEN_UP,
    NEVER,
    NUMBERS,
    REFUSED,
    UNKNOWN,
    Records,
)
from tidemark.studies.ingest.load.schedule import Due, follow, work_off
from tidemark.systems.writers import ClientFactory, IdempotencyKey, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

SLICES = 64  # different batches of trips, which a writer cycles through
FIRST_WAIT_S, LONGEST_WAIT_S = 0.005, 0.2  # upper bound of the wait before a retry, doubled with each try; its maximum
MOST_KEPT, LONGEST = 3, 400  # error messages kept, and characters of one
WRITER = "writer"  # of the names that a table knows writers by
BACK_OFF_S = 0.05  # before a client is reopened
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
    place: Path | None = None  # of a writer that reconnects: file of the current `ClientFactory`, as servers may move
    retry: str = NEVER  # of a writer that reconnects


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

    def close(self) -> None:
        self._writer.close()

    def count(self, batches: int) -> None:
        for _ in range(batches):
            self._commit()

    def warm(self) -> None:
        self.count(self._order.uncounted)

    def until(self, end_ns: int) -> None:
        self._end_ns = end_ns
        while not self._is_over():
            self._commit()

    def in_closed_loop(self, end_ns: int, most: int) -> None:
        last, self._end_ns = self._sequence + most, end_ns
        while not self._is_over() and self._sequence < last:
            self._commit()
        self._end_ns = sys.maxsize

    def by_schedule(self, due: Due) -> list[list[int]]:
        return [work_off(due, self._commit, time.perf_counter_ns, time.sleep)]

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

    def _write(self, writer: TableWriter, rows: pa.Table, _sequence: int) -> None:
        writer.write(rows)

    def _is_to_be_tried(self, outcome: str, _sequence: int, _attempt: int) -> bool:
        """Return True if a batch is to be resent after an attempt that was not acknowledged."""
        return outcome == CONFLICT

    def _refresh(self, _outcome: str) -> None:
        """Refresh the client's view of the table, after an attempt that was not acknowledged."""
        try:
            self._writer.refresh()
        except Exception as error:  # the next attempt shows the consequences
            self._keep(error)

    def _keep(self, error: Exception) -> None:
        if len(self.said) < MOST_KEPT:
            self.said.append(f"{type(error).__name__}: {error}"[:LONGEST])


def publish(value: object, place: Path) -> None:
    """Write `value` to the file `place` (mode 0600: it may hold secrets), for clients opened later."""
    beside = place.with_name(f"{place.name}.new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        pickle.dump(value, file)
    beside.replace(place)


def found_at(place: Path) -> Any:
    """Return the value that was published at `place` last."""
    return pickle.loads(place.read_bytes())


class ReconnectingWriter(WriterLoop):
    """Writer loop that reopens its client after a write of unknown outcome."""

    def __init__(self, order: WorkerConfig, records: Records) -> None:
        assert order.place is not None
        self._place, self._retry = order.place, order.retry
        self._name = f"{WRITER} {order.number}"
        super().__init__(order, found_at(order.place).open(), records)

    def end(self) -> None:
        """Begin no further batch; called from another thread."""
        self._end_ns = 0

    def close(self) -> None:
        with suppress(Exception):  # closing may fail if the client's server is gone
            self._writer.close()

    def _key(self, sequence: int) -> IdempotencyKey:
        order = self._order
        return IdempotencyKey(self._name, sequence, (order.number << ID_BITS) + order.rows * sequence)

    def _write(self, writer: TableWriter, rows: pa.Table, sequence: int) -> None:
        if self._retry == CHECK:
            writer.write_known(rows, self._key(sequence))
        else:
            writer.write(rows)

    def _is_to_be_tried(self, outcome: str, sequence: int, attempt: int) -> bool:
        if outcome != UNKNOWN or self._retry == NEVER:
            return super()._is_to_be_tried(outcome, sequence, attempt)
        return self._retry == BLIND or not self._is_there(sequence, attempt)

    def _is_there(self, sequence: int, attempt: int) -> bool:
        """Return True if the batch is committed, and record it as acknowledged; False if not, or if it must end."""
        while not self._is_over():
            began = time.perf_counter_ns()
            try:
                found = self._writer.has(self._key(sequence))
            except Exception as error:
                self._keep(error)
                self._open()
                continue
            if found:
                place = self._records.begin(began, sequence, attempt + 1)
                self._records.end(place, time.perf_counter_ns(), NUMBERS[ACKED], None)
            return found
        return False

    def _refresh(self, outcome: str) -> None:
        if outcome in REFUSED:
            super()._refresh(outcome)
        else:
            self._open()

    def _open(self) -> None:
        """Close the client, and open another one as soon as that is possible."""
        self.close()
        while True:
            time.sleep(BACK_OFF_S)
            if self._is_over():
                return
            try:
                self._writer = found_at(self._place).open()
                return
            except Exception as error:
                self._keep(error)


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
    records = Records(order.records, order.most)
    if order.place is not None:
        loop: WriterLoop = (survivor := ReconnectingWriter(order, records))
        told_to_go(survivor.end)
        survivor.until(sys.maxsize)
    else:
        loop = WriterLoop(order, order.client_factory.open(), records)
        follow(loop, order.number)
    loop.close()
    print("done", json.dumps(loop.said), flush=True)


if __name__ == "__main__":
    main()
