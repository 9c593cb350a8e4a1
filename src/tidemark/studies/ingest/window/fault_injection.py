"""Measurement window with kills: one table, writers that outlive their servers, the kills of both, and their cost.

Or a front, which is killed and restarted, and clients that reconnect.

A batch counts for one kill only: a loss that an earlier look already found is not counted again.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import ServiceError, SystemFailure
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed
from tidemark.services.base import Service
from tidemark.services.programs.process import tail
from tidemark.studies.ingest import record
from tidemark.studies.ingest.load.crew import FACTORY, GatewayPool, Pool, WorkerPool, gateway_pool, surviving
from tidemark.studies.ingest.load.records import ACKED, NUMBERS, SENT, UNKNOWN, by_field
from tidemark.studies.ingest.load.writer import publish
from tidemark.studies.ingest.parts import FaultSettings, FrontSettings, settings_of
from tidemark.studies.ingest.window import runner
from tidemark.studies.ingest.window.unsynced_data import commits_at_risk
from tidemark.systems.tables import TableSystem

WRITER = "writer"
FIRST_SHARE, LAST_SHARE = 0.1, 0.5  # range of a kill's moment, as shares of its part of the window
BACK_S = 60.0  # longest wait until all write again
LOOK_S = 0.02
Ints = NDArray[np.int64]
REQUESTS_A_SECOND = 2_000  # requests of one client that its records have room for
FRONT_WRITERS = 1  # table clients of the front: one buffer is committed at a time
NOT_ACKED_NS = np.iinfo(np.int64).max


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
    killed_ns: int  # right before the signal
    dead_ns: int  # all of its processes have ended: nothing is acknowledged until it is started
    started_ns: int  # the server answers, or the new writer's client is open
    back_ns: int  # each affected writer has had a commit acknowledged that began after the kill
    look: Look  # taken after `back_ns`


# A server, or a front, that is killed entirely and restarted on the data that it left.
type Victim = Service | GatewayPool


class Faults:
    """Schedule that kills the victims in turn, `kills` times each, and waits after each kill until all write again."""

    def __init__(
        self,
        crew: Pool,
        table: TableSystem,
        others: Sequence[Victim],
        reconnect: Callable[[], None],
        kills: int,
        seed: str,
        *,
        of_writers: bool = True,
    ) -> None:
        """Plan the kills. `reconnect` gives all clients the addresses of `others` after one of them was restarted.

        With `of_writers`, one of the crew, which must then be a WorkerPool, is a victim as well.
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
        assert isinstance(self._crew, WorkerPool)
        killed_ns = self._crew.kill(self._rng.choice(self._crew.numbers))
        successor, started_ns = self._crew.succeed()
        back_ns = self._until_written([successor], killed_ns, "a writer was killed")
        return Kill(WRITER, "a writer", killed_ns, killed_ns, started_ns, back_ns, Look.at(self._table))

    def _kill_other(self, victim: Victim) -> Kill:
        killed_ns = time.perf_counter_ns()
        victim.kill()
        dead_ns = time.perf_counter_ns()
        victim.start()
        started_ns = time.perf_counter_ns()
        self._reconnect()
        try:
            back_ns = self._until_written(self._crew.numbers, dead_ns, f"{victim.title} was killed")
        except SystemFailure as error:
            raise ServiceError(f"{error}. Its log, {victim.log_path}, ends:\n{tail(victim.log_path)}") from error
        return Kill(victim.name, victim.title, killed_ns, dead_ns, started_ns, back_ns, Look.at(self._table))

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


@dataclass(slots=True)
class _Writer:
    """One writer's batches by sequence number, and the findings on them so far."""

    attempts: Mapping[str, Ints]
    acked_ns: Ints  # moment of the acknowledgement, or NOT_ACKED_NS
    missed: NDArray[np.bool_]
    doubled: Ints  # rows
    partial: NDArray[np.bool_]

    @classmethod
    def of(cls, records: Ints) -> _Writer:
        columns = by_field(records)
        count = int(columns["sequence"].max(initial=-1)) + 1
        acked_ns, chosen = np.full(count, NOT_ACKED_NS), columns["outcome"] == NUMBERS[ACKED]
        acked_ns[columns["sequence"][chosen]] = (columns["start_ns"] + columns["elapsed_ns"])[chosen]
        nothing = np.zeros(count, bool)
        return cls(columns, acked_ns, nothing, np.zeros(count, np.int64), nothing.copy())

    def look(self, counts: Ints, until_ns: int) -> tuple[int, int, int]:
        """Return newly lost rows of those acknowledged until `until_ns`, newly doubled rows, newly partial batches.

        `counts` is int64[batches, rows]: how often each id is present.
        """
        there = (counts > 0).sum(axis=1)
        gone = (self.acked_ns <= until_ns) & (there < counts.shape[1]) & ~self.missed
        lost = int((counts.shape[1] - there)[gone].sum())
        self.missed = self.missed | gone
        doubled = (counts > 1).sum(axis=1)
        more = int(np.maximum(doubled - self.doubled, 0).sum())
        self.doubled = np.maximum(self.doubled, doubled)
        partial = (there > 0) & (there < counts.shape[1])
        new = int((partial & ~self.partial).sum())
        self.partial = self.partial | partial
        return lost, more, new


def account(
    records: Sequence[Ints],
    start_ns: int,
    undisturbed: tuple[int, Look],
    kills: Sequence[Kill],
    final: Look,
    rows: int,
) -> record.Losses:
    """Return the losses before any kill and by each kill; `records` are of writers 1, 2, ..., `rows` per batch."""
    writers = [_Writer.of(each) for each in records]

    def found(look: Look, until_ns: int) -> tuple[int, int, int]:
        parts = [
            writer.look(_counts(look, number, len(writer.acked_ns), rows), until_ns)
            for number, writer in enumerate(writers, 1)
        ]
        return tuple(map(sum, zip(*parts, strict=True)))  # type: ignore[return-value]

    before = found(undisturbed[1], undisturbed[0]) if undisturbed[1].ids is not None else (0, 0, 0)
    holds = not any(before) and undisturbed[1].ids is not None
    first = record.Undisturbed(*before, holds=holds, said=undisturbed[1].said)
    losses, previous_ns = [], start_ns
    causes = [_causes(writer.attempts, kills) for writer in writers]
    for place, kill in enumerate(kills):
        wrong = found(kill.look, kill.dead_ns) if kill.look.ids is not None else (0, 0, 0)
        acked = unknown = done = in_flight = 0
        for number, (writer, cause) in enumerate(zip(writers, causes, strict=True), 1):
            acked += int(((writer.acked_ns > previous_ns) & (writer.acked_ns <= kill.dead_ns)).sum())
            begun, outcome = writer.attempts["start_ns"], writer.attempts["outcome"]
            ends = begun + writer.attempts["elapsed_ns"]
            # SENT: its writer was killed
            ends_later = np.where(outcome == SENT, cause == place, ends >= kill.killed_ns)
            in_flight += int(((begun <= kill.killed_ns) & ends_later).sum())
            doubt = np.isin(outcome, (SENT, NUMBERS[UNKNOWN])) & (begun >= start_ns) & (cause == place)
            batches = writer.attempts["sequence"][doubt]
            there = (_counts(final, number, len(writer.acked_ns), rows) > 0).any(axis=1)
            unknown, done = unknown + len(batches), done + int(there[batches].sum())
        losses.append(
            record.Loss(
                victim=kill.victim,
                title=kill.title,
                moment_s=record.in_seconds(kill.killed_ns - start_ns),
                started_s=record.in_seconds(kill.started_ns - kill.killed_ns),
                down_s=record.in_seconds(kill.back_ns - kill.killed_ns),
                in_flight=in_flight,
                acked=acked,
                unknown=unknown,
                done=done,
                not_done=unknown - done if final.ids is not None else 0,
                lost=wrong[0],
                doubled=wrong[1],
                partial=wrong[2],
                holds=not any(wrong) and kill.look.ids is not None,
                said=kill.look.said,
            )
        )
        previous_ns = kill.dead_ns
    return record.Losses(first, tuple(losses))


def _causes(attempts: Mapping[str, Ints], kills: Sequence[Kill]) -> Ints:
    """Return int64[attempts]: the index of the kill that each attempt counts for.

    That is the first kill after all had written again, or a later one that happened while the attempt was under way:
    one writer's next attempt may begin before the slowest writer is back, and last until the next kill.
    """
    killed, back = (np.array([getattr(kill, name) for kill in kills]) for name in ("killed_ns", "back_ns"))
    begun = attempts["start_ns"]
    by_start = np.searchsorted(back, begun, "right")
    by_end = np.searchsorted(killed, begun + attempts["elapsed_ns"], "right") - 1
    of_killed_writer = np.searchsorted(killed, begun, "left")  # its last attempt has no end
    last = np.where(attempts["outcome"] == SENT, of_killed_writer, np.maximum(by_start, by_end))
    return np.minimum(last, len(kills) - 1)


def _counts(look: Look, number: int, batches: int, rows: int) -> Ints:
    if look.ids is None:
        return np.zeros((batches, rows), np.int64)
    return runner.counts_of(look.ids, number, batches, rows)


class KilledRunner(runner.WriteRunner[Pool]):
    """Window on one table with writers, or a front and its clients, and kills; made by `open_window`."""

    _losses: record.Losses
    _durability: record.AtRisk | record.Excused

    def __init__(self, test_bed: TestBed, directory: Path, table: TableSystem, crew: Pool, faults: Faults) -> None:
        super().__init__(test_bed, directory, [table], crew)
        self._faults = faults

    def execute(self, window: runner.IngestWindow, until_seconds: float) -> None:
        start = self._crew.go()
        self._faults.play(start, until_seconds)
        if self._faults.is_cancelled:
            return
        window.elapsed_ns = self._crew.end() - start
        self._started = start

    def cancel(self) -> None:
        self._faults.cancel()

    def check(self, window: runner.IngestWindow, last: bool, show: ProgressCallback) -> CheckResult:
        findings = super().check(window, last, show)
        assert self._started is not None
        faults, settings = self._faults, self._settings
        before = (faults.undisturbed_ns, faults.undisturbed)
        self._losses = account(self._records, self._started, before, faults.kills, Look.at(self._table), settings.rows)
        if isinstance(settings, FaultSettings):
            show("what is on the disk at the acknowledgement")
            folder, longest = self.directory / runner.TABLE, settings.watch_seconds
            self._durability, _ = commits_at_risk(self.test_bed, self._table, folder, longest)
        return findings

    def describe(self, window: runner.IngestWindow) -> RunMetadata:
        """Describe the window as for writers, except that a front's commits are not the clients' requests."""
        described = super().describe(window)
        # A catalog that was killed has forgotten how many commits it refused.
        forgetful = replace(described, found={**described.found, "refused": None})
        own: record.DurabilityRecord | record.RequestRecord
        if isinstance(self._settings, FaultSettings):
            own = record.DurabilityRecord(self._durability)
        else:
            commits = commits_of(self._records, [kill.killed_ns for kill in self._faults.kills])
            own = record.RequestRecord(requests=self.acked, commits=commits)
        return runner.extended(forgetful, self._losses, own)


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
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[KilledRunner]:
    """Yield a runner: a table in the folder `name` with a first commit, waiting writers, and the kills of them.

    In the part `front`, it has a front before the table, and waiting clients.
    """
    spec, settings = test_bed.spec, settings_of(test_bed.spec)
    seed = f"{spec.seed} {spec.repeat} {spec.name} kills"
    if isinstance(settings, FrontSettings):
        with runner.opened_table(test_bed, name, runner.ROWS_A_FLUSH, show) as (directory, table, stack):
            show("starting the front and its clients")
            most = math.ceil((seconds + settings.kills * BACK_S) * REQUESTS_A_SECOND)
            pool = gateway_pool(test_bed, table, settings, FRONT_WRITERS, most, directory, reconnects=True)
            front = stack.enter_context(pool)
            seed = f"{seed} of the front"
            faults = Faults(front, table, [front], lambda: None, settings.kills, seed, of_writers=False)
            yield KilledRunner(test_bed, directory, table, front, faults)
        return
    assert isinstance(settings, FaultSettings)
    with runner.opened_table(test_bed, name, settings.rows, show) as (directory, table, stack):
        show("starting the writers")
        ours = test_bed.servers.ours()
        longest = seconds + settings.kills * (1 + len(ours)) * BACK_S
        crew = surviving(test_bed, table, directory, settings, longest, stack, settings.retry)

        def reconnect() -> None:
            table.reconnect()
            publish(table.client_factory(), directory / FACTORY)

        faults = Faults(crew, table, ours, reconnect, settings.kills, seed)
        yield KilledRunner(test_bed, directory, table, crew, faults)
