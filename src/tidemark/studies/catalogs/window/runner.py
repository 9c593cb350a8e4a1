"""Measurement window of catalog requests: a separate tree in a running catalog, and a waiting load generator."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemark.errors import ServiceError, SystemFailure
from tidemark.machine.sampler import Group
from tidemark.measure.describe import system_part
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.paths import private_directory
from tidemark.runs.manifest import Footprint
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import Pairs, pairs, written
from tidemark.services.postgres import Postgres
from tidemark.software.tools import tool_versions
from tidemark.studies.catalogs.record import ALONE, COUNTED_DEPTH, COUNTED_REQUESTS, CREATE, CatalogSettings, Step
from tidemark.studies.catalogs.requests import CHURN, POOL, RAMP, Phase, Tree, phases
from tidemark.studies.catalogs.window.crash import Crash, why_not
from tidemark.studies.catalogs.window.generator import TOOL, Generator
from tidemark.studies.catalogs.window.oracle import Finding, Ledger, look, verdict
from tidemark.studies.catalogs.window.samples import CatalogWindow
from tidemark.systems.catalogs.base import CatalogSystem, Entity
from tidemark.systems.catalogs.library import LibraryCatalog

GENERATOR = "load generator"  # group of its processes
COUNTED_PARTS = (CREATE, "read", "update", "hot", "append")  # parts whose statements are counted, if a window has them
LONGEST_S = 120.0  # to count statements


@dataclass(frozen=True, slots=True)
class Counted:
    """CPU time and backend counters so far."""

    cpu_s: Mapping[str, float]
    backend: Mapping[str, int]

    @classmethod
    def now(cls, groups: Mapping[str, Group], system: CatalogSystem) -> Counted:
        spent = {name: group.cpu_seconds() for name, group in groups.items()}
        return cls({name: seconds for name, seconds in spent.items() if seconds is not None}, system.counters())

    def since(self, before: Counted) -> tuple[Pairs[float], Pairs[int]]:
        cpu = {name: round(value - before.cpu_s.get(name, 0.0), 3) for name, value in self.cpu_s.items()}
        counted = {name: value - before.backend.get(name, 0) for name, value in self.backend.items()}
        return pairs(cpu), pairs(counted)


class CatalogRunner(WindowRunner[CatalogWindow]):
    """Tree of one catalog, not created yet; made by `open_window`."""

    def __init__(
        self,
        test_bed: TestBed,
        directory: Path,
        tree: Tree,
        system: CatalogSystem,
        phases: list[Phase],
        generator: Generator,
    ) -> None:
        super().__init__(test_bed, directory)
        self.system, self._settings = system, CatalogSettings.of(test_bed.spec)
        self._tree, self._phases, self._generator = tree, phases, generator
        self._stored_before = system.stored()
        self._finding: Finding | None = None
        self._crash: dict[str, Any] = {}
        self._statements: dict[str, Any] = {}

    def new_window(self) -> CatalogWindow:
        return CatalogWindow(self._phases)

    def groups(self) -> Mapping[str, Group]:
        return {GENERATOR: Group(lambda: self._generator.pids)}

    def has_ended(self) -> bool:
        return self._generator.has_ended()

    def execute(self, window: CatalogWindow, until_seconds: float) -> None:
        deadline = time.monotonic() + until_seconds
        groups = self.test_bed.groups(self)
        began, before = time.perf_counter_ns(), Counted.now(groups, self.system)
        numbered = enumerate(window.phases)
        for step, together in groupby(numbered, key=lambda each: each[1].step):
            played = list(together)
            elapsed = 0
            for number, _ in played:
                took = self._generator.play(number, deadline)
                if took is None:
                    return
                elapsed += took
            after = Counted.now(groups, self.system)
            first, requests = played[0][1], sum(len(phase.requests) for _, phase in played)
            window.steps.append(Step(step, first.part, first.users, requests, elapsed, *after.since(before)))
            before = after
        window.elapsed_ns = time.perf_counter_ns() - began
        window.ended = True

    def cancel(self) -> None:
        self._generator.cancel()

    def finish(self, window: CatalogWindow) -> None:
        self.test_bed.servers.check()
        if not window.ended:
            done = f"'{window.steps[-1].name}'" if window.steps else "nothing"
            raise ServiceError(
                f"the window of {self.test_bed.spec.window_seconds:g} s was over before all requests were answered; "
                f"done by then: {done}. Give the protocol a longer window_seconds, or less to do"
            )
        window.take(self._generator.played())
        if window.rows == 0:
            raise SystemFailure(f"not one request succeeded; the first answers: {'; '.join(window.said)}")

    def check(self, window: CatalogWindow, last: bool, show: ProgressCallback) -> CheckResult:
        show("oracle")
        files, size, database = self.system.stored()
        old_files, old_size, old_database = self._stored_before
        grown = None if database is None or old_database is None else max(0, database - old_database)
        reason = None if grown is not None else "the server keeps no database that can be looked at"
        footprint = Footprint(0, 0, files - old_files, size - old_size, grown, reason)
        if not self.system.stores:
            self._look_closer(Ledger(), last, show)
            return CheckResult(Oracle.not_applicable(window.rows, self.system.reader), footprint)
        began = time.monotonic()
        requests = (request for phase in window.phases for request in phase.requests)
        ledger = Ledger.of(requests, window.columns["outcome"])
        self._finding = look(self.system.open_reader(), ledger, (self._tree.root,), self.system.keeps_properties)
        if twice := int(window.columns["doubled"].sum()):
            self._finding.doubled += twice
            self._finding.named += (f"doubled: {twice:,} names in listings of tables that come and go",)
        self._check_closed_form(ledger)
        found = verdict(self._finding, self.system.reader, began)
        self._look_closer(ledger, last, show)
        return CheckResult(found, footprint)

    def _look_closer(self, ledger: Ledger, last: bool, show: ProgressCallback) -> None:
        """Run the checks that would have changed the numbers, after the last window of a series."""
        self._crash = self._kill(ledger, last, show)
        if last and any(kill["answered_s"] is None for kill in self._crash.get("kills", ())):
            self._statements = {"excused": "it did not answer any more after a kill"}
        elif last:
            self._statements = self._count_statements(show)

    def _kill(self, ledger: Ledger, last: bool, show: ProgressCallback) -> dict[str, Any]:
        """Run the crash part, if any, after the last window of a series, when its numbers are recorded."""
        tree, private = self._tree, self.test_bed.workload.private
        if not (last and self._settings.kills):
            return {}
        if (reason := why_not(self.test_bed, self.system)) is not None:
            return {"excused": reason}
        crash = Crash(self.test_bed, self._settings, self.system, self.directory, f"{tree.mark}_crash", private)
        return crash.all(ledger, (tree.root,), show)

    def _count_statements(self, show: ProgressCallback) -> dict[str, Any]:
        """Return the SQL statements and requests of each step as JSON data, or the reason why there are none.

        They are counted after the last window of a series, because counting slows each of them. The database is
        restarted with its counter, and then the servers that use it. A first tree is created uncounted, to open
        connections and fill caches; on a second one, each step's statements are counted.
        """
        system = self.system
        if (reason := _why_not_counted(self.test_bed, system)) is not None:
            return {"excused": reason}
        assert system.postgres is not None
        postgres, database = system.postgres
        show("counting SQL statements")
        servers = self.test_bed.servers.by_class.values()
        clients = [each for each in servers if Postgres in each.needs and not each.is_instrument]
        for server in reversed(clients):
            server.stop()
        postgres.count_statements()
        for server in clients:
            server.start()
        system.reconnect()
        asked = self._counted_phases()
        steps: list[dict[str, Any]] = []
        deadline = time.monotonic() + LONGEST_S
        folder = private_directory(self.directory / "statements")
        private, timeout_s = self.test_bed.workload.private, self._settings.timeout_seconds
        with Generator.of(system, private, folder, asked, timeout_s) as generator:
            numbered = enumerate(asked)
            for (part, step), together in groupby(numbered, key=lambda each: (each[1].part, each[1].step)):
                played, before = list(together), postgres.statements(database)
                for number, _ in played:
                    if generator.play(number, deadline) is None:
                        generator.cancel()
                        return {"excused": f"'{step}' was not answered within {LONGEST_S:g} s"}
                ended = postgres.statements(database) - before
                requests = sum(len(phase.requests) for _, phase in played)
                steps.append({"part": part, "name": step, "requests": requests, "statements": ended})
            status = iter(generator.played().columns["status"])
        for each in steps:
            each["succeeded"] = sum(200 <= code < 300 for code in islice(status, each["requests"]))
        return {"steps": [each for each in steps if each.pop("part")]}

    def _counted_phases(self) -> list[Phase]:
        """Return the phases of both small trees; those of the first, whose statements do not count, have no part."""
        parts = ",".join(part for part in self._settings.parts.split(",") if part in COUNTED_PARTS)
        settings, count = self._settings, COUNTED_REQUESTS
        small = replace(settings, depth=COUNTED_DEPTH, parts=parts, hot_updates=count, appends=count)
        opening, counted = (
            phases(small, Tree(small.depth, mark), self.test_bed.spec.seed, self.system.requests)
            for mark in (f"{self._tree.mark}_counted_opening", f"{self._tree.mark}_counted")
        )
        return [*(replace(phase, part="") for phase in opening), *counted]

    def _check_closed_form(self, ledger: Ledger) -> None:
        """Raise SystemFailure if more creations were acknowledged than the tree has entities: the ledger is wrong."""
        tree = self._tree
        whole = {Entity.NAMESPACE: tree.namespaces, Entity.TABLE: tree.tables, Entity.VIEW: tree.views}
        for entity, count in whole.items():
            made = sum(1 for kind, path, name in ledger.created if kind is entity and not _is_beside(path, name))
            if made > count:
                raise SystemFailure(f"{made:,} creations of a {entity} were acknowledged, {count:,} were asked for")

    def describe(self, window: CatalogWindow) -> RunMetadata:
        found = {
            "steps": [written(step) for step in window.steps],
            "oracle": self._finding.plain() if self._finding else {},
            "crash": self._crash,
            "statements": self._statements,
            "in_flight": window.in_flight,
            "first_answers": list(window.said),
            "tree": {"namespaces": self._tree.namespaces, "tables": self._tree.tables, "views": self._tree.views},
        }
        library = isinstance(self.system, LibraryCatalog)
        marks = () if self._finding is None or self._finding.holds else ("not what was acknowledged",)
        return RunMetadata(
            system=system_part(self.test_bed.variant, self.system, pa.schema([])),
            versions={**({} if library else {"Locust": tool_versions(TOOL)[TOOL]}), "PyArrow": pa.__version__},
            marks=marks,
            found=found,
        )


def _is_beside(path: Sequence[str], name: str) -> bool:
    """Return True if an entity is not part of the tree itself."""
    return CHURN in path or RAMP in path or name.startswith("Race_")


def _why_not_counted(test_bed: TestBed, system: CatalogSystem) -> str | None:
    """Return why no statements are counted, or None if they are."""
    if not system.stores:
        return "keeps nothing"
    if any(test_bed.servers.by_class[kind].is_external for kind in test_bed.variant.needs):
        return "its server was not started here"
    if "statements" in system.counters():
        return "counted in its windows, at no cost: see the steps"
    if system.postgres is None:
        return "its backend is no server that counts SQL statements, or takes none"
    if system.postgres[0].is_external:
        return "its PostgreSQL was not started here"
    return None


@contextmanager
def open_window(test_bed: TestBed, name: str, _seconds: float, show: ProgressCallback) -> Iterator[CatalogRunner]:
    """Yield the runner of a new tree in the running catalog, with a load generator that is connected and waits."""
    settings, private = CatalogSettings.of(test_bed.spec), test_bed.workload.private
    directory = private_directory(test_bed.work / name)
    # The name distinguishes a window's tree from all others in the same catalog.
    tree = Tree(settings.depth, f"{name.replace('-', '_')}_{next(test_bed.session)}")
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        system = test_bed.variant.open_as(CatalogSystem, test_bed.context(directory, 1))
        stack.callback(system.close)
        show("starting the load generator")
        made = phases(settings, tree, test_bed.spec.seed, system.requests, ALONE if system.alone else POOL)
        generator = stack.enter_context(Generator.of(system, private, directory, made, settings.timeout_seconds))
        yield CatalogRunner(test_bed, directory, tree, system, made, generator)
