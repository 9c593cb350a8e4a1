"""Measurement window of undisturbed writers: new tables with a first commit in each, and the writers' processes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tidemark.measure.workload import Rig, Show
from tidemark.studies.ingest.load.crew import Crew
from tidemark.studies.ingest.load.writer import Order
from tidemark.studies.ingest.window.stage import COLD_RUN, MOST_A_SECOND, IngestStage, fresh_table
from tidemark.studies.ingest.writers.settings import OWN, WritersSettings


@contextmanager
def staged(rig: Rig, name: str, seconds: float, show: Show) -> Iterator[IngestStage]:
    """Yield a stage: tables in the folder `name`, each with a first commit, and the writers' processes, waiting."""
    settings = WritersSettings.of(rig.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(rig.folder(name))
        show("making the tables")
        tables = [
            fresh_table(rig, directory / f"table-{number}", stack, settings.rows)
            for number in range(1, 1 + (settings.writers if settings.tables == OWN else 1))
        ]
        show("starting the writers")
        most = math.ceil(seconds * MOST_A_SECOND) + settings.uncounted * settings.tries
        orders = [
            Order(
                door=tables[number % len(tables)].door(),
                number=number + 1,
                trips=rig.workload.trips,
                rows=settings.rows,
                tries=settings.tries,
                uncounted=settings.uncounted,
                seed=rig.spec.seed,
                records=directory / f".records-{number + 1}",
                most=most,
            )
            for number in range(settings.writers)
        ]
        crew = stack.enter_context(Crew(orders, directory))
        yield IngestStage(rig, directory, tables, crew, name != COLD_RUN)
