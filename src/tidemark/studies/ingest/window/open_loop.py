"""Measurement window of the part `tail`: a table, and a writer or a front with its clients, on a schedule.

The offered rate is a share of the rate that the same clients reach in a closed loop before the window. The samples of a
window have a row per attempt, timed from the intended start of its request.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tidemark.errors import SystemFailure
from tidemark.measure.workload import ProgressCallback, RunMetadata, TestBed
from tidemark.runs.serde import written
from tidemark.studies.ingest.load.crew import DRAIN_S, GatewayPool, Program, WorkerPool, worker_config
from tidemark.studies.ingest.load.records import ACKED, NUMBERS, by_field
from tidemark.studies.ingest.load.schedule import Notes, read_notes
from tidemark.studies.ingest.load.writer import WorkerConfig
from tidemark.studies.ingest.record import (
    ClosedLoop,
    ClosedLoopRecord,
    GatewayRecord,
    RequestRecord,
    Schedule,
    ScheduleRecord,
)
from tidemark.studies.ingest.settings import TailSettings
from tidemark.studies.ingest.window.group_commit import MOST_A_SECOND as MOST_OF_A_CLIENT
from tidemark.studies.ingest.window.group_commit import ROWS_A_FLUSH, gateway_config
from tidemark.studies.ingest.window.runner import MOST_A_SECOND, IngestRunner, IngestWindow, fresh_table

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tidemark.systems.tables import TableSystem

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
    starts, ends, cycles, last = [], [], [], since_ns
    for noted in records:
        own = by_field(noted[noted[:, 0] >= since_ns])
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
        late = f"a commit did not return within {DRAIN_S:.0f} s of the closed loop's end"
        asking.heard("closed", time.monotonic() + given.closed_seconds + DRAIN_S, late)
        self.closed = closed(records(), since)
        asking.tell("pace", given.arrivals, self.rate, self.seconds, given.longest_wait_seconds, *self.seed)
        asking.heard("paced")


@dataclass(slots=True)
class TailWindow(IngestWindow):
    """Window in which `response_ns` counts from the intended start; `wait_ns` is the part of it before the first try.

    Attempts that were due in the window and began after its end are included; leaving them out would omit the longest
    waits. A window that was given up as overloaded ends with its last attempt.
    """

    notes: Notes | None = None
    of_front: bool = False  # its answers name the commit that holds a request

    def take(self, records: Sequence[NDArray[np.int64]], start_ns: int) -> None:
        IngestWindow.take(self, records, start_ns)
        assert self.notes is not None, "a schedule's notes are read before its records"
        columns = self.columns
        meant = np.zeros(self.operations, np.int64)
        for number, starts in enumerate(self.notes.meant, 1):
            own = columns["writer"] == number
            if own.any():
                sequence = columns["sequence"][own]
                meant[own] = starts[sequence - sequence.min()] - start_ns
        ends = columns["start_ns"] + columns["elapsed_ns"]
        service = columns["response_ns"]  # from the first try on, as in the closed loop
        columns["response_ns"] = ends - meant
        columns["wait_ns"] = columns["response_ns"] - service
        if self.of_front:
            columns["commit"], columns["commits"] = columns["commits"], columns["commit"]
        if self.notes.overloaded:
            self.elapsed_ns = min(self.elapsed_ns, int(ends.max()))


# Modules that run as stand-alone programs.
WRITER, CLIENTS = "tidemark.studies.ingest.load.scheduled_writer", "tidemark.studies.ingest.load.scheduled_clients"


class OpenLoopRunner(IngestRunner[WorkerPool | GatewayPool]):
    """Window on one table, with its writer or front, and the offered rate."""

    def __init__(
        self, test_bed: TestBed, directory: Path, table: TableSystem, crew: WorkerPool | GatewayPool, pace: Pace
    ) -> None:
        super().__init__(test_bed, directory, [table], crew, warms=False)
        self._pace = pace

    def new_window(self) -> TailWindow:
        return TailWindow(self._settings.rows, of_front=self._settings.has_front)

    def segments(self, window: IngestWindow, until_seconds: float) -> Iterator[None]:
        """Yield once. Before every window, including the cold one, measure the capacity: the rate is a share of it."""
        self._pace.set(self._crew.asking, self._crew.records)
        yield from super().segments(window, until_seconds)

    def finish(self, window: IngestWindow) -> None:
        assert isinstance(window, TailWindow)
        if self._started is not None:
            window.notes = read_notes(self.directory)
        super().finish(window)

    def describe(self, window: IngestWindow) -> RunMetadata:
        """Describe the window as for writers; add the closed loop's raw times, the rate, and the schedule's outcome."""
        assert isinstance(window, TailWindow) and window.notes is not None and self._pace.closed is not None
        made, closed, notes = super().describe(window), self._pace.closed, window.notes
        requests = made.found["commits"]
        loop = ClosedLoop(
            requests_per_s=closed.rate,
            seconds=closed.seconds,
            cycle_ns=closed.cycle_ns,
            response_ns=closed.response_ns.tolist(),
        )
        schedule = Schedule(
            requests_per_s=self._pace.rate,
            scheduled=notes.scheduled,
            not_begun=notes.not_begun,
            overloaded=notes.overloaded,
        )
        found = {
            **made.found,
            **written(RequestRecord(requests=requests, commits=requests)),
            **written(ClosedLoopRecord(loop)),
            **written(ScheduleRecord(schedule)),
        }
        if isinstance(self._crew, GatewayPool):
            reply = self._crew.told
            found |= written(GatewayRecord(requests=requests, commits=reply["commits"], busy=reply["busy"]))
        mark = ("more requests came than were worked off: its times are lower bounds",) if notes.overloaded else ()
        return replace(made, found=found, marks=(*made.marks, *mark))


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[OpenLoopRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, and a waiting writer, or front with clients."""
    settings = TailSettings.of(test_bed.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("making the table")
        rows = ROWS_A_FLUSH if settings.has_front else settings.rows
        table = fresh_table(test_bed, directory / "table-1", stack, rows)
        show("starting writers or clients")
        crew: WorkerPool | GatewayPool = _crew(test_bed, table, settings, seconds, directory)
        stack.enter_context(crew)
        seed = (test_bed.spec.seed, test_bed.spec.repeat, *name.encode())
        yield OpenLoopRunner(test_bed, directory, table, crew, Pace(settings, seconds, seed))


def _crew(
    test_bed: TestBed, table: TableSystem, settings: TailSettings, seconds: float, directory: Path
) -> WorkerPool | GatewayPool:
    """Return the writer or the front; its records have room for the closed loop and for a window of `seconds`."""
    a_second = MOST_OF_A_CLIENT if settings.has_front else MOST_A_SECOND
    most = MOST_CLOSED + settings.uncounted * settings.tries + math.ceil(seconds * a_second)
    if settings.has_front:
        gathering = gateway_config(test_bed, table, settings, 1)
        sizes = (settings.rows, settings.clients, settings.uncounted, most)
        return GatewayPool(gathering, test_bed.workload.trips, *sizes, directory, CLIENTS)
    return WorkerPool([worker_config(WorkerConfig, test_bed, table, settings, 1, directory, most)], directory, WRITER)
