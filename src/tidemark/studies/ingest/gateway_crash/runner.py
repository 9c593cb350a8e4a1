"""Measurement window with kills of a front: one table, the front, and clients that reconnect."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tidemark.measure.workload import ProgressCallback, RunMetadata, TestBed
from tidemark.paths import private_directory
from tidemark.runs.serde import written
from tidemark.studies.ingest.fault_injection.faults import BACK_S, Faults
from tidemark.studies.ingest.fault_injection.runner import KilledRunner
from tidemark.studies.ingest.gateway_crash.crew import RestartingGateway
from tidemark.studies.ingest.gateway_crash.settings import FrontSettings
from tidemark.studies.ingest.group_commit.runner import ROWS_A_FLUSH, GroupWindow, gateway_config
from tidemark.studies.ingest.load.records import FIELDS
from tidemark.studies.ingest.outcomes import ACKED, NUMBERS
from tidemark.studies.ingest.record import RequestRecord
from tidemark.studies.ingest.window.runner import fresh_table
from tidemark.studies.ingest.window.samples import IngestWindow

MOST_A_SECOND = 2_000  # requests of one client that its records have room for
WRITERS = 1  # table clients of the front: one buffer is committed at a time


class GatewayCrashRunner(KilledRunner):
    """Window in which the front is killed; made by `open_window`."""

    def new_window(self) -> GroupWindow:
        return GroupWindow(self._settings.rows)

    def describe(self, window: IngestWindow) -> RunMetadata:
        """Describe the window as for writers, except that the front's commits are not the clients' requests."""
        made = super().describe(window)
        commits = commits_of(self._records, [kill.killed_ns for kill in self._faults.kills])
        requests = RequestRecord(requests=made.found["commits"], commits=commits)
        return replace(made, found={**made.found, **written(requests)})


def commits_of(records: Sequence[NDArray[np.int64]], killed_ns: Sequence[int]) -> int:
    """Return the number of commits with acknowledged requests; each front, ended at `killed_ns`, numbers its own."""
    seen = set[tuple[int, int]]()
    for noted in records:
        columns = dict(zip(FIELDS, noted.T, strict=True))
        acked = columns["outcome"] == NUMBERS[ACKED]
        fronts = np.searchsorted(killed_ns, columns["start_ns"][acked])
        seen.update(zip(fronts.tolist(), columns["commits"][acked].tolist(), strict=True))
    return len(seen)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[GatewayCrashRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, a front before it, and waiting clients."""
    settings = FrontSettings.of(test_bed.spec)
    directory = private_directory(test_bed.work / name)
    with ExitStack() as stack:
        if not test_bed.spec.keep_tables:
            stack.callback(shutil.rmtree, directory, ignore_errors=True)
        show("making the table")
        table = fresh_table(test_bed, directory / "table-1", stack, ROWS_A_FLUSH)
        show("starting the front and its clients")
        order = gateway_config(test_bed, table, settings, WRITERS)
        most = math.ceil((seconds + settings.kills * BACK_S) * MOST_A_SECOND)
        trips = test_bed.workload.trips
        crew = stack.enter_context(RestartingGateway(order, trips, settings.rows, settings.clients, most, directory))
        seed = f"{test_bed.spec.seed} {test_bed.spec.repeat} {test_bed.spec.name} kills of the front"
        faults = Faults(crew, table, [crew], lambda: None, settings.kills, seed, of_writers=False)
        yield GatewayCrashRunner(test_bed, directory, table, crew, faults)
