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
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tidemark import without_pandas
from tidemark.code import PACKAGE
from tidemark.errors import MachineError, SystemFailure
from tidemark.machine.processes import cpu_seconds
from tidemark.machine.sampler import Group
from tidemark.services.programs.process import launched, server_environment
from tidemark.services.programs.worker import READY_S, Worker
from tidemark.studies.ingest.gateway.protocol import new_token
from tidemark.studies.ingest.gateway.server import HOST, GatewayConfig
from tidemark.studies.ingest.load.records import ACKED, NEVER, NUMBERS, WIDTH, by_field
from tidemark.studies.ingest.load.requests import ClientConfig
from tidemark.studies.ingest.load.writer import WorkerConfig, publish
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    from tidemark.measure.workload import TestBed
    from tidemark.studies.ingest.parts import CutSettings, FaultSettings, FrontSettings, MaintenanceSettings
    from tidemark.studies.ingest.settings import GroupSettings, PacedSettings, TailSettings, WritersSettings

# The programs, by their modules.
WRITER, REQUESTS = "tidemark.studies.ingest.load.writer", "tidemark.studies.ingest.load.requests"
FRONT = "tidemark.studies.ingest.gateway.server"
WRITERS, CLIENTS = "writers", "clients"  # process groups: writers of the table, and clients of a front
DRAIN_S = 60.0  # after the window's end, for operations in flight
HEAD_START_NS = 50_000_000  # from the start command to the common start
LOOK_S = 0.2
MOST_A_SECOND = 10_000  # attempts of a reconnecting writer that its records have room for
FACTORY, PORT = ".client-factory", ".front"  # files with what may change: for writers, and for clients of a front


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
    """Process of one writer."""

    def __init__(self, order: WorkerConfig, folder: Path) -> None:
        super().__init__(f"writer {order.number}", WRITER, order, folder)
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


class Pool(ABC):
    """Context manager for the processes of a load: on entry all are ready, and after exit none runs."""

    late = f"a commit did not return within {DRAIN_S:.0f} s of the window's end"

    def __init__(self, folder: Path) -> None:
        """Set up the pool; the processes leave their records and logs in `folder`."""
        self._folder = folder
        self._programs: list[Program] = []
        self._killed: list[Program] = []
        self._killed_seconds = 0.0  # their CPU time
        self._records: list[tuple[Path, int, str]] = []  # arguments of `noted`, by number of the writer or client
        self._cancelled = False
        self.said: tuple[str, ...] = ()  # first errors of the processes

    @abstractmethod
    def _start(self) -> None:
        """Start the initial processes, and wait until they are ready."""

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for program in reversed(self._programs):
            program.end()

    @property
    @abstractmethod
    def pids(self) -> list[int]:
        """Pids of the processes that write to the table."""

    @property
    @abstractmethod
    def asked(self) -> Sequence[Program]:
        """The programs that send requests, each a writer, or one with all clients."""

    @property
    @abstractmethod
    def numbers(self) -> list[int]:
        """Numbers, from 1, of the writers that were not killed, or of all clients."""

    @property
    def _together(self) -> Sequence[Program]:
        """The programs that start at the same moment."""
        return self.asked

    def groups(self) -> dict[str, Group]:
        """Return the groups of processes by name."""
        return {WRITERS: Group(lambda: self.pids, ended=self.ended_seconds)}

    def ended_seconds(self) -> float:
        """Return the CPU seconds of the processes that were ended before their work was done."""
        return self._killed_seconds

    def has_failed(self) -> bool:
        """Return True if a process that was not killed ended with an error."""
        return any(each.process.poll() not in (None, 0) for each in self._programs if each not in self._killed)

    def records(self) -> list[NDArray[np.int64]]:
        """Return the records of each writer or client, by number, as `Writer.records` does."""
        return [noted(*each) for each in self._records]

    def acked_since(self, number: int, moment_ns: int) -> int | None:
        """Return when (ns) the first request begun at `moment_ns` or later was acknowledged, or None if none was.

        It is of the writer or client with this `number`, from 1.
        """
        columns = by_field(noted(*self._records[number - 1]))
        chosen = (columns["start_ns"] >= moment_ns) & (columns["outcome"] == NUMBERS[ACKED])
        ends = (columns["start_ns"] + columns["elapsed_ns"])[chosen]
        return int(ends.min()) if len(ends) else None

    def warm(self) -> None:
        """Have all send their uncounted warm-up requests at the same time."""
        for program in self.asked:
            program.tell("write")
        for program in self.asked:
            program.heard("warm")

    def write(self, seconds: float) -> int | None:
        """Run all for `seconds`; return the start time (ns), or None if abandoned."""
        start = time.perf_counter_ns() + HEAD_START_NS
        for program in self._together:
            program.tell("go", start, start + round(seconds * 1e9))
        deadline, lines = time.monotonic() + seconds + DRAIN_S, []
        for program in self.asked:
            while (words := program.hear("done", time.monotonic() + LOOK_S)) is None:
                if self._cancelled:
                    return None
                if time.monotonic() > deadline:
                    raise SystemFailure(self.late)
            lines += json.loads(words)
        self._finish(lines)
        return start

    def cancel(self) -> None:
        """Make `write` end; called from another thread."""
        self._cancelled = True

    def go(self) -> int:
        """Start all, to run until `end`; return the time (ns) before the first may have begun."""
        start = time.perf_counter_ns()
        for program in self.asked:
            program.tell("go")
        return start

    def end(self) -> int:
        """Have all finish what they began and begin nothing else; return the time (ns) of that request."""
        moment = time.perf_counter_ns()
        for program in self.asked:
            program.tell("end")
        deadline, lines = time.monotonic() + DRAIN_S, []
        for program in self.asked:
            lines += json.loads(program.heard("done", deadline, self.late))
        self._finish(lines)
        return moment

    def _finish(self, lines: list[str]) -> None:
        """Keep the first errors of the programs that have ended."""
        self.said = tuple(dict.fromkeys(lines))

    def _kill(self, program: Program) -> int:
        """Kill a program at once (SIGKILL); return the time (ns) just before."""
        self._killed_seconds += cpu_seconds(program.pid)
        self._killed.append(program)
        moment = time.perf_counter_ns()
        program.end()
        return moment


class WorkerPool(Pool):
    """Writers, initially `count` of them, numbered from 1; a killed one can have a successor."""

    def __init__(self, order: Callable[[int], WorkerConfig], count: int, folder: Path) -> None:
        """Set up the writers; `order` returns the order for a writer's number, and each number is used once."""
        super().__init__(folder)
        self._order, self._count = order, count
        self._members: list[Writer] = []

    def _start(self) -> None:
        for member in [self._join() for _ in range(self._count)]:
            member.heard("ready")

    def _join(self) -> Writer:
        member = Writer(self._order(len(self._members) + 1), self._folder)
        self._members.append(member)
        self._programs.append(member)
        self._records.append((member.order.records, member.order.most, member.name))
        return member

    @property
    def asked(self) -> Sequence[Writer]:
        """The writers that were not killed."""
        return [member for member in self._members if member not in self._killed]

    @property
    def pids(self) -> list[int]:
        return [member.pid for member in self.asked]

    @property
    def numbers(self) -> list[int]:
        return [member.order.number for member in self.asked]

    def kill(self, number: int) -> int:
        """Kill the writer with this `number`; return the time (ns) just before."""
        return self._kill(self._members[number - 1])

    def succeed(self) -> tuple[int, int]:
        """Start a writer in place of a killed one and let it write; return its number and when it was ready (ns)."""
        member = self._join()
        member.heard("ready")
        ready_ns = time.perf_counter_ns()
        member.tell("go")
        return member.order.number, ready_ns


class GatewayPool(Pool):
    """A front and its clients: on entry the front listens and all clients are connected.

    If the clients reconnect, the front may be killed and started again.
    """

    name = "front"
    title = "the buffer's process"
    late = f"a request was not answered within {DRAIN_S:.0f} s of the window's end"

    def __init__(
        self,
        order: GatewayConfig,
        trips: Path,
        rows: int,
        clients: int,
        uncounted: int,
        most: int,
        folder: Path,
        *,
        reconnects: bool = False,
    ) -> None:
        """Set up both; records have room for `most` requests per client."""
        super().__init__(folder)
        self._order, self._trips, self._rows = order, trips, rows
        self._uncounted, self._most, self._reconnects = uncounted, most, reconnects
        self._records = [(folder / f".records-{each}", most, f"client {each}") for each in range(1, clients + 1)]
        self.told: dict[str, Any] = {}  # final report of the front

    def _start(self) -> None:
        self._programs.append(self._front())
        sizes = (self._rows, self._uncounted, tuple(path for path, *_ in self._records), self._most)
        place = self._folder / PORT if self._reconnects else None
        load = ClientConfig((HOST, self._port()), self._order.token, self._trips, *sizes, place)
        self._programs.append(clients := Program("clients", REQUESTS, load, self._folder))
        clients.heard("ready")

    def _front(self) -> Program:
        return Program("front", FRONT, self._order, self._folder)

    def _port(self) -> int:
        """Return the port of the front once it listens, and publish it to clients that reconnect."""
        port = int(self._programs[0].heard("ready"))
        publish(port, self._folder / PORT)
        return port

    @property
    def log_path(self) -> Path:
        """The front's log; a restarted front appends to it."""
        return self._programs[0].log

    def kill(self) -> None:
        """Kill the front, even if requests wait in it."""
        self._kill(self._programs[0])

    def start(self) -> None:
        """Start another front in place of a killed one."""
        self._programs[0] = self._front()
        self._port()

    @property
    def pids(self) -> list[int]:
        return [each.pid for each in self._programs[:1]]

    @property
    def asked(self) -> Sequence[Program]:
        return self._programs[1:]

    @property
    def numbers(self) -> list[int]:
        return list(range(1, len(self._records) + 1))

    def groups(self) -> dict[str, Group]:
        return {**super().groups(), CLIENTS: Group(lambda: [each.pid for each in self.asked])}

    def _finish(self, lines: list[str]) -> None:
        """End the front, once the clients have ended."""
        front = self._programs[0]
        front.process.terminate()
        self.told = json.loads(front.heard("done", late=f"the front did not end within {READY_S:.0f} s"))
        super()._finish([*self.told["said"], *lines])


def writer_orders(
    test_bed: TestBed,
    tables: Sequence[TableSystem],
    settings: WritersSettings | PacedSettings | TailSettings | MaintenanceSettings | FaultSettings | CutSettings,
    folder: Path,
    most: int,
    place: Path | None = None,
    retry: str = NEVER,
) -> Callable[[int], WorkerConfig]:
    """Return a function from a writer's number, from 1, to its order; the writers take the tables in turn.

    Their records in `folder` have room for `most` attempts. `place` and `retry` are for those that reconnect.
    """

    def order(number: int) -> WorkerConfig:
        return WorkerConfig(
            client_factory=tables[(number - 1) % len(tables)].client_factory(),
            number=number,
            trips=test_bed.workload.trips,
            rows=settings.rows,
            tries=settings.tries,
            uncounted=settings.uncounted,
            seed=test_bed.spec.seed,
            records=folder / f".records-{number}",
            most=most,
            place=place,
            retry=retry,
        )

    return order


def gateway_pool(
    test_bed: TestBed,
    table: TableSystem,
    settings: GroupSettings | TailSettings | FrontSettings,
    writers: int,
    most: int,
    folder: Path,
    *,
    reconnects: bool = False,
) -> GatewayPool:
    """Return a front of `table` with `writers` table clients, and its clients, which have a new token for it."""
    schema, trips = test_bed.workload.trips_schema, test_bed.workload.trips
    order = GatewayConfig(table.client_factory(), schema, settings.rules, new_token(), writers, settings.tries)
    sizes = (settings.rows, settings.clients, settings.uncounted, most)
    return GatewayPool(order, trips, *sizes, folder, reconnects=reconnects)


def surviving(
    test_bed: TestBed,
    table: TableSystem,
    folder: Path,
    settings: FaultSettings | CutSettings,
    seconds: float,
    stack: ExitStack,
    retry: str = NEVER,
) -> WorkerPool:
    """Return waiting writers of `table` that reconnect, with room for records of `seconds` seconds; `stack` ends them.

    `folder` holds their records, and in FACTORY the table's current `ClientFactory`.
    """
    place = folder / FACTORY
    publish(table.client_factory(), place)
    order = writer_orders(test_bed, [table], settings, folder, math.ceil(seconds * MOST_A_SECOND), place, retry)
    return stack.enter_context(WorkerPool(order, settings.writers, folder))
