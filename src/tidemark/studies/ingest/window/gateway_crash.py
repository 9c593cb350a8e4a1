"""Measurement window with kills of a front: one table, the front, which is restarted, and clients that reconnect."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemark.machine.processes import cpu_seconds
from tidemark.measure.workload import ProgressCallback, RunMetadata, TestBed
from tidemark.runs.serde import written
from tidemark.studies.ingest.gateway.server import GatewayConfig
from tidemark.studies.ingest.load.crew import DRAIN_S, LATE_REQUEST, GatewayPool
from tidemark.studies.ingest.load.reconnecting_clients import ReconnectingClientConfig, leave_port
from tidemark.studies.ingest.load.records import ACKED, NUMBERS, by_field, first_acked
from tidemark.studies.ingest.parts import FrontSettings
from tidemark.studies.ingest.record import RequestRecord
from tidemark.studies.ingest.window.fault_injection import BACK_S, Faults, KilledRunner
from tidemark.studies.ingest.window.group_commit import ROWS_A_FLUSH, GroupWindow, gateway_config
from tidemark.studies.ingest.window.runner import IngestWindow, fresh_table

CLIENTS = "tidemark.studies.ingest.load.reconnecting_clients"
PLACE = ".front"
MOST_A_SECOND = 2_000  # requests of one client that its records have room for
WRITERS = 1  # table clients of the front: one buffer is committed at a time


class RestartingGateway(GatewayPool):
    """Context manager like `GatewayPool`; its front is the victim of kills, its clients record the effect of a kill."""

    name = "front"
    title = "the buffer's process"

    def __init__(self, order: GatewayConfig, trips: Path, rows: int, clients: int, most: int, folder: Path) -> None:
        super().__init__(order, trips, rows, clients, 0, most, folder, CLIENTS)
        self.numbers = list(range(1, clients + 1))
        self._place = folder / PLACE
        self._ended_seconds = 0.0
        self._is_killed = False  # and not restarted yet

    def _load(self, port: int) -> ReconnectingClientConfig:
        leave_port(port, self._place)
        load = super()._load(port)
        return ReconnectingClientConfig(
            load.address, load.token, load.trips, load.rows, load.uncounted, load.records, load.most, self._place
        )

    @property
    def log_path(self) -> Path:
        """The front's log; a restarted front appends to it."""
        return self._programs[0].log

    def ended_seconds(self) -> float:
        return self._ended_seconds

    def has_failed(self) -> bool:
        """Return True if the clients, or a front that was not killed, ended with an error."""
        looked_at = self._programs[1:] if self._is_killed else self._programs
        return any(each.process.poll() not in (None, 0) for each in looked_at)

    def go(self) -> int:
        """Start all clients; return the time (ns) before the first may have begun."""
        start = time.perf_counter_ns()
        self.asking.tell("go")
        return start

    def kill(self) -> None:
        """Kill the front at once (SIGKILL), even if requests wait in it."""
        front = self._programs[0]
        self._ended_seconds += cpu_seconds(front.pid)
        self._is_killed = True
        front.end()

    def start(self) -> None:
        """Start another front, and publish its port to the clients."""
        self._programs[0] = front = self._front()
        leave_port(int(front.heard("ready")), self._place)
        self._is_killed = False

    def acked_since(self, number: int, moment_ns: int) -> int | None:
        """Return when (ns) the first request sent at `moment_ns` or later was acknowledged, or None if none was yet."""
        return first_acked(self._noted(number), moment_ns)

    def end(self) -> int:
        """Stop the clients and have the front commit what it holds; return the time (ns) of the request to stop."""
        moment = time.perf_counter_ns()
        self.asking.tell("end")
        self._drain(self.asking.heard("done", time.monotonic() + DRAIN_S, LATE_REQUEST))
        return moment


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
        columns = by_field(noted)
        acked = columns["outcome"] == NUMBERS[ACKED]
        fronts = np.searchsorted(killed_ns, columns["start_ns"][acked])
        seen.update(zip(fronts.tolist(), columns["commits"][acked].tolist(), strict=True))
    return len(seen)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[GatewayCrashRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, a front before it, and waiting clients."""
    settings = FrontSettings.of(test_bed.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
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
