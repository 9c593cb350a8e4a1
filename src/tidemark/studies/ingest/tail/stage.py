"""Measurement window of the part `tail`: a table, and a writer or a front with its clients, on a schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidemark.measure.workload import Description, Rig, Show
from tidemark.studies.ingest.gateway.protocol import new_token
from tidemark.studies.ingest.gateway.server import GatewayConfig
from tidemark.studies.ingest.group.load import Fronted
from tidemark.studies.ingest.group.stage import MOST_A_SECOND as MOST_OF_A_CLIENT
from tidemark.studies.ingest.group.stage import ROWS_A_FLUSH
from tidemark.studies.ingest.load.crew import Crew
from tidemark.studies.ingest.load.writer import Order
from tidemark.studies.ingest.tail.dialogue import read_notes
from tidemark.studies.ingest.tail.pace import MOST_CLOSED, Pace
from tidemark.studies.ingest.tail.settings import TailSettings
from tidemark.studies.ingest.tail.window import TailWindow
from tidemark.studies.ingest.window.samples import IngestWindow
from tidemark.studies.ingest.window.stage import MOST_A_SECOND, IngestStage, fresh_table

if TYPE_CHECKING:
    from pathlib import Path

    from tidemark.systems.tables import TableSystem

# Modules that run as stand-alone programs.
WRITER, CLIENTS = "tidemark.studies.ingest.tail.writer", "tidemark.studies.ingest.tail.clients"


class TailStage(IngestStage):
    """Window on one table, with its writer or front, and the offered rate."""

    def __init__(self, rig: Rig, directory: Path, table: TableSystem, crew: Crew | Fronted, pace: Pace) -> None:
        super().__init__(rig, directory, [table], crew, warms=False)
        self._pace = pace

    def new_window(self) -> TailWindow:
        return TailWindow(self._settings.rows, of_front=self._settings.has_front)

    def stretches(self, window: IngestWindow, until_seconds: float) -> Iterator[None]:
        """Yield once. Before every window, including the cold one, measure the capacity: the rate is a share of it."""
        self._pace.set(self._crew.asking, self._crew.records)
        yield from super().stretches(window, until_seconds)

    def finish(self, window: IngestWindow) -> None:
        assert isinstance(window, TailWindow)
        if self._started is not None:
            window.notes = read_notes(self.directory)
        super().finish(window)

    def describe(self, window: IngestWindow) -> Description:
        """Describe the window as for writers; add the closed loop's raw times, the rate, and the schedule's outcome."""
        assert isinstance(window, TailWindow) and window.notes is not None and self._pace.closed is not None
        made, closed, notes = super().describe(window), self._pace.closed, window.notes
        found: dict[str, Any] = {
            **made.found,
            "requests": made.found["commits"],
            "closed": {
                "requests_per_s": closed.rate,
                "seconds": closed.seconds,
                "cycle_ns": closed.cycle_ns,
                "response_ns": closed.response_ns.tolist(),
            },
            "schedule": {
                "requests_per_s": self._pace.rate,
                "scheduled": notes.scheduled,
                "not_begun": notes.not_begun,
                "overloaded": notes.overloaded,
            },
        }
        if isinstance(self._crew, Fronted):
            found |= {name: self._crew.told[name] for name in ("commits", "busy")}
        mark = ("more requests came than were worked off: its times are lower bounds",) if notes.overloaded else ()
        return replace(made, found=found, marks=(*made.marks, *mark))


@contextmanager
def staged(rig: Rig, name: str, seconds: float, show: Show) -> Iterator[TailStage]:
    """Yield a stage: a table in the folder `name` with a first commit, and a waiting writer, or front with clients."""
    settings = TailSettings.of(rig.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(rig.folder(name))
        show("making the table")
        rows = ROWS_A_FLUSH if settings.has_front else settings.rows
        table = fresh_table(rig, directory / "table-1", stack, rows)
        show("starting writers or clients")
        crew: Crew | Fronted = _crew(rig, table, settings, seconds, directory)
        stack.enter_context(crew)
        seed = (rig.spec.seed, rig.spec.repeat, *name.encode())
        yield TailStage(rig, directory, table, crew, Pace(settings, seconds, seed))


def _crew(rig: Rig, table: TableSystem, settings: TailSettings, seconds: float, directory: Path) -> Crew | Fronted:
    """Return the writer or the front; its records have room for the closed loop and for a window of `seconds`."""
    a_second = MOST_OF_A_CLIENT if settings.has_front else MOST_A_SECOND
    most = MOST_CLOSED + settings.uncounted * settings.tries + math.ceil(seconds * a_second)
    if settings.has_front:
        gathering = GatewayConfig(
            table.door(), rig.workload.trips_schema, settings.rules, new_token(), 1, settings.tries
        )
        sizes = (settings.rows, settings.clients, settings.uncounted, most)
        return Fronted(gathering, rig.workload.trips, *sizes, directory, CLIENTS)
    order = Order(
        door=table.door(),
        number=1,
        trips=rig.workload.trips,
        rows=settings.rows,
        tries=settings.tries,
        uncounted=settings.uncounted,
        seed=rig.spec.seed,
        records=directory / ".records-1",
        most=most,
    )
    return Crew([order], directory, WRITER)
