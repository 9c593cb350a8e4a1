"""Control of the load's processes: started with their orders, released together, awaited, and reliably stopped.

They are writers, each with its own client of the table, or a front and one process with all of its clients.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tidemark.code import PACKAGE
from tidemark.errors import MachineError, SystemFailure
from tidemark.services.programs.process import launched, server_environment
from tidemark.services.programs.worker import READY_S, Worker
from tidemark.studies.ingest.gateway.server import HOST, GatewayConfig
from tidemark.studies.ingest.load.records import WIDTH
from tidemark.studies.ingest.load.requests import ClientConfig
from tidemark.studies.ingest.load.writer import WorkerConfig

WRITER = "tidemark.studies.ingest.load.writer"
DRAIN_S = 60.0  # after the window's end, for operations in flight
HEAD_START_NS = 50_000_000  # from the start command to the common start
LOOK_S = 0.2


class Writing(Protocol):
    """Interface to the writers' processes, however they are controlled."""

    said: tuple[str, ...]  # their first errors

    @property
    def pids(self) -> list[int]: ...

    def ended_seconds(self) -> float:
        """Return the CPU seconds of the processes that were ended before their work was done."""

    def has_failed(self) -> bool:
        """Return True if one of the processes ended with an error."""

    def records(self) -> list[NDArray[np.int64]]:
        """Return the records of each writer, by writer number."""


class Program(Worker):
    """Python program in a separate process, which receives an order and exchanges lines with this one."""

    def __init__(self, name: str, module: str, order: object, folder: Path) -> None:
        """Start `module`; `name` is used in messages and for the log in `folder`; `order` is pickled."""
        super().__init__(
            name,
            launched([sys.executable, "-m", module]),
            folder / f"{name.replace(' ', '-')}.log",
            env=server_environment(HOME=str(folder), PYTHONPATH=str(PACKAGE.parent)),
            cwd=folder,
        )
        self.send(pickle.dumps(order))


class Writer(Program):
    """Process of one writer, which runs the module `program`."""

    def __init__(self, order: WorkerConfig, folder: Path, program: str = WRITER) -> None:
        super().__init__(f"writer {order.number}", program, order, folder)
        self.order = order

    def records(self) -> NDArray[np.int64]:
        """Return int64[attempts, fields of a record] in time order, also for a writer that was killed."""
        return noted(self.order.records, self.order.most, self.name)


def noted(path: Path, most: int, who: str) -> NDArray[np.int64]:
    """Return the records in a file, as `Writer.records` does; raise MachineError if they filled the file."""
    count = int(np.fromfile(path, np.int64, 1)[0])
    if count >= most:
        raise MachineError(f"{who} tried more than {most:,} commits, for which there is no room")
    return np.fromfile(path, np.int64, WIDTH * count, offset=8 * WIDTH).reshape(count, WIDTH)


class Workers(ABC):
    """Context manager for writers: on entry all have opened their clients, and after exit none runs."""

    def __init__(self) -> None:
        self._members: list[Writer] = []  # by writer number
        self.said: tuple[str, ...] = ()

    @abstractmethod
    def _start(self) -> None:
        """Start the initial writers, one after the other, as `_members`."""

    def __enter__(self) -> Self:
        try:
            self._start()
            for member in self._members:
                member.heard("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.end()

    @property
    def _living(self) -> list[Writer]:
        """The writers that were not killed."""
        return self._members

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self._living]

    def has_failed(self) -> bool:
        """Return True if a writer that was not killed ended with an error."""
        return any(member.process.poll() not in (None, 0) for member in self._living)

    def records(self) -> list[NDArray[np.int64]]:
        return [member.records() for member in self._members]


class WorkerPool(Workers):
    """Undisturbed writers, one for each order."""

    def __init__(self, orders: Sequence[WorkerConfig], folder: Path, program: str = WRITER) -> None:
        """Set up the writers; `program` is the module that each of them runs."""
        super().__init__()
        self._orders, self._folder, self._program = orders, folder, program
        self._cancelled = False

    def _start(self) -> None:
        for order in self._orders:
            self._members.append(Writer(order, self._folder, self._program))

    @property
    def asking(self) -> Program:
        """The first writer."""
        return self._members[0]

    @property
    def _together(self) -> Sequence[Program]:
        """The programs that start at the same moment."""
        return self._members

    def ended_seconds(self) -> float:
        return 0.0

    def warm(self) -> None:
        """Have all writers write their uncounted warm-up batches at the same time."""
        for member in self._members:
            member.tell("write")
        for member in self._members:
            member.heard("warm")

    def write(self, seconds: float) -> int | None:
        """Run all writers for `seconds`; return the start time (ns), or None if abandoned."""
        start = time.perf_counter_ns() + HEAD_START_NS
        for program in self._together:
            program.tell("go", start, start + round(seconds * 1e9))
        deadline, said = time.monotonic() + seconds + DRAIN_S, []
        for member in self._members:
            while (words := member.hear("done", time.monotonic() + LOOK_S)) is None:
                if self._cancelled:
                    return None
                if time.monotonic() > deadline:
                    raise SystemFailure(f"a commit did not return within {DRAIN_S:.0f} s of the window's end")
            said += json.loads(words)
        self.said = tuple(dict.fromkeys(said))
        return start

    def cancel(self) -> None:
        """Make `write` end; called from another thread."""
        self._cancelled = True


FRONT, CLIENTS = "tidemark.studies.ingest.gateway.server", "tidemark.studies.ingest.load.requests"


class GatewayPool:
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
        self._cancelled = False
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

    def _load(self, port: int) -> ClientConfig:
        """Return the load for the clients of a front that listens at `port`."""
        return ClientConfig(
            (HOST, port), self._order.token, self._trips, self._rows, self._uncounted, self._records, self._most
        )

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.end()

    @property
    def pids(self) -> list[int]:
        """Pids of the front."""
        return [each.pid for each in self._programs[:1]]

    @property
    def client_pids(self) -> list[int]:
        return [each.pid for each in self._programs[1:]]

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
            if self._cancelled:
                return None
            if time.monotonic() > deadline:
                raise SystemFailure(f"a request was not answered within {DRAIN_S:.0f} s of the window's end")
        self._drain(words)
        return start

    def _drain(self, words: str) -> None:
        """End the front, once the clients have ended; `words` are the clients' errors as JSON."""
        front = self._programs[0]
        front.process.terminate()
        self.told = json.loads(front.heard("done", late=f"the front did not end within {READY_S:.0f} s"))
        self.said = tuple(dict.fromkeys((*self.told["said"], *json.loads(words))))

    def cancel(self) -> None:
        """Make `write` end; called from another thread."""
        self._cancelled = True

    def records(self) -> list[NDArray[np.int64]]:
        """Return the records of each client, by client number."""
        return [self._noted(number) for number in range(1, len(self._records) + 1)]

    def _noted(self, number: int) -> NDArray[np.int64]:
        return noted(self._records[number - 1], self._most, f"client {number}")
