"""Measurement window of the part `group`: clients behind a front that commits their requests by a policy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tidemark.measure.workload import ProgressCallback, RunMetadata, TestBed
from tidemark.runs.serde import written
from tidemark.studies.ingest.gateway.protocol import new_token
from tidemark.studies.ingest.gateway.server import GatewayConfig
from tidemark.studies.ingest.load.crew import GatewayPool
from tidemark.studies.ingest.record import GatewayRecord
from tidemark.studies.ingest.settings import GroupSettings
from tidemark.studies.ingest.window.runner import COLD_RUN, IngestRunner, IngestWindow, fresh_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tidemark.studies.ingest.parts import FrontSettings
    from tidemark.studies.ingest.settings import TailSettings
    from tidemark.systems.tables import TableSystem

MOST_A_SECOND = 20_000  # requests of one client that its records have room for
ROWS_A_FLUSH = 1_000_000  # more than any flush has


class GroupWindow(IngestWindow):
    """Window with one row per request; `commit` is the number of the commit that holds it."""

    def take(self, records: Sequence[NDArray[np.int64]], start_ns: int) -> None:
        super().take(records, start_ns)
        self.columns["commit"], self.columns["commits"] = self.columns["commits"], self.columns["commit"]


class GroupRunner(IngestRunner[GatewayPool]):
    """Window on one table, a front, and its clients."""

    def new_window(self) -> GroupWindow:
        return GroupWindow(self._settings.rows)

    def describe(self, window: IngestWindow) -> RunMetadata:
        """Describe the window as for writers, except that the front's commits are not the clients' requests."""
        made = super().describe(window)
        reply = self._crew.told
        own = GatewayRecord(requests=self.acked, commits=reply["commits"], busy=reply["busy"])
        return replace(made, found={**made.found, **written(own)})


def gateway_config(
    test_bed: TestBed, table: TableSystem, settings: GroupSettings | TailSettings | FrontSettings, writers: int
) -> GatewayConfig:
    """Return the order for a front of `table` with `writers` table clients, and with a new token for its clients."""
    schema = test_bed.workload.trips_schema
    return GatewayConfig(table.client_factory(), schema, settings.rules, new_token(), writers, settings.tries)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[GroupRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, a front before it, and waiting clients."""
    settings = GroupSettings.of(test_bed.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("making the table")
        table = fresh_table(test_bed, directory / "table-1", stack, ROWS_A_FLUSH)
        show("starting the front and its clients")
        order = gateway_config(test_bed, table, settings, settings.writers)
        most = math.ceil(seconds * MOST_A_SECOND) + settings.uncounted
        crew = stack.enter_context(
            GatewayPool(
                order, test_bed.workload.trips, settings.rows, settings.clients, settings.uncounted, most, directory
            )
        )
        yield GroupRunner(test_bed, directory, [table], crew, name != COLD_RUN)
