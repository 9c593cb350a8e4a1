"""Samples of one window: a row per event, with the times at which it was due, committed, and first seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.runs.proofs import Oracle
from tidemark.systems.tables import Committed


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


class End(StrEnum):
    """Reason why a climb had no further step."""

    LAG = "the table fell behind"
    PRODUCER = "the producer could not send faster"
    STEPS = "there were no more steps"


def is_unfinished(oracle: Oracle, gave_up: bool) -> bool:
    """Return True if events are only missing because the drain timed out: late is not lost."""
    return gave_up and oracle.missing > 0 and not oracle.duplicated and not oracle.unexpected


@dataclass(slots=True)
class FreshnessWindow:
    """Window of events. `elapsed_ns` is from the first event's due time until all were seen or the drain timed out."""

    warm: int  # events in the table before the first counted one
    begin_ns: int = 0
    steps: list[Step] = field(default_factory=list)  # of events that have arrived, in order
    elapsed_ns: int = 0
    looks: list[Look] = field(default_factory=list)
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)

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

    @property
    def operations(self) -> int:
        return self.events

    @property
    def rows(self) -> int:
        return self.events

    def elapsed(self) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.columns["elapsed_ns"]
        return found

    def budget(self) -> dict[str, int]:
        """Return the nanoseconds in which events arrive, and in which the remaining ones become visible."""
        arriving = min(self.steps[-1].end_ns, self.elapsed_ns)
        return {"arriving": arriving, "draining": self.elapsed_ns - arriving}

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(self.columns), path, compression="zstd")
