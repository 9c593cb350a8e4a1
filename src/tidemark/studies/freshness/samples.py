"""Samples of one window, a row per event with the times at which it was due, committed and seen; and the reader."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import SystemFailure
from tidemark.measure.workload import ColumnsWindow
from tidemark.systems.tables import Committed, TableSystem

GIVE_UP = 20  # consecutive looks that fail
COLUMNS = {  # of operations.parquet: an event is an operation
    "start_ns": "when the event was due, after the first one",
    "elapsed_ns": "age of the event at its commit",
    "seen_ns": "age of the event when the reader saw it",
    "commit": "number of the commit that holds it, from 0",
    "rows": "1",
}


@dataclass(frozen=True, slots=True)
class Look:
    """Row count that a reader got, and the time (of time.time_ns) at which it got the answer."""

    at_ns: int
    rows: int


@dataclass(frozen=True, slots=True)
class Step:
    """Events at one rate; `begin_ns` is relative to the first event's due time."""

    begin_ns: int
    rate: int  # events per second
    events: int

    @property
    def end_ns(self) -> int:
        return self.begin_ns + round(self.events * 1e9 / self.rate)

    def due(self) -> NDArray[np.int64]:
        """Return the due times of its events, in nanoseconds, as int64[events]."""
        moments: NDArray[np.int64] = self.begin_ns + np.round(np.arange(self.events) * 1e9 / self.rate).astype(np.int64)
        return moments


@dataclass(slots=True)
class FreshnessWindow(ColumnsWindow):
    """Window of events. `elapsed_ns` is from the first event's due time until all were seen or the drain timed out."""

    compression: ClassVar[str] = "zstd"

    warm: int  # events in the table before the first counted one
    begin_ns: int = 0
    steps: list[Step] = field(default_factory=list)  # of events that have arrived, in order
    looks: list[Look] = field(default_factory=list)

    def take(self, history: Sequence[Committed]) -> None:
        """Find for each event the commit and the look that made it visible.

        A table holds events in the order of the topic, so event k belongs to the first commit with which the table has
        more than k rows. For an event that never arrived, the age at the window's end is a lower bound.
        """
        numbers = np.arange(self.warm + 1, self.warm + 1 + self.events)
        due = np.concatenate([step.due() for step in self.steps])
        end = np.int64(self.begin_ns + self.elapsed_ns)
        totals = np.cumsum([each.rows for each in history]) if history else np.zeros(0, np.int64)
        made = np.array([round(each.at_ms * 1e6) for each in history] + [end], np.int64)
        commit = np.searchsorted(totals, numbers)
        rows = np.maximum.accumulate([each.rows for each in self.looks]) if self.looks else np.zeros(0, np.int64)
        seen = np.array([each.at_ns for each in self.looks] + [end], np.int64)
        look = np.searchsorted(rows, numbers)
        # Rounding may put a commit's timestamp slightly before an event's due time; ages are at least 1 ns.
        self.columns = {
            "start_ns": due,
            "elapsed_ns": np.maximum(np.minimum(made[commit], end) - self.begin_ns - due, 1),
            "seen_ns": np.maximum(seen[look] - self.begin_ns - due, 1),
            "commit": commit.astype(np.int64),
            "rows": np.ones(self.events, np.int64),
        }

    @property
    def events(self) -> int:
        return sum(step.events for step in self.steps)

    def budget(self) -> dict[str, int]:
        """Return the nanoseconds in which events arrive, and in which the remaining ones become visible."""
        arriving = min(self.steps[-1].end_ns, self.elapsed_ns)
        return {"arriving": arriving, "draining": self.elapsed_ns - arriving}


class Reader:
    """Thread as a context manager. Each look opens the table again, as a query does before it reads rows."""

    def __init__(self, table: TableSystem, look_ms: int) -> None:
        self.looks: list[Look] = []
        self.failed = 0
        self._table, self._pause_s = table, look_ms / 1000
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    @property
    def rows(self) -> int:
        """Rows at the last look. Raises SystemFailure if the table can no longer be read."""
        if self._error is not None:
            raise SystemFailure(f"the table could not be read: {self._error}") from self._error
        return self.looks[-1].rows if self.looks else 0

    def _run(self) -> None:
        in_a_row = 0
        while not self._ended.wait(self._pause_s):
            try:
                rows = self._table.visible_rows()
            except Exception as error:
                self.failed, in_a_row = self.failed + 1, in_a_row + 1
                if in_a_row >= GIVE_UP:
                    self._error = error
                    return
                continue
            in_a_row = 0
            self.looks.append(Look(time.time_ns(), rows))

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
