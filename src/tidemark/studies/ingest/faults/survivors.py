"""Writers that go on when one of them, or a server, is killed: each that is killed gets a successor."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import SystemFailure
from tidemark.machine.processes import cpu_seconds
from tidemark.studies.ingest.faults.survivor import LastingOrder
from tidemark.studies.ingest.load.crew import DRAIN_S, Member
from tidemark.studies.ingest.load.records import FIELDS
from tidemark.studies.ingest.outcomes import ACKED, NUMBERS

SURVIVOR = "tidemark.studies.ingest.faults.survivor"


class Survivors:
    """A context manager: `count` writers, numbered from 1, have opened their clients when it is entered."""

    def __init__(self, order: Callable[[int], LastingOrder], count: int, folder: Path) -> None:
        """`order` gives what the writer of a number is told; each number is used once."""
        self._order, self._count, self._folder = order, count, folder
        self._members: list[Member] = []  # those that were killed among them, in the order of their numbers
        self._killed: set[int] = set()
        self._ended_seconds = 0.0
        self.said: tuple[str, ...] = ()

    def __enter__(self) -> Survivors:
        try:
            for _ in range(self._count):
                self._join()
            for member in self._members:
                member.heard("ready")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.end()

    def _join(self) -> Member:
        self._members.append(Member(self._order(len(self._members) + 1), self._folder, SURVIVOR))
        return self._members[-1]

    @property
    def _living(self) -> list[Member]:
        return [member for member in self._members if member.order.number not in self._killed]

    @property
    def numbers(self) -> list[int]:
        """Of those that live."""
        return [member.order.number for member in self._living]

    @property
    def pids(self) -> list[int]:
        return [member.process.pid for member in self._living]

    def ended_seconds(self) -> float:
        return self._ended_seconds

    def has_failed(self) -> bool:
        """Whether one that nobody killed ended otherwise than at the end of its work."""
        return any(member.process.poll() not in (None, 0) for member in self._living)

    def go(self) -> int:
        """Let all of them write; the moment before the first may have begun (ns)."""
        start = time.perf_counter_ns()
        for member in self._members:
            member.tell("go")
        return start

    def kill(self, number: int) -> int:
        """Kill the writer of this `number`; the moment before (ns)."""
        member = self._members[number - 1]
        self._ended_seconds += cpu_seconds(member.process.pid)
        self._killed.add(number)
        moment = time.perf_counter_ns()
        member.process.kill()
        member.process.wait()
        return moment

    def succeed(self) -> tuple[int, int]:
        """Start a writer in place of one that was killed, and let it write; its number, and when it was ready (ns)."""
        member = self._join()
        member.heard("ready")
        ready_ns = time.perf_counter_ns()
        member.tell("go")
        return member.order.number, ready_ns

    def acked_since(self, number: int, moment_ns: int) -> int | None:
        """When the first commit was acknowledged that the writer began at `moment_ns` or later; None before that."""
        columns = dict(zip(FIELDS, self._members[number - 1].records().T, strict=True))
        chosen = (columns["start_ns"] >= moment_ns) & (columns["outcome"] == NUMBERS[ACKED])
        ends = (columns["start_ns"] + columns["elapsed_ns"])[chosen]
        return int(ends[0]) if len(ends) else None

    def end(self) -> int:
        """Have all of them end what they are at, and begin nothing more; when they were told so (ns)."""
        moment = time.perf_counter_ns()
        for member in self._living:
            member.tell("end")
        deadline, said = time.monotonic() + DRAIN_S, []
        for member in self._living:
            words = member.hear("done", deadline)
            if words is None:
                raise SystemFailure(f"a commit did not return within {DRAIN_S:.0f} s of the window's end")
            said += json.loads(words)
        self.said = tuple(dict.fromkeys(said))
        return moment

    def records(self) -> list[NDArray[np.int64]]:
        return [member.records() for member in self._members]
