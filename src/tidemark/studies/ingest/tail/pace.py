"""Offered rate of a window: a share of the rate that the same clients reach in a closed loop before it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidemark.errors import SystemFailure
from tidemark.studies.ingest.load.crew import DRAIN_S, Program
from tidemark.studies.ingest.load.records import FIELDS
from tidemark.studies.ingest.outcomes import ACKED, NUMBERS
from tidemark.studies.ingest.tail.settings import TailSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

MOST_CLOSED = 20_000  # requests of the closed loop: enough for its tail, and its times fit into run.json


@dataclass(frozen=True, slots=True)
class Closed:
    """Requests of all clients in the closed loop before the window, in time order."""

    seconds: float  # from the first start to the last end
    response_ns: NDArray[np.int64]  # of acknowledged requests, from their first try on
    cycle_ns: int  # median time between two starts of one client: the expected duration of a request

    @property
    def rate(self) -> float:
        """Acknowledged requests per second: the capacity."""
        return len(self.response_ns) / self.seconds


def closed(records: Sequence[NDArray[np.int64]], since_ns: int) -> Closed:
    """Return the requests that began at `since_ns` or later; raise SystemFailure if too few were acknowledged."""
    import numpy as np

    starts, ends, cycles, last = [], [], [], since_ns
    for noted in records:
        own = dict(zip(FIELDS, noted[noted[:, 0] >= since_ns].T, strict=True))
        first = own["attempt"] == 1
        begun = own["start_ns"][first]
        acked = own["outcome"] == NUMBERS[ACKED]
        starts.append(begun[np.searchsorted(own["sequence"][first], own["sequence"][acked])])
        ends.append((own["start_ns"] + own["elapsed_ns"])[acked])
        cycles.append(np.diff(begun))
        last = max(last, int((own["start_ns"] + own["elapsed_ns"]).max(initial=0)))
    start, end, cycle = (np.concatenate(parts) for parts in (starts, ends, cycles))
    if not len(start) or not len(cycle):
        raise SystemFailure("next to nothing was acknowledged in a closed loop, so that no rate is a share of it")
    order = np.argsort(start, kind="stable")
    return Closed((last - int(start[order[0]])) / 1e9, (end - start)[order], int(np.median(cycle)))


@dataclass(slots=True)
class Pace:
    """Rate of a window, which is known once `set` was called."""

    settings: TailSettings
    seconds: float  # of the window
    seed: tuple[int, ...]
    closed: Closed | None = None

    @property
    def rate(self) -> float:
        """Requests per second of the schedule."""
        assert self.closed is not None, "the closed loop comes first"
        return self.closed.rate * self.settings.percent / 100

    def set(self, asking: Program, records: Callable[[], Sequence[NDArray[np.int64]]]) -> None:
        """Have `asking` warm up, then run a closed loop, then make its schedule."""
        given = self.settings
        asking.tell("write")
        asking.heard("warm")
        since = time.perf_counter_ns()
        asking.tell("close", given.closed_seconds, MOST_CLOSED)
        if asking.hear("closed", time.monotonic() + given.closed_seconds + DRAIN_S) is None:
            raise SystemFailure(f"a commit did not return within {DRAIN_S:.0f} s of the closed loop's end")
        self.closed = closed(records(), since)
        asking.tell("pace", given.arrivals, self.rate, self.seconds, given.longest_wait_seconds, *self.seed)
        asking.heard("paced")
