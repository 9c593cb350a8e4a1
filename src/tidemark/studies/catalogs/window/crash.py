"""Kills of servers and databases while users write: acknowledged data must exist after the restart."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tidemark.errors import ServiceError, SystemFailure
from tidemark.measure.workload import ProgressCallback, TestBed
from tidemark.paths import private_directory
from tidemark.services.base import Service
from tidemark.studies.catalogs.record import ACKED, UNKNOWN, CatalogSettings, Kill
from tidemark.studies.catalogs.requests import CREATE, HOT_UPDATE, NAMESPACE, TABLE, Phase, Request
from tidemark.studies.catalogs.window.generator import Generator, Played
from tidemark.studies.catalogs.window.oracle import Finding, Ledger, look
from tidemark.studies.catalogs.window.samples import outcomes
from tidemark.systems.catalogs.base import CatalogReader, CatalogSystem, Entity

HOT = "Hot"  # the table that all users update
FIRST_S, LAST_S = 0.5, 2.0  # range of the moments of kills, after the users began
MOST_REQUESTS = 4000  # more than any catalog answers before it is killed
ANSWER_S = 10.0  # timeout after which a request's outcome is unknown
BACK_S = 60.0  # longest wait for a restarted server
LOOK_S = 0.02
AGAIN = 2  # writes per user, concurrently, right after a restart


@dataclass(frozen=True, slots=True)
class Round:
    """Requests that were sent, with their outcomes."""

    requests: list[Request]
    found: list[str]
    in_flight: int = 0  # at the kill
    errors: int = 0  # unknown, although answered before the kill


def why_not(test_bed: TestBed, system: CatalogSystem) -> str | None:
    """Return why no server is killed, or None if one is."""
    if not system.stores:
        return "keeps nothing"
    if system.volatile:
        return "nothing of it outlives its server, as it declares"
    if any(test_bed.servers.by_class[kind].is_external for kind in test_bed.variant.needs):
        return "its server was not started here"
    if not test_bed.servers.ours():
        return "no server: its database is a file that each client opens by itself"
    return None


class Crash:
    """Repeated kills of a catalog's servers and databases, each with a separate round of requests."""

    def __init__(
        self,
        test_bed: TestBed,
        settings: CatalogSettings,
        system: CatalogSystem,
        directory: Path,
        mark: str,
        private: Path,
    ) -> None:
        """Prepare the kills; `mark` distinguishes the entities of these rounds from all others."""
        self._test_bed, self._settings, self._system, self._mark = test_bed, settings, system, mark
        self._directory, self._private = directory, private
        self._rng = random.Random(f"{test_bed.spec.seed} {settings.label} crash")
        self._sent: list[Request] = []  # requests below the current root
        self._found: list[str] = []
        self._roots = 0

    @property
    def _root(self) -> tuple[str, ...]:
        return (f"NS_0_{self._mark}_{self._roots}",)

    def all(self, window: Ledger, root: tuple[str, ...], show: ProgressCallback) -> dict[str, Any]:
        """Return all kills as JSON data, and a check of all that `window`, below `root`, had acknowledged before."""
        kills: list[Kill] = []
        for turn, victim in itertools.product(range(self._settings.kills), self._test_bed.servers.ours()):
            show(f"kill {turn + 1} of {self._settings.kills} of {victim.title}")
            kills.append(kill := self._kill(victim, len(kills)))
            if kill.answered_s is None:
                return {"kills": [asdict(each) for each in kills], "window": None}
            if not kill.holds and 2 * kill.again_acked < kill.again:
                break  # the next kill would begin with new entities, and the server takes no writes
        self._test_bed.servers.check()
        whole = look(self._system.open_reader(), window, root, self._system.keeps_properties)
        return {"kills": [asdict(each) for each in kills], "window": whole.plain()}

    def _kill(self, victim: Service, number: int) -> Kill:
        moment = self._rng.uniform(FIRST_S, LAST_S)
        killed = self._until_killed(victim, number, moment)
        sent, found = killed.requests, killed.found
        acknowledged, unknown = found.count(ACKED), found.count(UNKNOWN)
        answered, said = self._back(victim)
        finding, done, not_done, again = Finding(), 0, 0, Round([], [])
        if answered is not None:
            again = self._again(number)
            reader = self._system.open_reader()
            for place, request in enumerate(sent):
                if found[place] == UNKNOWN and (there := self._is_there(reader, request)) is not None:
                    done, not_done = done + there, not_done + (not there)
                    found[place] = ACKED if there else UNKNOWN  # what was read once must stay
            self._sent += sent + again.requests
            self._found += found + again.found
            ledger = Ledger.of(self._sent, self._found)
            finding = look(reader, ledger, self._root, self._system.keeps_properties)
        if not finding.holds:  # the next kill must not be blamed for this one
            self._sent, self._found, self._roots = [], [], self._roots + 1
        return Kill(
            killed=victim.name,
            title=victim.title,
            moment_s=round(moment, 3),
            in_flight=killed.in_flight,
            acknowledged=acknowledged,
            unknown=unknown,
            errors=killed.errors,
            done=done,
            not_done=not_done,
            lost=finding.losses,
            holds=answered is not None and finding.holds,
            named=finding.named,
            answered_s=answered,
            again=len(again.requests),
            again_acked=again.found.count(ACKED),
            said=said,
        )

    def _until_killed(self, victim: Service, number: int, moment: float) -> Round:
        """Let users create and update until the killed server no longer answers."""
        opening = () if self._sent else (Request(NAMESPACE, self._root), Request(TABLE, self._root, HOT))
        users = self._settings.users
        phases = [Phase("crash", "opening", 1, opening)] if opening else []
        phases.append(Phase("crash", "crash", users, tuple(self._requests(number))))
        killed_ns: list[int] = []

        with self._generator(phases, f"kill-{number}") as generator:

            def kill() -> None:
                generator.let_stop()
                killed_ns.append(time.perf_counter_ns())
                victim.kill()

            timer = threading.Timer(moment, kill)
            if opening:
                generator.play(0, time.monotonic() + ANSWER_S * len(opening))
            timer.start()
            try:
                ended = generator.play(len(phases) - 1, time.monotonic() + LAST_S + 3 * ANSWER_S)
            finally:
                timer.join()
            if ended is None:
                raise ServiceError(f"{victim.title} was killed, and users still waited for it after {3 * ANSWER_S} s")
            played = generator.played()
        made = _round(phases, played, killed_ns[0])
        if opening and set(made.found[: len(opening)]) != {ACKED}:
            raise SystemFailure(f"the table that is updated until a kill was not created: {'; '.join(played.said)}")
        return made

    def _again(self, number: int) -> Round:
        """Let all users create concurrently on a restarted server, which may answer reads but take no writes."""
        names = ((*self._root, f"NS_again_{number}_{place}") for place in range(AGAIN * self._settings.users))
        phases = [Phase("crash", "again", self._settings.users, tuple(Request(NAMESPACE, path) for path in names))]
        with self._generator(phases, f"again-{number}") as generator:
            if generator.play(0, time.monotonic() + LAST_S + AGAIN * ANSWER_S) is None:
                raise ServiceError(f"users still waited {AGAIN * ANSWER_S:g} s after a server had answered again")
            return _round(phases, generator.played())

    def _requests(self, number: int) -> Iterable[Request]:
        """Yield namespaces, tables, and updates of one table alternately, all with unique names."""
        for place in range(number * MOST_REQUESTS, (number + 1) * MOST_REQUESTS, 3):
            yield Request(NAMESPACE, (*self._root, f"NS_{place}"))
            yield Request(TABLE, self._root, f"T_{place}")
            yield Request(HOT_UPDATE, self._root, HOT, f"Hot_{place}")

    def _generator(self, phases: list[Phase], name: str) -> Generator:
        folder = private_directory(self._directory / name)
        return Generator.of(self._system, self._private, folder, phases, ANSWER_S)

    def _back(self, victim: Service) -> tuple[float | None, str]:
        """Start it on the same data; return the seconds until a table can be read, or None and the reason.

        Raises ServiceError if another server has died meanwhile, because the result would say nothing about `victim`.
        """
        victim.prepare()
        began = time.monotonic()
        try:
            victim.start()
        except ServiceError as error:
            return None, str(error)
        self._system.reconnect()
        text = ""
        while time.monotonic() - began < BACK_S:
            try:
                self._system.open_reader().fetch(Entity.TABLE, self._root, HOT)
                return time.monotonic() - began, ""
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
            for other in self._test_bed.servers.by_class.values():
                if other is not victim:
                    other.check()
            time.sleep(LOOK_S)
        return None, f"no answer in {BACK_S:g} s: {text}"

    def _is_there(self, reader: CatalogReader, request: Request) -> bool | None:
        """Return True if a request was done; None if it cannot be known, because its value may have been replaced."""
        kept = reader.fetch(request.kind.entity, request.path, request.name)
        if request.kind.act == CREATE:
            return kept is not None
        if kept is not None and request.key in kept.properties:
            return True
        return False if self._system.keeps_properties else None


def _round(phases: Sequence[Phase], played: Played, killed_ns: int = 0) -> Round:
    """Return the requests of `phases` that were sent; without a kill, none of them was in flight."""
    columns = {name: np.array(values, np.int64) for name, values in played.columns.items()}
    requests = [request for phase in phases for request in phase.requests]
    found = outcomes(columns["status"], np.array([each.kind.act == CREATE for each in requests]))
    starts = columns["start_ns"]
    ends = starts + columns["elapsed_ns"]
    sent = starts > 0
    in_flight = sent & (starts <= killed_ns) & (ends >= killed_ns)
    errors = sent & (ends < killed_ns) & (found == UNKNOWN)
    places = np.flatnonzero(sent)
    return Round(
        [requests[place] for place in places], [str(found[place]) for place in places],
        int(in_flight.sum()), int(errors.sum()),
    )  # fmt: skip
