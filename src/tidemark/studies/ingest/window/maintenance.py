"""Measurement window of the part `maintenance`: a table, its writers, a reader, and a maintainer."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tidemark.machine.sampler import Group
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed
from tidemark.runs.manifest import Footprint
from tidemark.studies.ingest.load.crew import DRAIN_S, Program, WorkerPool, writer_orders
from tidemark.studies.ingest.load.maintenance import Upkeep
from tidemark.studies.ingest.load.writer import WorkerConfig
from tidemark.studies.ingest.parts import BESIDE, KEEPER, READER, MaintenanceSettings
from tidemark.studies.ingest.record import Counts, Maintenance, MaintenanceCall, SizeAt, in_seconds
from tidemark.studies.ingest.window.runner import MOST_A_SECOND, IngestRunner, IngestWindow, extended, opened_table
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory

PROGRAM = "tidemark.studies.ingest.load.maintenance"


class MaintainedPool(WorkerPool):
    """Writers with a reader, and a maintainer unless `upkeep` is None; `calls` and `reads` are known after `write`."""

    def __init__(
        self,
        order: Callable[[int], WorkerConfig],
        count: int,
        client_factory: ClientFactory,
        upkeep: Upkeep | None,
        folder: Path,
    ) -> None:
        super().__init__(order, count, folder)
        self._factory, self._upkeep = client_factory, upkeep
        self._beside: list[Program] = []
        self.calls: tuple[MaintenanceCall, ...] = ()
        self.reads = Counts((), (), (), ())

    def _start(self) -> None:
        super()._start()
        for name, order in ((READER, self._factory), (KEEPER, self._upkeep)):
            if order is not None:
                self._beside.append(Program(name, PROGRAM, order, self._folder))
                self._programs.append(self._beside[-1])
        for program in self._beside:
            program.heard("ready")

    @property
    def _together(self) -> Sequence[Program]:
        return [*self._beside, *self.asked]

    def groups(self) -> dict[str, Group]:
        return {**super().groups(), **{name: Group(partial(self._pids_of, name)) for name in BESIDE}}

    def _pids_of(self, name: str) -> list[int]:
        return [program.pid for program in self._beside if program.name == name]

    def _finish(self, lines: list[str]) -> None:
        super()._finish(lines)
        found: list[Any] = []
        for program in self._beside:
            late = f"the process '{program.name}' did not return within {DRAIN_S:.0f} s of the window's end"
            found.append(json.loads(program.heard("done", time.monotonic() + DRAIN_S, late)))
        self.reads = Counts(**{name: tuple(values) for name, values in found[0].items()})
        self.calls = tuple(MaintenanceCall(**call) for calls in found[1:] for call in calls)


class Growth:
    """Sampler of a table: moments (ns) and sizes, in time order; a look that failed, as a file vanished, is counted."""

    def __init__(self, table: TableSystem, every_s: float) -> None:
        self._table, self._every_s = table, every_s
        self._over = threading.Event()
        self.sizes: list[tuple[int, Footprint]] = []
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
            self.sizes.append((time.perf_counter_ns(), found))


class MaintenanceRunner(IngestRunner[MaintainedPool]):
    """Window on one table; made by `open_window`."""

    def __init__(
        self, test_bed: TestBed, directory: Path, table: TableSystem, crew: MaintainedPool, growth: Growth
    ) -> None:
        super().__init__(test_bed, directory, [table], crew, warms=True)
        self._growth = growth

    def execute(self, window: IngestWindow, until_seconds: float) -> None:
        with self._growth.watched():
            super().execute(window, until_seconds)

    def check(self, window: IngestWindow, last: bool, show: ProgressCallback) -> CheckResult:
        self._growth.look()
        return super().check(window, last, show)

    def describe(self, window: IngestWindow) -> RunMetadata:
        assert self._started is not None
        own = record(self._started, self._table, self._crew, self._growth)
        return extended(super().describe(window), own)


def record(start_ns: int, table: TableSystem, crew: MaintainedPool, growth: Growth) -> Maintenance:
    """Return the findings on maintenance; moments are seconds of the window."""
    sizes = []
    for moment_ns, footprint in growth.sizes:
        own = asdict(footprint)
        del own["reason"]
        sizes.append(SizeAt(in_seconds(moment_ns - start_ns), **own))
    return Maintenance(table.not_maintained, crew.calls, crew.reads, tuple(sizes), looks_failed=growth.failed)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[MaintenanceRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, and all processes, waiting."""
    settings = MaintenanceSettings.of(test_bed.spec)
    with opened_table(test_bed, name, settings.rows, show) as (directory, table, stack):
        show("starting the writers")
        most = math.ceil(seconds * MOST_A_SECOND) + settings.uncounted * settings.tries
        order, reader = writer_orders(test_bed, [table], settings, directory, most), table.client_factory()
        upkeep = Upkeep(table.client_factory(), settings.every_seconds) if settings.every_seconds else None
        crew = stack.enter_context(MaintainedPool(order, settings.writers, reader, upkeep, directory))
        yield MaintenanceRunner(test_bed, directory, table, crew, Growth(table, settings.look_seconds))
