"""A window: a session on an engine, fresh tables, and a verifier that reads them without the engine."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tidemark.errors import MachineError, ServiceError, SystemFailure
from tidemark.measure.describe import system_part
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.paths import private_directory
from tidemark.runs.manifest import Footprint, together
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import Pairs, pairs, written
from tidemark.services.engines.spark import Answer as SparkAnswer
from tidemark.services.engines.spark import Spark
from tidemark.studies.lhbench.data.store import Store, Verifier
from tidemark.studies.lhbench.record import NOT_TOLD, Answer, Compared, Done, LakeRecord, LakeWindow, tell
from tidemark.studies.lhbench.script import QUERY, Held, Phase, Step, script
from tidemark.studies.lhbench.settings import settings_of
from tidemark.studies.lhbench.verifier.readers import NO_WAY, WAYS
from tidemark.systems.spark_sql import SqlEngineTable

EVENTS = ".events"  # folder of the engine's log, removed with the window's folder after it is read


@dataclass(slots=True)
class Verdicts:
    """The verifier's results so far: tables by phase, answers by phase and query."""

    tables: dict[str, Pairs[Compared]] = field(default_factory=dict)
    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    beside: dict[str, Pairs[Pairs[Compared]]] = field(default_factory=dict)  # by phase and other reader; no verdict
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def wrong(self) -> list[str]:
        """Wrong tables and wrong answers, in words."""
        tables = ((phase, what, "holds", found.words) for phase, each in self.tables.items() for what, found in each)
        answers = (
            (phase, what, "answers", found.words)
            for phase, each in self.answers.items()
            for what, found in each.items()
        )
        return [f"{phase}: {what} {name} {words}" for phase, what, name, words in (*tables, *answers) if words]

    @property
    def rows(self) -> tuple[int, int]:
        """Rows expected and rows found in all tables; a table counts each time that it was read."""
        answers = [each for phase in self.tables.values() for _, each in phase]
        return sum(each.expected for each in answers), sum(each.found for each in answers)


class LakeRunner(WindowRunner[LakeWindow]):
    """Runner of a session's window; `open_window` creates it."""

    def __init__(
        self,
        test_bed: TestBed,
        directory: Path,
        system: SqlEngineTable,
        phases: Sequence[Phase],
        verifier: Verifier,
        show: ProgressCallback,
    ) -> None:
        super().__init__(test_bed, directory)
        self._system, self._phases, self._verifier, self._show = system, phases, verifier, show
        self._phase: Phase | None = None
        self._answers: dict[str, tuple[Step, Sequence[Sequence[Any]]]] = {}  # first answer in the phase, by query
        self._labels: list[str] = []  # labels of the completed steps
        self._verdicts = Verdicts()
        self._footprints: dict[str, Pairs[Footprint]] = {}
        self.second: dict[str, dict[str, Any]] = {}  # results of the second engine, by phase

    def new_window(self) -> LakeWindow:
        return LakeWindow()

    def segments(self, window: LakeWindow, until_seconds: float) -> Iterator[None]:
        """Yield once per timed phase; after each phase, read and compare the tables that it left."""
        for phase in self._phases:
            if not phase.counts:
                self._show(f"{phase.name}, uncounted")
                for step in phase.steps:
                    self._run(step)
                continue
            self._phase, self._answers = phase, {}
            self._show(phase.name)
            yield
            self.test_bed.servers.check()
            if self.is_cancelled or window.elapsed_ns > until_seconds * 1e9:
                raise SystemFailure(f"{phase.name}: the window took longer than {until_seconds:g} s, or was abandoned")
            self._look(phase)

    def execute(self, window: LakeWindow, until_seconds: float) -> None:
        assert self._phase is not None
        clock, before = time.perf_counter_ns, window.elapsed_ns
        start = clock()
        for step in self._phase.steps:
            if self.is_cancelled or before + clock() - start > until_seconds * 1e9:
                break
            window.done.append(self._timed(step, self._phase.name, before + clock() - start))
            self._labels.append(step.label)
        window.elapsed_ns = before + clock() - start

    def _timed(self, step: Step, phase: str, start_ns: int) -> Done:
        """Run a step and time it. A failed query is recorded; a failure to create or change a table ends the series."""
        cpu_s = self._cpu_seconds()
        try:
            ran = self._run(step)
        except (SystemFailure, ServiceError) as error:
            if step.kind != QUERY or self.test_bed.servers.ended():
                raise
            lines = str(error).splitlines()[0]
            return Done(phase, step.kind, step.subject, step.number, start_ns, 0, NOT_TOLD, 0, 0, lines)
        if step.kind == QUERY:
            self._answers.setdefault(step.subject, (step, ran[-1].rows))
        return Done(
            phase=phase,
            kind=step.kind,
            subject=step.subject,
            iteration=step.number,
            start_ns=start_ns,
            elapsed_ns=sum(each.elapsed_ns for each in ran),
            planned_ns=ran[-1].planned_ns,
            cpu_ns=NOT_TOLD if cpu_s is None else round(((self._cpu_seconds() or 0.0) - cpu_s) * 1e9),
            rows=len(ran[-1].rows),
            submitted_ms=ran[0].submitted_ms,
        )

    def _run(self, step: Step) -> list[SparkAnswer]:
        return [self._system.run(statement, step.label) for statement in step.statements]

    def _cpu_seconds(self) -> float | None:
        """Return the CPU time of the engine's processes in seconds; None if any runs on another machine."""
        groups = self.test_bed.groups(self)
        if any(self.test_bed.servers.by_class[kind].is_elsewhere for kind in self.test_bed.variant.needs):
            return None
        found = [groups[kind.name].cpu_seconds() for kind in self.test_bed.variant.needs if kind.name in groups]
        return sum(seconds for seconds in found if seconds is not None)

    def _look(self, phase: Phase) -> None:
        """Have the phase's tables and answers judged, and record the sizes of the tables that it changed."""
        tables = {held.table: self._order(held) for held in phase.held}
        if phase.judged:
            self._footprints[phase.name] = tuple((name, self._system.footprint(name)) for name in tables)
        if phase.second:
            self._show(f"{phase.name}: asking a second engine")
            self.second[phase.name] = second_engine(self._verifier, self._system.reader, phase, tables)
        closed = {
            name: Answer(len(rows), step.closed.difference(rows))
            for name, (step, rows) in self._answers.items()
            if step.closed is not None
        }
        if closed:
            self._verdicts.answers[phase.name] = closed
        answers = {name: {"text": step.text, "rows": rows} for name, (step, rows) in self._answers.items() if step.text}
        read = phase.judged and phase.read
        if not read and not answers:
            return
        self._show(f"{phase.name}: comparing")
        order = {"do": "judge", "reader": self._system.reader, "tables": tables, "read": read, "answers": answers}
        said = self._verifier.ask(order)
        self._verdicts.seconds += said["seconds"]
        self._verdicts.versions = said["versions"]
        if read:
            self._verdicts.tables[phase.name] = _compared(said["tables"])
            if said["beside"]:
                beside = said["beside"].items()
                self._verdicts.beside[phase.name] = tuple((other, _compared(each)) for other, each in beside)
        if answers:
            judged = {name: Answer(**each) for name, each in said["answers"].items()}
            self._verdicts.answers[phase.name] = {**closed, **judged}

    def _order(self, held: Held) -> Mapping[str, Any]:
        return {
            "base": held.base,
            "merged": [str(path) for path in held.merged],
            "key": list(held.key),
            "location": str(self._system.location(held.table)),
        }

    def finish(self, window: LakeWindow) -> None:
        self.test_bed.servers.check()
        if not window.done:
            raise SystemFailure("the window was abandoned before a step was done")
        jobs = self._system.logged(self.directory / EVENTS)
        # Engines name tables by their place in descriptions; results name no folder of a machine.
        plain = [replace(job, description=job.description.replace(str(self.directory), ".")) for job in jobs]
        window.stages = tell(window.done, self._labels, plain)

    def check(self, _window: LakeWindow, _last: bool, _show: ProgressCallback) -> CheckResult:
        """Return the findings of all phases as one verdict; a run with a wrong table or answer has no times."""
        wrong, (expected, found) = self._verdicts.wrong, self._verdicts.rows
        readers = ", ".join(f"{name} {each}" for name, each in self._verdicts.versions.items())
        reader = f"{self._system.reader} by {readers}" if readers else "answers alone, each by arithmetic"
        missing, more = max(expected - found, 0), max(found - expected, 0)
        oracle = Oracle(not wrong, True, expected, found, missing, 0, more, reader, self._verdicts.seconds)
        tables = {held.table for phase in self._phases for held in phase.held}
        return CheckResult(oracle, together([self._system.footprint(table) for table in sorted(tables)]))

    def describe(self, window: LakeWindow) -> RunMetadata:
        verdicts, wrong = self._verdicts, self._verdicts.wrong
        data = Store.of(self.test_bed.workload.workspace).described(settings_of(self.test_bed.spec))
        found = LakeRecord(
            tables=pairs(verdicts.tables),
            answers=tuple((phase, pairs(each)) for phase, each in verdicts.answers.items()),
            beside=pairs(verdicts.beside),
            second=pairs(self.second),
            footprints=pairs(self._footprints),
            words="; ".join(wrong) or "exact",
            failed=tuple(sorted({f"{each.subject}: {each.error}" for each in window.done if each.error})),
            data=pairs(data),
            in_force=pairs(self._system.in_force()),
        )
        return RunMetadata(
            system=system_part(self.test_bed.variant, self._system, pa.schema([])),
            versions={
                "PyArrow": pa.__version__,
                "Python": platform.python_version(),
                **{f"{name} (judge)": version for name, version in self._verdicts.versions.items()},
            },
            marks=tuple(wrong[:3]),
            found=written(found),
            files={"stages": window.stages} if window.stages else {},
        )


def _compared(said: Mapping[str, Any]) -> Pairs[Compared]:
    return tuple((name, Compared(**each)) for name, each in said.items())


@contextmanager
def open_window(test_bed: TestBed, name: str, _seconds: float, show: ProgressCallback) -> Iterator[LakeRunner]:
    """Yield a runner with a new session that has no tables, in the folder `name`."""
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("opening a session")
        system = test_bed.variant.open_as(SqlEngineTable, test_bed.context(directory, 1))
        stack.callback(system.close)
        system.open()
        system.log_events(private_directory(directory / EVENTS))
        verifier = Verifier.of(test_bed.workload.workspace, directory / ".judge")
        phases = script(system, settings_of(test_bed.spec), Store.of(test_bed.workload.workspace), test_bed.spec.repeat)
        yield LakeRunner(test_bed, directory, system, phases, verifier, show)


def second_engine(verifier: Verifier, reader: str, phase: Phase, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return a second engine's results for the queries of `phase`, repeated as often; or the `reason` for none.

    A failure of the second engine is a finding, and not an error of the measured system.
    """
    if reader not in WAYS:
        return {"reason": NO_WAY[reader]}
    order = {
        "do": "second",
        "reader": reader,
        "tables": tables,
        "queries": {step.subject: step.text for step in phase.steps},
        "passes": max(step.number for step in phase.steps),
        "memory_mb": Spark.heap_mb,
    }
    try:
        return verifier.ask(order)
    except MachineError as error:
        return {"reason": str(error).splitlines()[0]}
