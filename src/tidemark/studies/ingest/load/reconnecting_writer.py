"""Stand-alone program: a writer that outlives the servers that it writes through.

    python -m tidemark.studies.ingest.load.reconnecting_writer

It reads its `ReconnectingWriterConfig`, pickled, from standard input, and then exchanges lines:

    prints "ready", reads "go", and later "end", prints "done <errors as JSON>"

After a write of unknown outcome it closes its client and opens another one, repeatedly until one opens or it reads
"end". `retry` decides on the batch of that write: NEVER does not resend it, so that its rows are present once or not
at all; CHECK looks for its token, and resends it if the token is missing; BLIND resends it.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.ingest.load.records import ACKED, BLIND, CHECK, NEVER, NUMBERS, REFUSED, UNKNOWN, Records
from tidemark.studies.ingest.load.writer import ID_BITS, WorkerConfig, WriterLoop, told_to_go
from tidemark.systems.writers import ClientFactory, IdempotencyKey, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

WRITER = "writer"
BACK_OFF_S = 0.05  # before a client is reopened


@dataclass(frozen=True, slots=True)
class ReconnectingWriterConfig(WorkerConfig):
    """Order of a reconnecting writer. `place`: file of the current `ClientFactory`, as servers may move."""

    place: Path
    retry: str = NEVER


def publish_factory(client_factory: ClientFactory, place: Path) -> None:
    """Write `client_factory` to the file `place` (mode 0600: it may hold secrets), for clients opened later."""
    beside = place.with_name(f"{place.name}.new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        pickle.dump(client_factory, file)
    beside.replace(place)


def find_factory(place: Path) -> ClientFactory:
    client_factory: ClientFactory = pickle.loads(place.read_bytes())
    return client_factory


class ReconnectingWriter(WriterLoop):
    """Writer loop that reopens its client after a write of unknown outcome."""

    def __init__(self, order: ReconnectingWriterConfig, records: Records) -> None:
        self._place, self._retry = order.place, order.retry
        self._name = f"{WRITER} {order.number}"
        super().__init__(order, find_factory(order.place).open(), records)

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
                self._writer = find_factory(self._place).open()
                return
            except Exception as error:
                self._keep(error)


def main() -> None:
    order: ReconnectingWriterConfig = pickle.load(sys.stdin.buffer)
    survivor = ReconnectingWriter(order, Records(order.records, order.most))
    told_to_go(survivor.end)
    survivor.until(sys.maxsize)
    survivor.close()
    print("done", json.dumps(survivor.said), flush=True)


if __name__ == "__main__":
    main()
