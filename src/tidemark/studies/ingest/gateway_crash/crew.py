"""A front that is restarted after each kill, and its clients, which reconnect to it."""

from __future__ import annotations

import time
from pathlib import Path

from tidemark.machine.processes import cpu_seconds
from tidemark.studies.ingest.gateway.server import GatewayConfig
from tidemark.studies.ingest.gateway_crash.clients import ReconnectingClientConfig, leave_port
from tidemark.studies.ingest.load.crew import DRAIN_S, GatewayPool
from tidemark.studies.ingest.load.records import first_acked

CLIENTS = "tidemark.studies.ingest.gateway_crash.clients"
PLACE = ".front"


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
        late = f"a request was not answered within {DRAIN_S:.0f} s of the window's end"
        self._drain(self.asking.heard("done", time.monotonic() + DRAIN_S, late))
        return moment
