"""A front and its clients, two processes, controlled through the same interface as a crew of writers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tidemark.errors import SystemFailure
from tidemark.studies.ingest.gateway.server import HOST, GatewayConfig
from tidemark.studies.ingest.load.crew import DRAIN_S, HEAD_START_NS, LOOK_S, READY_S, Program, noted
from tidemark.studies.ingest.load.requests import Load

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FRONT, CLIENTS = "tidemark.studies.ingest.gateway.server", "tidemark.studies.ingest.load.requests"


class Fronted:
    """Context manager for a front and its clients: on entry the front listens and all clients are connected."""

    def __init__(
        self,
        order: GatewayConfig,
        trips: Path,
        rows: int,
        clients: int,
        uncounted: int,
        most: int,
        folder: Path,
        program: str = CLIENTS,
    ) -> None:
        """Set up both; records have room for `most` requests per client; `program` is the module of all clients."""
        self._order, self._trips, self._rows, self._folder, self._program = order, trips, rows, folder, program
        self._uncounted, self._most = uncounted, most
        self._records = tuple(folder / f".records-{number}" for number in range(1, clients + 1))
        self._programs: list[Program] = []
        self._abandoned = False
        self.said: tuple[str, ...] = ()
        self.told: dict[str, Any] = {}  # final report of the front

    def __enter__(self) -> Self:
        try:
            front = self._front()
            self._programs.append(front)
            clients = Program("clients", self._program, self._load(int(front.heard("ready"))), self._folder)
            self._programs.append(clients)
            clients.heard("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _front(self) -> Program:
        return Program("front", FRONT, self._order, self._folder)

    def _load(self, port: int) -> Load:
        """Return the load for the clients of a front that listens at `port`."""
        return Load(
            (HOST, port), self._order.token, self._trips, self._rows, self._uncounted, self._records, self._most
        )

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.end()

    @property
    def pids(self) -> list[int]:
        """Pids of the front."""
        return [each.process.pid for each in self._programs[:1]]

    @property
    def client_pids(self) -> list[int]:
        return [each.process.pid for each in self._programs[1:]]

    @property
    def asking(self) -> Program:
        """The program of all clients."""
        return self._programs[1]

    def ended_seconds(self) -> float:
        return 0.0

    def has_failed(self) -> bool:
        return any(each.process.poll() not in (None, 0) for each in self._programs)

    def warm(self) -> None:
        _, clients = self._programs
        clients.tell("write")
        clients.heard("warm")

    def write(self, seconds: float) -> int | None:
        """Run all clients for `seconds`; return the start time (ns), or None if abandoned."""
        _, clients = self._programs
        start = time.perf_counter_ns() + HEAD_START_NS
        clients.tell("go", start, start + round(seconds * 1e9))
        deadline = time.monotonic() + seconds + DRAIN_S
        while (words := clients.hear("done", time.monotonic() + LOOK_S)) is None:
            if self._abandoned:
                return None
            if time.monotonic() > deadline:
                raise SystemFailure(f"a request was not answered within {DRAIN_S:.0f} s of the window's end")
        self._drain(words)
        return start

    def _drain(self, words: str) -> None:
        """End the front, once the clients have ended; `words` are the clients' errors as JSON."""
        front = self._programs[0]
        front.process.terminate()
        ended = front.hear("done", time.monotonic() + READY_S)
        if ended is None:
            raise SystemFailure(f"the front did not end within {READY_S:.0f} s")
        self.told = json.loads(ended)
        self.said = tuple(dict.fromkeys((*self.told["said"], *json.loads(words))))

    def abandon(self) -> None:
        """Make `write` end; called from another thread."""
        self._abandoned = True

    def records(self) -> list[NDArray[np.int64]]:
        """Return the records of each client, by client number."""
        return [self._noted(number) for number in range(1, len(self._records) + 1)]

    def _noted(self, number: int) -> NDArray[np.int64]:
        return noted(self._records[number - 1], self._most, f"client {number}")
