"""Kills during a window: moments, victims, downtimes, and the table's contents once all writers write again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import ServiceError, SystemFailure
from tidemark.services.programs.process import tail
from tidemark.studies.ingest.fault_injection.reconnecting_writers import ReconnectingWriters
from tidemark.systems.tables import TableSystem

WRITER = "writer"
FIRST_SHARE, LAST_SHARE = 0.1, 0.5  # range of a kill's moment, as shares of its part of the window
BACK_S = 60.0  # longest wait until all write again
LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Look:
    """Contents of the table as read by another client during writes: int64 ids, or None and the reason in `said`."""

    ids: NDArray[np.int64] | None
    said: str = ""

    @classmethod
    def at(cls, table: TableSystem) -> Look:
        try:
            return cls(table.ids().drop_null().to_numpy())
        except Exception as error:
            return cls(None, f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill. Moments are nanoseconds of the clock that all processes share."""

    victim: str
    title: str
    killed_ns: int
    started_ns: int  # the server answers, or the new writer's client is open
    back_ns: int  # each affected writer has had a commit acknowledged that began after the kill
    look: Look  # taken after `back_ns`


class Victim(Protocol):
    """Server, or another process, that is killed entirely and restarted on the data that it left."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def log_path(self) -> Path: ...

    def kill(self) -> None: ...

    def start(self) -> None: ...


class Witnesses(Protocol):
    """Processes that write, or have a front write for them, and record the effect of a kill."""

    @property
    def numbers(self) -> Sequence[int]: ...

    def has_failed(self) -> bool: ...

    def acked_since(self, number: int, moment_ns: int) -> int | None: ...


class Faults:
    """Schedule that kills the victims in turn, `kills` times each, and waits after each kill until all write again."""

    def __init__(
        self,
        crew: Witnesses,
        table: TableSystem,
        others: Sequence[Victim],
        reconnect: Callable[[], None],
        kills: int,
        seed: str,
        *,
        of_writers: bool = True,
    ) -> None:
        """Plan the kills. `reconnect` gives all clients the addresses of `others` after one of them was restarted.

        With `of_writers`, one of the crew, which must then be ReconnectingWriters, is a victim as well.
        """
        self._crew, self._table, self._reconnect = crew, table, reconnect
        self._rng = random.Random(seed)
        victims = (None, *others) if of_writers else others
        self._turns = [victim for _ in range(kills) for victim in victims]
        self._cancelled = threading.Event()
        self.kills: list[Kill] = []
        self.undisturbed = Look(None, "not looked at")  # before the first kill
        self.undisturbed_ns = 0  # that look must contain all that was acknowledged until this moment

    def cancel(self) -> None:
        """Make `play` end; called from another thread."""
        self._cancelled.set()

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def play(self, start_ns: int, seconds: float) -> None:
        """Perform all kills, each in its part of `seconds`, or later if the previous one took longer.

        The parts begin once all write; the kills end early if the table becomes unreadable. Raise ServiceError or
        SystemFailure if a process is not back after BACK_S.
        """
        part = seconds / len(self._turns)
        start_ns = self._until_written(self._crew.numbers, start_ns, "the window was opened")
        self._wait_until(start_ns + round(FIRST_SHARE * part * 1e9))
        self.undisturbed_ns = time.perf_counter_ns()
        self.undisturbed = Look.at(self._table)
        for place, victim in enumerate(self._turns):
            share = self._rng.uniform(FIRST_SHARE, LAST_SHARE)
            self._wait_until(start_ns + round((place + share) * part * 1e9))
            if self.is_cancelled:
                return
            self.kills.append(self._kill_other(victim) if victim else self._kill_writer())
            if self.kills[-1].look.ids is None:  # the table is unreadable: later kills would show nothing
                break
        self._wait_until(start_ns + round(seconds * 1e9))

    def _wait_until(self, moment_ns: int) -> None:
        self._cancelled.wait(max(0.0, (moment_ns - time.perf_counter_ns()) / 1e9))

    def _kill_writer(self) -> Kill:
        assert isinstance(self._crew, ReconnectingWriters)
        killed_ns = self._crew.kill(self._rng.choice(self._crew.numbers))
        successor, started_ns = self._crew.succeed()
        back_ns = self._until_written([successor], killed_ns, "a writer was killed")
        return Kill(WRITER, "a writer", killed_ns, started_ns, back_ns, Look.at(self._table))

    def _kill_other(self, victim: Victim) -> Kill:
        killed_ns = time.perf_counter_ns()
        victim.kill()
        victim.start()
        started_ns = time.perf_counter_ns()
        self._reconnect()
        try:
            back_ns = self._until_written(self._crew.numbers, killed_ns, f"{victim.title} was killed")
        except SystemFailure as error:
            raise ServiceError(f"{error}. Its log, {victim.log_path}, ends:\n{tail(victim.log_path)}") from error
        return Kill(victim.name, victim.title, killed_ns, started_ns, back_ns, Look.at(self._table))

    def _until_written(self, numbers: Sequence[int], since_ns: int, happened: str) -> int:
        """Return the time (ns) by which each writer had a commit acknowledged that it began after `since_ns`."""
        deadline, moments = time.monotonic() + BACK_S, dict.fromkeys(numbers, 0)
        while missing := [number for number, moment in moments.items() if not moment]:
            for number in missing:
                moments[number] = self._crew.acked_since(number, since_ns) or 0
            if self.is_cancelled or self._crew.has_failed():
                raise SystemFailure(f"{happened}, and something else ended")
            if time.monotonic() > deadline:
                who = ", ".join(map(str, missing))
                raise SystemFailure(f"{happened}, and {BACK_S:g} s later no commit is acknowledged of: {who}")
            time.sleep(LOOK_S)
        return max(moments.values())
