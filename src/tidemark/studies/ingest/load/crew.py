"""Control of the load's processes: started with their orders, released together, awaited, and reliably stopped.

They are writers, each with its own client of the table, or a front and one process with all of its clients.
Reconnecting writers continue when one of them, or a server, is killed: each killed writer gets a successor.
"""

from __future__ import annotations

import json
import math
import pickle
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tidemark import without_pandas
from tidemark.code import PACKAGE
from tidemark.errors import MachineError, SystemFailure
from tidemark.machine.processes import cpu_seconds
from tidemark.services.programs.process import launched, server_environment
from tidemark.services.programs.worker import READY_S, Worker
from tidemark.studies.ingest.gateway.server import HOST, GatewayConfig
from tidemark.studies.ingest.load.reconnecting_writer import ReconnectingWriterConfig, publish_factory
from tidemark.studies.ingest.load.records import NEVER, WIDTH, first_acked
from tidemark.studies.ingest.load.requests import ClientConfig
from tidemark.studies.ingest.load.writer import WorkerConfig
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    from tidemark.measure.workload import TestBed
    from tidemark.studies.ingest.parts import CutSettings, FaultSettings, MaintenanceSettings
    from tidemark.studies.ingest.settings import TailSettings, WritersSettings

# The programs, by their modules.
WRITER, RECONNECTING_WRITER = "tidemark.studies.ingest.load.writer", "tidemark.studies.ingest.load.reconnecting_writer"
FRONT, CLIENTS = "tidemark.studies.ingest.gateway.server", "tidemark.studies.ingest.load.requests"
DRAIN_S = 60.0  # after the window's end, for operations in flight
LATE_COMMIT = f"a commit did not return within {DRAIN_S:.0f} s of the window's end"
LATE_REQUEST = f"a request was not answered within {DRAIN_S:.0f} s of the window's end"
HEAD_START_NS = 50_000_000  # from the start command to the common start
LOOK_S = 0.2
MOST_A_SECOND = 10_000  # attempts of a reconnecting writer that its records have room for
FACTORY = ".client-factory"


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
            launched([sys.executable, "-m", without_pandas.NAME, module]),
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


class Undisturbed:
    """Base of the pools whose processes are not killed, and whose `write` can be ended early."""

    _cancelled = False

    def ended_seconds(self) -> float:
        return 0.0

    def cancel(self) -> None:
        """Make `write` end; called from another thread."""
        self._cancelled = True

    def _done(self, program: Program, deadline: float, late: str) -> str | None:
        """Return the report of a `program` that is done, or None if cancelled; SystemFailure(late) at the deadline."""
        while (words := program.hear("done", time.monotonic() + LOOK_S)) is None:
            if self._cancelled:
                return None
            if time.monotonic() > deadline:
                raise SystemFailure(late)
        return words


class WorkerPool(Undisturbed, Workers):
    """Undisturbed writers, one for each order."""

    def __init__(self, orders: Sequence[WorkerConfig], folder: Path, program: str = WRITER) -> None:
        """Set up the writers; `program` is the module that each of them runs."""
        super().__init__()
        self._orders, self._folder, self._program = orders, folder, program

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
        deadline, lines = time.monotonic() + seconds + DRAIN_S, []
        for member in self._members:
            words = self._done(member, deadline, LATE_COMMIT)
            if words is None:
                return None
            lines += json.loads(words)
        self.said = tuple(dict.fromkeys(lines))
        return start


class GatewayPool(Undisturbed):
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
        words = self._done(clients, time.monotonic() + seconds + DRAIN_S, LATE_REQUEST)
        if words is None:
            return None
        self._drain(words)
        return start

    def _drain(self, words: str) -> None:
        """End the front, once the clients have ended; `words` are the clients' errors as JSON."""
        front = self._programs[0]
        front.process.terminate()
        self.told = json.loads(front.heard("done", late=f"the front did not end within {READY_S:.0f} s"))
        self.said = tuple(dict.fromkeys((*self.told["said"], *json.loads(words))))

    def records(self) -> list[NDArray[np.int64]]:
        """Return the records of each client, by client number."""
        return [self._noted(number) for number in range(1, len(self._records) + 1)]

    def _noted(self, number: int) -> NDArray[np.int64]:
        return noted(self._records[number - 1], self._most, f"client {number}")


class ReconnectingWriters(Workers):
    """Writers, initially `count` of them, numbered from 1."""

    def __init__(self, order: Callable[[int], ReconnectingWriterConfig], count: int, folder: Path) -> None:
        """Create the group; `order` returns the order for a writer's number, and each number is used once."""
        super().__init__()
        self._order, self._count, self._folder = order, count, folder
        self._killed: set[int] = set()
        self._ended_seconds = 0.0

    def _start(self) -> None:
        for _ in range(self._count):
            self._join()

    def _join(self) -> Writer:
        self._members.append(Writer(self._order(len(self._members) + 1), self._folder, RECONNECTING_WRITER))
        return self._members[-1]

    @property
    def _living(self) -> list[Writer]:
        return [member for member in self._members if member.order.number not in self._killed]

    @property
    def numbers(self) -> list[int]:
        """Numbers of the writers that were not killed."""
        return [member.order.number for member in self._living]

    def ended_seconds(self) -> float:
        return self._ended_seconds

    def go(self) -> int:
        """Start all writers; return the time (ns) before the first may have begun."""
        start = time.perf_counter_ns()
        for member in self._members:
            member.tell("go")
        return start

    def kill(self, number: int) -> int:
        """Kill the writer with this `number`; return the time (ns) just before."""
        member = self._members[number - 1]
        self._ended_seconds += cpu_seconds(member.pid)
        self._killed.add(number)
        moment = time.perf_counter_ns()
        member.process.kill()
        member.process.wait()
        return moment

    def succeed(self) -> tuple[int, int]:
        """Start a writer in place of a killed one and let it write; return its number and when it was ready (ns)."""
        member = self._join()
        member.heard("ready")
        ready_ns = time.perf_counter_ns()
        member.tell("go")
        return member.order.number, ready_ns

    def acked_since(self, number: int, moment_ns: int) -> int | None:
        """Return when (ns) the first commit begun at `moment_ns` or later was acknowledged, or None if none was yet."""
        return first_acked(self._members[number - 1].records(), moment_ns)

    def end(self) -> int:
        """Make all writers finish their batch and begin no other; return the time (ns) of that request."""
        moment = time.perf_counter_ns()
        for member in self._living:
            member.tell("end")
        deadline, lines = time.monotonic() + DRAIN_S, []
        for member in self._living:
            lines += json.loads(member.heard("done", deadline, LATE_COMMIT))
        self.said = tuple(dict.fromkeys(lines))
        return moment


def worker_config[Config: WorkerConfig](
    kind: Callable[..., Config],
    test_bed: TestBed,
    table: TableSystem,
    settings: WritersSettings | TailSettings | MaintenanceSettings | FaultSettings | CutSettings,
    number: int,
    folder: Path,
    most: int,
    **own: object,
) -> Config:
    """Return the order, of the class `kind` with the fields `own`, for writer `number` (from 1) of `table`.

    Its records in `folder` have room for `most` attempts.
    """
    return kind(
        client_factory=table.client_factory(),
        number=number,
        trips=test_bed.workload.trips,
        rows=settings.rows,
        tries=settings.tries,
        uncounted=settings.uncounted,
        seed=test_bed.spec.seed,
        records=folder / f".records-{number}",
        most=most,
        **own,
    )


def surviving(
    test_bed: TestBed,
    table: TableSystem,
    folder: Path,
    settings: FaultSettings | CutSettings,
    seconds: float,
    stack: ExitStack,
    retry: str = NEVER,
) -> ReconnectingWriters:
    """Return waiting writers of `table`, with room for records of `seconds` seconds; `stack` ends them.

    `folder` holds their records and the table's `ClientFactory`, which `show_factory` replaces.
    """
    show_factory(table, folder)

    most, place = math.ceil(seconds * MOST_A_SECOND), folder / FACTORY

    def order(number: int) -> ReconnectingWriterConfig:
        kind = ReconnectingWriterConfig
        return worker_config(kind, test_bed, table, settings, number, folder, most, place=place, retry=retry)

    return stack.enter_context(ReconnectingWriters(order, settings.writers, folder))


def show_factory(table: TableSystem, folder: Path) -> None:
    """Write the table's current `ClientFactory` to `folder`, for the writers that use this folder."""
    publish_factory(table.client_factory(), folder / FACTORY)
