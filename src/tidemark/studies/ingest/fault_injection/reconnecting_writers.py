"""Writers that continue when one of them, or a server, is killed: each killed writer gets a successor."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine.processes import cpu_seconds
from tidemark.studies.ingest.fault_injection.reconnecting_writer import ReconnectingWriterConfig, publish_factory
from tidemark.studies.ingest.load.crew import DRAIN_S, Workers, Writer
from tidemark.studies.ingest.load.records import NEVER, first_acked
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    from tidemark.measure.workload import TestBed
    from tidemark.studies.ingest.parts import CutSettings, FaultSettings

RECONNECTING_WRITER = "tidemark.studies.ingest.fault_injection.reconnecting_writer"
MOST_A_SECOND = 10_000  # attempts of one writer that its records have room for
FACTORY = ".client-factory"


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
        deadline, said = time.monotonic() + DRAIN_S, []
        late = f"a commit did not return within {DRAIN_S:.0f} s of the window's end"
        for member in self._living:
            said += json.loads(member.heard("done", deadline, late))
        self.said = tuple(dict.fromkeys(said))
        return moment


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

    def order(number: int) -> ReconnectingWriterConfig:
        return ReconnectingWriterConfig(
            client_factory=table.client_factory(),
            number=number,
            trips=test_bed.workload.trips,
            rows=settings.rows,
            tries=settings.tries,
            uncounted=0,
            seed=test_bed.spec.seed,
            records=folder / f".records-{number}",
            most=math.ceil(seconds * MOST_A_SECOND),
            place=folder / FACTORY,
            retry=retry,
        )

    return stack.enter_context(ReconnectingWriters(order, settings.writers, folder))


def show_factory(table: TableSystem, folder: Path) -> None:
    """Write the table's current `ClientFactory` to `folder`, for the writers that use this folder."""
    publish_factory(table.client_factory(), folder / FACTORY)
