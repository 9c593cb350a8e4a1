"""Measurement window of the part `paced`: writers of one table that each commit at a set interval.

The interval is that of a service that flushes its buffer every so many seconds. Each writer commits once in each
interval, at a random moment of it, from the seed: the timers of independent instances drift.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidemark.measure.workload import ProgressCallback, RunMetadata, TestBed
from tidemark.studies.ingest.load.crew import WorkerPool, writer_orders
from tidemark.studies.ingest.load.schedule import SPREAD, read_notes
from tidemark.studies.ingest.record import Schedule
from tidemark.studies.ingest.settings import PacedSettings
from tidemark.studies.ingest.window.runner import (
    COLD_RUN,
    IngestRunner,
    IngestWindow,
    extended,
    opened_table,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tidemark.systems.tables import TableSystem

LONGEST_WAIT_S = 10.0  # of a due commit: beyond it, its writer is overloaded and stops


class PacedRunner(IngestRunner[WorkerPool]):
    """Window on one table, with writers that commit by a schedule each; made by `open_window`."""

    def __init__(self, test_bed: TestBed, directory: Path, table: TableSystem, crew: WorkerPool, warms: bool) -> None:
        super().__init__(test_bed, directory, [table], crew, warms)
        self._pace = PacedSettings.of(test_bed.spec)

    def segments(self, window: IngestWindow, until_seconds: float) -> Iterator[None]:
        """Yield once, after each writer has made its schedule."""
        spec = self.test_bed.spec
        for writer in self._crew.asked:
            seed = spec.seed, spec.repeat, *self.directory.name.encode(), writer.order.number
            writer.tell("pace", SPREAD, 1 / self._pace.every_seconds, until_seconds, LONGEST_WAIT_S, *seed)
            writer.heard("paced")
        yield from super().segments(window, until_seconds)

    def describe(self, window: IngestWindow) -> RunMetadata:
        """Describe the window as for writers, and add the outcome of the schedules."""
        notes = [read_notes(self.directory, number) for number in self._crew.numbers]
        schedule = Schedule(
            requests_per_s=self._pace.writers / self._pace.every_seconds,
            scheduled=sum(each.scheduled for each in notes),
            not_begun=sum(each.not_begun for each in notes),
            overloaded=any(each.overloaded for each in notes),
        )
        return extended(super().describe(window), schedule)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[PacedRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, and waiting writers.

    Records have room for all tries of the commits that are due in `seconds`.
    """
    settings = PacedSettings.of(test_bed.spec)
    with opened_table(test_bed, name, settings.rows, show) as (directory, table, stack):
        show("starting the writers")
        most = (math.ceil(seconds / settings.every_seconds) + settings.uncounted + 1) * settings.tries
        order = writer_orders(test_bed, [table], settings, directory, most)
        writers = stack.enter_context(WorkerPool(order, settings.writers, directory))
        yield PacedRunner(test_bed, directory, table, writers, warms=name != COLD_RUN)
