"""Measurement window of the part `maintenance`: a table, its writers, a reader, and a maintainer."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from tidemark.machine.sampler import Group
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed
from tidemark.runs.manifest import Footprint
from tidemark.runs.serde import written
from tidemark.studies.ingest.maintenance.compactor import Call, Upkeep
from tidemark.studies.ingest.maintenance.crew import MaintainedPool
from tidemark.studies.ingest.maintenance.row_counter import NOT_COUNTED, Polls
from tidemark.studies.ingest.maintenance.settings import BESIDE, MaintenanceSettings
from tidemark.studies.ingest.record import Counts, Maintenance, MaintenanceCall, MaintenanceRecord, SizeAt
from tidemark.studies.ingest.window.runner import MOST_A_SECOND, IngestRunner, fresh_table, worker_config
from tidemark.studies.ingest.window.samples import IngestWindow
from tidemark.systems.tables import TableSystem


@dataclass(frozen=True, slots=True)
class Size:
    """Size of a table's folder and catalog at one moment, including files that no snapshot needs any more."""

    moment_ns: int  # of the clock that all processes share
    footprint: Footprint


class Growth:
    """Sampler of a table: `sizes` in time order; a look that failed, as a file vanished meanwhile, is only counted."""

    def __init__(self, table: TableSystem, every_s: float) -> None:
        self._table, self._every_s = table, every_s
        self._over = threading.Event()
        self.sizes: list[Size] = []
        self.failed = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Sample the size every `every_s` seconds while the context is active."""
        thread = threading.Thread(target=self._watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self.look()
            self._over.wait(self._every_s)

    def look(self) -> None:
        try:
            found = self._table.footprint()
        except Exception:
            self.failed += 1
        else:
            self.sizes.append(Size(time.perf_counter_ns(), found))


class MaintenanceRunner(IngestRunner):
    """Window on one table; made by `open_window`."""

    def __init__(
        self, test_bed: TestBed, directory: Path, table: TableSystem, crew: MaintainedPool, growth: Growth
    ) -> None:
        super().__init__(test_bed, directory, [table], crew, warms=True)
        self._kept, self._table, self._growth = crew, table, growth

    def groups(self) -> Mapping[str, Group]:
        return {**super().groups(), **{name: Group(partial(self._kept.beside, name)) for name in BESIDE}}

    def execute(self, window: IngestWindow, until_seconds: float) -> None:
        with self._growth.watched():
            super().execute(window, until_seconds)

    def check(self, window: IngestWindow, last: bool, show: ProgressCallback) -> CheckResult:
        self._growth.look()
        return super().check(window, last, show)

    def describe(self, window: IngestWindow) -> RunMetadata:
        made = super().describe(window)
        assert self._started is not None
        own = MaintenanceRecord(record(self._started, self._table, self._kept, self._growth))
        return replace(made, found={**made.found, **written(own)})


def record(start_ns: int, table: TableSystem, crew: MaintainedPool, growth: Growth) -> Maintenance:
    """Return the findings on maintenance; moments are seconds of the window."""
    return Maintenance(
        left_undone=table.not_maintained,
        calls=tuple(_call(call, start_ns) for call in crew.calls),
        reads=_counts(crew.polls, start_ns),
        sizes=tuple(_size(size, start_ns) for size in growth.sizes),
        looks_failed=growth.failed,
    )


def _call(call: Call, start_ns: int) -> MaintenanceCall:
    own = asdict(call)
    began, took = own.pop("start_ns") - start_ns, own.pop("elapsed_ns")
    return MaintenanceCall(_seconds(began), _seconds(took), **own)


def _counts(polls: Polls, start_ns: int) -> Counts:
    return Counts(
        moment_s=tuple(_seconds(began - start_ns) for began in polls.start_ns),
        seconds=tuple(_seconds(took) for took in polls.elapsed_ns),
        rows=tuple(None if count == NOT_COUNTED else count for count in polls.rows),
        said=tuple(polls.said),
    )


def _size(size: Size, start_ns: int) -> SizeAt:
    own = asdict(size.footprint)
    del own["reason"]
    return SizeAt(_seconds(size.moment_ns - start_ns), **own)


def _seconds(nanoseconds: int) -> float:
    return round(nanoseconds / 1e9, 6)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[MaintenanceRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, and all processes, waiting."""
    settings = MaintenanceSettings.of(test_bed.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("making the table")
        table = fresh_table(test_bed, directory / "table-1", stack, settings.rows)
        show("starting the writers")
        most = math.ceil(seconds * MOST_A_SECOND) + settings.uncounted * settings.tries
        orders = [
            worker_config(test_bed, table, settings, number, directory, most)
            for number in range(1, 1 + settings.writers)
        ]
        upkeep = Upkeep(table.client_factory(), settings.every_seconds) if settings.every_seconds else None
        crew = stack.enter_context(MaintainedPool(orders, table.client_factory(), upkeep, directory))
        yield MaintenanceRunner(test_bed, directory, table, crew, Growth(table, settings.look_seconds))
