"""A program of its own: a writer that outlives the servers that it writes through.

    python -m tidemark.studies.ingest.faults.survivor

It is given its `LastingOrder` on standard input, pickled, and then a line at a time:

    says "ready", is told "go", and later "end", says "done <errors as JSON>"

After a write whose outcome is not certain it lets its client go and opens another one, again and again until one opens
or it is told to end. What it does with a batch that is in doubt is `retry`: NEVER sends it again, so that its rows are
there once or not at all; CHECK looks for its token, and sends it again where that is not there; BLIND sends it again.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.studies.ingest.faults.settings import BLIND, CHECK, NEVER
from tidemark.studies.ingest.load.records import Records
from tidemark.studies.ingest.load.writer import ID_BITS, Loop, Order
from tidemark.studies.ingest.outcomes import ACKED, NUMBERS, REFUSED, UNKNOWN
from tidemark.systems.writers import Door, TableWriter, Token

if TYPE_CHECKING:
    import pyarrow as pa

WRITER = "writer"
BACK_OFF_S = 0.05  # before a client is opened anew


@dataclass(frozen=True, slots=True)
class LastingOrder(Order):
    """`place` is a file with the door as it is now: a server that was started again may have another address."""

    place: Path
    retry: str = NEVER


def leave_door(door: Door, place: Path) -> None:
    """Write `door` to the file `place`, which may hold secrets, for all who open it from now on."""
    beside = place.with_name(f"{place.name}.new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        pickle.dump(door, file)
    beside.replace(place)


def find_door(place: Path) -> Door:
    door: Door = pickle.loads(place.read_bytes())
    return door


class Survivor(Loop):
    """The loop of a writer, which opens its client anew when it does not know what became of a write."""

    def __init__(self, order: LastingOrder, records: Records) -> None:
        self._place, self._retry = order.place, order.retry
        self._name = f"{WRITER} {order.number}"
        super().__init__(order, find_door(order.place).open(), records)

    def end(self) -> None:
        """Called from another thread: begin no batch any more."""
        self._end_ns = 0

    def close(self) -> None:
        with suppress(Exception):  # a client whose server is gone may be unable to
            self._writer.close()

    def _token(self, sequence: int) -> Token:
        order = self._order
        return Token(self._name, sequence, (order.number << ID_BITS) + order.rows * sequence)

    def _write(self, writer: TableWriter, rows: pa.Table, sequence: int) -> None:
        if self._retry == CHECK:
            writer.write_known(rows, self._token(sequence))
        else:
            writer.write(rows)

    def _is_to_be_tried(self, outcome: str, sequence: int, attempt: int) -> bool:
        if outcome != UNKNOWN or self._retry == NEVER:
            return super()._is_to_be_tried(outcome, sequence, attempt)
        return self._retry == BLIND or not self._is_there(sequence, attempt)

    def _is_there(self, sequence: int, attempt: int) -> bool:
        """Whether the batch is committed: then it counts as acknowledged from now on. False where it is told to end."""
        while not self._is_over():
            began = time.perf_counter_ns()
            try:
                found = self._writer.has(self._token(sequence))
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
        """Let the client go, and open another one as soon as that is possible."""
        self.close()
        while True:
            time.sleep(BACK_OFF_S)
            if self._is_over():
                return
            try:
                self._writer = find_door(self._place).open()
                return
            except Exception as error:
                self._keep(error)


def _until_told(survivor: Survivor) -> None:
    sys.stdin.buffer.readline()  # "end", or nothing where whoever would say it is gone
    survivor.end()


def main() -> None:
    order: LastingOrder = pickle.load(sys.stdin.buffer)
    survivor = Survivor(order, Records(order.records, order.most))
    print("ready", flush=True)
    told = sys.stdin.buffer.readline().decode().strip()
    if told != "go":
        sys.exit(f"told something else than to write: {told}")
    threading.Thread(target=_until_told, args=(survivor,), daemon=True).start()
    survivor.until(sys.maxsize)
    survivor.close()
    print("done", json.dumps(survivor.said), flush=True)


if __name__ == "__main__":
    main()
