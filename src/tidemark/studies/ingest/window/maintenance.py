"""Measurement window of the part `maintenance`: a table, its writers, a reader, and a maintainer."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from tidemark.machine.sampler import Group
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed
from tidemark.runs.manifest import Footprint
from tidemark.runs.serde import written
from tidemark.studies.ingest.load.compactor import Call, Upkeep
from tidemark.studies.ingest.load.crew import DRAIN_S, Program, WorkerPool, worker_config
from tidemark.studies.ingest.load.row_counter import NOT_COUNTED, Polls
from tidemark.studies.ingest.load.writer import WorkerConfig
from tidemark.studies.ingest.parts import BESIDE, KEEPER, READER, MaintenanceSettings
from tidemark.studies.ingest.record import Counts, Maintenance, MaintenanceCall, MaintenanceRecord, SizeAt, in_seconds
from tidemark.studies.ingest.window.runner import MOST_A_SECOND, IngestRunner, IngestWindow, fresh_table
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory

KEEPING = "tidemark.studies.ingest.load.compactor"
WATCHING = "tidemark.studies.ingest.load.row_counter"


class MaintainedPool(WorkerPool):
    """Writers with a reader, and a maintainer unless `upkeep` is None; `calls` and `polls` are known after `write`."""

    def __init__(
        self, orders: Sequence[WorkerConfig], client_factory: ClientFactory, upkeep: Upkeep | None, folder: Path
    ) -> None:
        super().__init__(orders, folder)
        self._factory, self._upkeep = client_factory, upkeep
        self._beside: list[Program] = []
        self.calls: list[Call] = []
        self.polls = Polls()

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._beside.append(Program(READER, WATCHING, self._factory, self._folder))
            if self._upkeep is not None:
                self._beside.append(Program(KEEPER, KEEPING, self._upkeep, self._folder))
            for program in self._beside:
                program.heard("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for program in self._beside:
            program.end()

    def beside(self, name: str) -> list[int]:
        """Return the pid of the process `name`, READER or KEEPER, in a list; [] if there is none."""
        return [program.pid for program in self._beside if program.name == name]

    def has_failed(self) -> bool:
        return super().has_failed() or any(program.process.poll() not in (None, 0) for program in self._beside)

    @property
    def _together(self) -> Sequence[Program]:
        return [*self._beside, *self._members]

    def write(self, seconds: float) -> int | None:
        written = super().write(seconds)
        if written is None:
            return None
        found: list[Any] = []
        for program in self._beside:
            late = f"the process '{program.name}' did not return within {DRAIN_S:.0f} s of the window's end"
            found.append(json.loads(program.heard("done", time.monotonic() + DRAIN_S, late)))
        self.polls = Polls(**found[0])
        self.calls = [Call(**call) for calls in found[1:] for call in calls]
        return written


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


class MaintenanceRunner(IngestRunner[MaintainedPool]):
    """Window on one table; made by `open_window`."""

    def __init__(
        self, test_bed: TestBed, directory: Path, table: TableSystem, crew: MaintainedPool, growth: Growth
    ) -> None:
        super().__init__(test_bed, directory, [table], crew, warms=True)
        self._growth = growth

    def groups(self) -> Mapping[str, Group]:
        return {**super().groups(), **{name: Group(partial(self._crew.beside, name)) for name in BESIDE}}

    def execute(self, window: IngestWindow, until_seconds: float) -> None:
        with self._growth.watched():
            super().execute(window, until_seconds)

    def check(self, window: IngestWindow, last: bool, show: ProgressCallback) -> CheckResult:
        self._growth.look()
        return super().check(window, last, show)

    def describe(self, window: IngestWindow) -> RunMetadata:
        made = super().describe(window)
        assert self._started is not None
        own = MaintenanceRecord(record(self._started, self._table, self._crew, self._growth))
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
    return MaintenanceCall(in_seconds(began), in_seconds(took), **own)


def _counts(polls: Polls, start_ns: int) -> Counts:
    return Counts(
        moment_s=tuple(in_seconds(began - start_ns) for began in polls.start_ns),
        seconds=tuple(in_seconds(took) for took in polls.elapsed_ns),
        rows=tuple(None if count == NOT_COUNTED else count for count in polls.rows),
        said=tuple(polls.said),
    )


def _size(size: Size, start_ns: int) -> SizeAt:
    own = asdict(size.footprint)
    del own["reason"]
    return SizeAt(in_seconds(size.moment_ns - start_ns), **own)


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
            worker_config(WorkerConfig, test_bed, table, settings, number, directory, most)
            for number in range(1, 1 + settings.writers)
        ]
        upkeep = Upkeep(table.client_factory(), settings.every_seconds) if settings.every_seconds else None
        crew = stack.enter_context(MaintainedPool(orders, table.client_factory(), upkeep, directory))
        yield MaintenanceRunner(test_bed, directory, table, crew, Growth(table, settings.look_seconds))
