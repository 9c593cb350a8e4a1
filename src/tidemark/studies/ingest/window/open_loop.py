"""Measurement windows by a schedule: a table, and writers or a front with its clients.

tail   the offered rate is a share of the rate that the same clients reach in a closed loop before the window; the
       samples have a row per attempt, timed from the intended start of its request
paced  each writer commits once in each interval, at a random moment of it, from the seed: a service flushes its buffer
       every so many seconds, and the timers of independent instances drift
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tidemark.errors import SystemFailure
from tidemark.measure.workload import ProgressCallback, RunMetadata, TestBed
from tidemark.studies.ingest.load.crew import DRAIN_S, Pool, WorkerPool, gateway_pool, writer_orders
from tidemark.studies.ingest.load.records import ACKED, NUMBERS, by_field
from tidemark.studies.ingest.load.schedule import SPREAD, Notes, read_notes
from tidemark.studies.ingest.parts import settings_of
from tidemark.studies.ingest.record import ClosedLoop, RequestRecord, Schedule
from tidemark.studies.ingest.settings import PacedSettings, TailSettings
from tidemark.studies.ingest.window import runner

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tidemark.systems.tables import TableSystem

MOST_CLOSED = 20_000  # requests of the closed loop: enough for its tail, and its times fit into run.json
LONGEST_WAIT_S = 10.0  # of a due commit of the part `paced`: beyond it, its writer is overloaded and stops


def closed(records: Sequence[NDArray[np.int64]], since_ns: int) -> ClosedLoop:
    """Return the requests that began at `since_ns` or later, in time order, with their times from the first try on.

    Raise SystemFailure if too few were acknowledged.
    """
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
    seconds, times = (last - int(start[order[0]])) / 1e9, (end - start)[order].tolist()
    return ClosedLoop(len(times) / seconds, seconds, int(np.median(cycle)), tuple(times))


@dataclass(slots=True)
class Pace:
    """Rate of a window, which is known once `set` was called."""

    settings: TailSettings
    seconds: float  # of the window
    seed: tuple[int, ...]
    closed: ClosedLoop | None = None

    @property
    def rate(self) -> float:
        """Requests per second of the schedule."""
        assert self.closed is not None, "the closed loop comes first"
        return self.closed.requests_per_s * self.settings.percent / 100

    def set(self, crew: Pool) -> None:
        """Have a writer or all clients warm up, then run a closed loop, then make their schedule."""
        given, (asking,) = self.settings, crew.asked
        crew.warm()
        since = time.perf_counter_ns()
        asking.tell("close", given.closed_seconds, MOST_CLOSED)
        late = f"a commit did not return within {DRAIN_S:.0f} s of the closed loop's end"
        asking.heard("closed", time.monotonic() + given.closed_seconds + DRAIN_S, late)
        self.closed = closed(crew.records(), since)
        asking.tell("pace", given.arrivals, self.rate, self.seconds, given.longest_wait_seconds, *self.seed)
        asking.heard("paced")


@dataclass(slots=True)
class TailWindow(runner.IngestWindow):
    """Window in which `response_ns` counts from the intended start; `wait_ns` is the part of it before the first try.

    Attempts that were due in the window and began after its end are included; leaving them out would omit the longest
    waits. A window that was given up as overloaded ends with its last attempt.
    """

    notes: Notes | None = None

    def take(self, records: Sequence[NDArray[np.int64]], start_ns: int) -> None:
        runner.IngestWindow.take(self, records, start_ns)
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
        if self.notes.overloaded:
            self.elapsed_ns = min(self.elapsed_ns, int(ends.max()))


class OpenLoopRunner(runner.IngestRunner[Pool]):
    """Window on one table, with its writer or front, and the offered rate."""

    def __init__(self, test_bed: TestBed, directory: Path, table: TableSystem, crew: Pool, pace: Pace) -> None:
        super().__init__(test_bed, directory, [table], crew, warms=False)
        self._pace = pace

    def new_window(self) -> TailWindow:
        return TailWindow(self._settings.rows, of_front=self._settings.has_front)

    def segments(self, window: runner.IngestWindow, until_seconds: float) -> Iterator[None]:
        """Yield once. Before every window, including the cold one, measure the capacity: the rate is a share of it."""
        self._pace.set(self._crew)
        yield from super().segments(window, until_seconds)

    def finish(self, window: runner.IngestWindow) -> None:
        assert isinstance(window, TailWindow)
        if self._started is not None:
            window.notes = read_notes(self.directory)
        super().finish(window)

    def describe(self, window: runner.IngestWindow) -> RunMetadata:
        """Describe the window as for writers; add the closed loop's raw times, the rate, and the schedule's outcome."""
        assert isinstance(window, TailWindow) and window.notes is not None and self._pace.closed is not None
        made, notes = super().describe(window), window.notes
        requests = () if window.of_front else (RequestRecord(requests=self.acked, commits=self.acked),)
        mark = ("more requests came than were worked off: its times are lower bounds",) if notes.overloaded else ()
        whole = runner.extended(made, *requests, self._pace.closed, _schedule(self._pace.rate, notes))
        return replace(whole, marks=(*made.marks, *mark))


class PacedRunner(runner.IngestRunner[WorkerPool]):
    """Window on one table, with writers that commit by a schedule each."""

    def segments(self, window: runner.IngestWindow, until_seconds: float) -> Iterator[None]:
        """Yield once, after each writer has made its schedule."""
        spec, every_seconds = self.test_bed.spec, PacedSettings.of(self.test_bed.spec).every_seconds
        for writer in self._crew.asked:
            seed = spec.seed, spec.repeat, *self.directory.name.encode(), writer.order.number
            writer.tell("pace", SPREAD, 1 / every_seconds, until_seconds, LONGEST_WAIT_S, *seed)
            writer.heard("paced")
        yield from super().segments(window, until_seconds)

    def describe(self, window: runner.IngestWindow) -> RunMetadata:
        """Describe the window as for writers, and add the outcome of the schedules."""
        notes = (read_notes(self.directory, number) for number in self._crew.numbers)
        pace = PacedSettings.of(self.test_bed.spec)
        return runner.extended(super().describe(window), _schedule(pace.writers / pace.every_seconds, *notes))


def _schedule(requests_per_s: float, *notes: Notes) -> Schedule:
    """Return the outcome of the schedules that these `notes` are of."""
    scheduled, not_begun = sum(each.scheduled for each in notes), sum(each.not_begun for each in notes)
    return Schedule(requests_per_s, scheduled, not_begun, overloaded=any(each.overloaded for each in notes))


@contextmanager
def open_window(
    test_bed: TestBed, name: str, seconds: float, show: ProgressCallback
) -> Iterator[runner.IngestRunner[Any]]:
    """Yield a runner: a table in the folder `name` with a first commit, and waiting writers, or a front with clients.

    Records have room for a window of `seconds`, for the closed loop before it, and for all tries of commits that are
    due at a set interval.
    """
    settings = settings_of(test_bed.spec)
    if isinstance(settings, PacedSettings):
        with runner.opened_table(test_bed, name, settings.rows, show) as (directory, table, stack):
            show("starting the writers")
            most = (math.ceil(seconds / settings.every_seconds) + settings.uncounted + 1) * settings.tries
            order = writer_orders(test_bed, [table], settings, directory, most)
            writers = stack.enter_context(WorkerPool(order, settings.writers, directory))
            yield PacedRunner(test_bed, directory, [table], writers, warms=name != runner.COLD_RUN)
        return
    assert isinstance(settings, TailSettings)
    rows, a_second = settings.rows, runner.MOST_A_SECOND
    if settings.has_front:
        rows, a_second = runner.ROWS_A_FLUSH, runner.MOST_OF_A_CLIENT
    with runner.opened_table(test_bed, name, rows, show) as (directory, table, stack):
        show("starting writers or clients")
        most = MOST_CLOSED + settings.uncounted * settings.tries + math.ceil(seconds * a_second)
        crew: Pool = (
            gateway_pool(test_bed, table, settings, 1, most, directory)
            if settings.has_front
            else WorkerPool(writer_orders(test_bed, [table], settings, directory, most), 1, directory)
        )
        seed = (test_bed.spec.seed, test_bed.spec.repeat, *name.encode())
        pace = Pace(settings, seconds, seed)
        yield OpenLoopRunner(test_bed, directory, table, stack.enter_context(crew), pace)
