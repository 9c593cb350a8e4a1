"""Measurement window: a topic, a table, and a pipeline or Tidemark's consumer that moves events between them."""

from __future__ import annotations

import math
import platform
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol

import confluent_kafka
import pyarrow as pa

from tidemark.errors import SystemFailure, TidemarkError
from tidemark.machine.disk import sent_bytes
from tidemark.machine.sampler import Group
from tidemark.measure.describe import system_part
from tidemark.measure.oracle import consult
from tidemark.measure.table_calls import hold, read, timed
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.runs.manifest import Footprint
from tidemark.runs.serde import pairs, written
from tidemark.services.kafka import Kafka
from tidemark.stream.paced import PacedProducer, Sent
from tidemark.studies.freshness.consumer import EXACTLY_ONCE, OwnConsumer
from tidemark.studies.freshness.record import End, FreshnessRecord, Kill, RampRecord, RampStep, Reads, is_unfinished
from tidemark.studies.freshness.samples import FreshnessWindow, Look, Reader, Step
from tidemark.studies.freshness.settings import MOVING, PRODUCER, FreshnessSettings
from tidemark.studies.freshness.upkeep import Account, Upkeep
from tidemark.systems.base import Capability, System
from tidemark.systems.sinks import Source, StreamingSink
from tidemark.systems.tables import TableSystem

LATE_SECONDS = 0.5  # delay of an event behind its due time above which a run is marked and a ramp ends
LOOK_SECONDS = 0.05
WARM_SECONDS = 150.0  # longest wait until the events before the window are visible
HEAD_START_NS = 200_000_000  # from the order to the first event
SPARED = (Kafka.name, PRODUCER, "harness")  # groups that are not part of a table's cost
ROWS_PER_WRITE = 1_000
BEHIND = 1 / 2  # of a step: the ramp ends if the oldest unseen event is older than an interval by more than this
NOBODY = "no client is here that can be asked for its rows and never wrote to it"
TRIES = 10  # at listing a table's files, which come and go while it is written
TRIAL_SECONDS = 1.5  # of rest, and of looks alone, to tell what a look costs the servers


def lag_seconds(window: FreshnessWindow, look: Look | None, passed_ns: int) -> float:
    """Return the age of the oldest event of `window` that `look` missed, `passed_ns` after the first event was due."""
    left = max((0 if look is None else look.rows) - window.warm, 0)
    for step in window.steps:
        if left < step.events:
            return (passed_ns - step.begin_ns - round(left * 1e9 / step.rate)) / 1e9
        left -= step.events
    return 0.0


class Ramp:
    """One climb. `spent` returns the CPU seconds so far; `goes_on` returns whether the window continues, or raises."""

    def __init__(
        self,
        settings: FreshnessSettings,
        producer: PacedProducer,
        table: TableSystem,
        reader: Reader,
        spent: Callable[[], float],
        goes_on: Callable[[], bool],
    ) -> None:
        self._settings, self._producer, self._table = settings, producer, table
        self._reader, self._spent, self._goes_on = reader, spent, goes_on
        self._climbed: list[RampStep] = []
        self._end = End.STEPS

    def climb(self, window: FreshnessWindow) -> Sent:
        """Send steps from `window.begin_ns` on, each due when the previous one ends; return the totals sent."""
        step_ns = round(self._settings.step_seconds * 1e9)
        sent = Sent(0, 0.0, 0.0)
        for number in range(self._settings.steps):
            rate = self._settings.rate << number
            step = Step(number * step_ns, rate, round(rate * self._settings.step_seconds))
            cpu_s, files = self._spent(), self._files()
            self._producer.pace(step.events, rate, window.begin_ns + step.begin_ns)
            while time.time_ns() < window.begin_ns + step.begin_ns + step_ns and self._goes_on():
                time.sleep(LOOK_SECONDS)
            # Before the wait for a late producer: CPU time spent during that wait belongs to no step.
            last = self._reader.looks[-1] if self._reader.looks else None
            passed_ns = time.time_ns() - window.begin_ns
            cpu_s, files = self._spent() - cpu_s, self._files() - files
            did = self._producer.wait()
            window.steps.append(step)
            sent = Sent(sent.events + did.events, sent.cpu_s + did.cpu_s, max(sent.latest_s, did.latest_s))
            lag_s = lag_seconds(window, last, passed_ns)
            begin_s = step.begin_ns / 1e9
            self._climbed.append(
                RampStep(rate, begin_s, self._settings.step_seconds, step.events, did.latest_s, lag_s, cpu_s, files)
            )
            if self._is_over(self._climbed[-1]) or not self._goes_on():
                break
        return sent

    @property
    def record(self) -> RampRecord:
        return RampRecord(str(self._end), tuple(self._climbed))

    def _is_over(self, step: RampStep) -> bool:
        interval_s = (self._settings.rules.interval_ms or 0) / 1000
        if step.latest_s > LATE_SECONDS:
            self._end = End.PRODUCER
        elif step.lag_s > interval_s + BEHIND * step.seconds:
            self._end = End.LAG
        else:
            return False
        return True

    def _files(self) -> int:
        for _ in range(TRIES):
            try:
                footprint = self._table.footprint()
            except FileNotFoundError:
                continue  # a file disappeared after it was listed
            return footprint.data_files + footprint.metadata_files
        return 0


def timed_reads(table: TableSystem, rows: int, footprint: Footprint, show: Callable[[str], None]) -> Reads:
    """Read `table`, which holds the ids 0 .. `rows` - 1, maintain it, and read it again.

    Raises OracleError if an answer is wrong. Other failures are only recorded: the window is already measured.
    """
    files = footprint.files
    if Capability.ASKED not in table.capabilities:
        return Reads(None, files, NOBODY, why_not_after=NOBODY)
    show("reading")
    try:
        before = hold(read(table), rows).latencies
    except SystemFailure as error:
        return Reads(None, files, str(error), why_not_after=str(error))
    refused = table.refuses_maintenance(table.options)
    if refused:
        return Reads(before, files, why_not_after=refused)
    show("maintaining")
    maintained = []
    try:
        with closing(table.client_factory().open()) as writer:
            for name, operation in writer.maintenance().items():
                maintained.append([name, timed(name, operation)])
        show("reading once more")
        after = hold(read(table), rows).latencies
    except SystemFailure as error:
        return Reads(before, files, "", maintained, why_not_after=str(error))
    return Reads(before, files, "", maintained, after, table.footprint().files)


class Moving(Protocol):
    """Mover of events: a pipeline or Tidemark's consumer."""

    def kill(self) -> None: ...
    def again(self) -> None: ...
    def check(self) -> None: ...
    def stop(self) -> None: ...
    def pids(self) -> list[int]: ...
    def ended_seconds(self) -> float: ...


class FreshnessRunner(WindowRunner[FreshnessWindow]):
    """Topic, table and mover of events; created by `open_window`."""

    def __init__(
        self,
        test_bed: TestBed,
        directory: Path,
        system: System,
        table: TableSystem,
        source: Source,
        producer: PacedProducer,
        show: ProgressCallback,
    ) -> None:
        self.directory = directory
        self._settings, self._test_bed, self._show = FreshnessSettings.of(test_bed.spec), test_bed, show
        self._system, self._table, self._source, self._producer = system, table, source, producer
        self._moving: Moving | None = None
        self._gave_up = False
        self._sent = Sent(0, 0.0, 0.0)
        self._kills: list[Kill] = []
        self._cpu_s: dict[str, float] = {}
        self._failed_looks = 0
        self._look_cpu_s = 0.0
        self._commits = 0
        self._reads: Reads | None = None
        self._ramp: RampRecord | None = None
        self._upkeep = Upkeep.parse(self._settings.upkeep) if self._settings.upkeep else None
        self._written_bytes: dict[str, int] = {}
        self._account = Account(())

    def new_window(self) -> FreshnessWindow:
        return FreshnessWindow(self._settings.warm)

    def segments(self, window: FreshnessWindow, until_seconds: float) -> Iterator[None]:
        """Start the pipeline, wait until the events before the window are visible, and yield once."""
        del until_seconds
        self._show("starting the pipeline")
        self._producer.send(window.warm)
        moving = self._start()
        deadline = time.monotonic() + WARM_SECONDS
        while (found := self._table.visible_rows()) < window.warm:
            moving.check()
            self._test_bed.servers.check()
            if time.monotonic() > deadline:
                raise SystemFailure(
                    f"of {window.warm} events before the window, {found} were visible after {WARM_SECONDS:.0f} s"
                )
            time.sleep(LOOK_SECONDS)
        yield
        self._test_bed.servers.check()

    def _start(self) -> Moving:
        settings, system = self._settings, self._system
        if isinstance(system, StreamingSink):
            interval_ms = settings.rules.interval_ms
            assert interval_ms is not None, "the plan gives pipelines a time"
            system.start(self._source, self._table, interval_ms)
            self._moving = system
            return system
        self._moving = own = OwnConsumer(self.directory, settings.encoding, settings.rules, self._upkeep)
        own.start(self._source, self._table)  # if this fails, it is stopped with the runner
        return own

    def stop(self) -> None:
        """Stop the mover of events, if it runs."""
        moving, self._moving = self._moving, None
        if moving is not None:
            moving.stop()

    def groups(self) -> Mapping[str, Group]:
        def ended_seconds() -> float:
            return self._moving.ended_seconds() if self._moving else 0.0

        return {
            PRODUCER: Group(lambda: [self._producer.pid], alone=True),
            MOVING: Group(lambda: self._moving.pids() if self._moving else [], ended=ended_seconds),
        }

    def has_ended(self) -> bool:
        return not self._producer.is_alive()

    def execute(self, window: FreshnessWindow, until_seconds: float) -> None:
        settings, moving = self._settings, self._moving
        assert moving is not None
        self._look_cpu_s = self._look_cost()
        before, written = self._used(), self._written()
        window.begin_ns = time.time_ns() + HEAD_START_NS
        longest = until_seconds + (settings.drain_seconds if settings.kills else 0)
        if not settings.steps:
            events = settings.rules.whole(round(settings.rate * longest), math.floor)
            self._producer.pace(events, settings.rate, window.begin_ns)
        moments = [until_seconds * (number + 1) / (settings.kills + 1) for number in range(settings.kills)]
        shown = 0  # rows seen before the last kill: the next one waits until there are more
        drained = math.inf  # seconds after which the drain times out
        with Reader(self._table, settings.look_ms) as reader:
            if settings.steps:
                self._climb(window, reader, moving)
                drained = (time.time_ns() - window.begin_ns) / 1e9 + settings.drain_seconds
            while not self.is_cancelled and (not window.events or reader.rows < window.warm + window.events):
                passed = (time.time_ns() - window.begin_ns) / 1e9
                if not window.events and (passed >= longest or (passed >= until_seconds and not moments)):
                    self._end_arrivals(window)
                    drained = passed + settings.drain_seconds
                elif passed > drained:
                    self._gave_up = True
                    break
                elif moments and passed >= moments[0] and reader.rows > shown:
                    moments.pop(0)
                    shown = reader.rows
                    self._kill(moving, passed)
                moving.check()
                time.sleep(LOOK_SECONDS)
            window.elapsed_ns = time.time_ns() - window.begin_ns
            window.looks = reader.looks
            self._failed_looks = reader.failed
        if self._upkeep is not None and not self._gave_up:
            self._await_upkeep(window, self._upkeep)
        after = self._used()
        self._cpu_s = {name: after[name] - before.get(name, 0.0) for name in after}
        self._written_bytes = {name: size - written.get(name, 0) for name, size in self._written().items()}
        if not self.is_cancelled:
            self._look_cpu_s = (self._look_cpu_s + self._look_cost()) / 2  # a look at an older table may cost more

    def _look_cost(self) -> float:
        """Return the CPU seconds that a look costs the servers while nothing else happens, beyond those of rest."""
        before = sum(self._used().values())
        time.sleep(TRIAL_SECONDS)
        rested = sum(self._used().values())
        with Reader(self._table, self._settings.look_ms) as reader:
            time.sleep(TRIAL_SECONDS)
        return max(0.0, sum(self._used().values()) - 2 * rested + before) / max(1, len(reader.looks))

    def _await_upkeep(self, window: FreshnessWindow, upkeep: Upkeep) -> None:
        """Wait until the upkeep that the last commit made due has ended: the consumer's end would interrupt it."""
        assert isinstance(self._moving, OwnConsumer)
        client = upkeep.maintainer(type(self._table))
        operations = upkeep.operations(client.operations(self._table.options)) if upkeep.kinds else ()
        deadline = time.monotonic() + WARM_SECONDS
        rows = window.warm + window.events
        while not (self.is_cancelled or self._moving.account().has_ended(rows, upkeep, operations)):
            self._moving.check()
            if time.monotonic() > deadline:
                raise SystemFailure(f"the upkeep did not end within {WARM_SECONDS:.0f} s of the last event")
            time.sleep(LOOK_SECONDS)

    def _end_arrivals(self, window: FreshnessWindow) -> None:
        """Stop the arrivals, which last until all kills are done and at least for the planned length of the window."""
        if self._settings.kills:
            self._producer.enough()
        self._sent = self._producer.wait()
        window.steps.append(Step(0, self._settings.rate, self._sent.events))

    def _climb(self, window: FreshnessWindow, reader: Reader, moving: Moving) -> None:
        """Double the rate step by step, until the table falls behind."""

        def goes_on() -> bool:
            moving.check()
            return not self.is_cancelled

        def spent() -> float:
            return sum(self._used().values()) - self._look_cpu_s * len(reader.looks)

        ramp = Ramp(self._settings, self._producer, self._table, reader, spent, goes_on)
        self._sent = ramp.climb(window)
        self._ramp = ramp.record

    def _kill(self, moving: Moving, passed: float) -> None:
        self._show(f"killed after {passed:.1f} s")
        moving.kill()
        began = time.monotonic()
        moving.again()
        self._kills.append(Kill(passed, time.monotonic() - began))

    def _used(self) -> dict[str, float]:
        """Return the CPU seconds spent on the table so far: all but the broker, the producer and this process."""
        groups = self._test_bed.groups(self)
        found = {name: group.cpu_seconds() for name, group in groups.items() if name not in SPARED}
        return {name: seconds for name, seconds in found.items() if seconds is not None}

    def _written(self) -> dict[str, int]:
        """Return the bytes that the same processes caused to be written to a disk so far."""
        if self._upkeep is None:
            return {}
        groups = self._test_bed.groups(self)
        found = {name: sent_bytes(group.pids()) for name, group in groups.items() if name not in SPARED}
        return {name: size for name, size in found.items() if size is not None}

    def finish(self, window: FreshnessWindow) -> None:
        self._test_bed.servers.check()
        if self.is_cancelled:
            raise SystemFailure("the window was abandoned: a process that it needs ended")
        assert self._moving is not None
        self._moving.stop()
        if self._upkeep is not None:
            assert isinstance(self._moving, OwnConsumer)
            self._account = self._moving.account()
        history = self._table.history() if self._upkeep is None else self._account.history()
        window.take(history)
        inside = window.columns["commit"]
        self._commits = len(set(inside[inside < len(history)].tolist()))

    def check(self, window: FreshnessWindow, last: bool, show: ProgressCallback) -> CheckResult:
        del last
        show("oracle")
        self._oracle = oracle = consult(self._table, window.warm + window.events)
        footprint = self._table.footprint()
        whole = oracle.verdict or is_unfinished(oracle, self._gave_up, self._account.acknowledged)
        if whole and oracle.applicable and self._settings.is_steady:
            self._reads = timed_reads(self._table, oracle.found, footprint, show)
        return CheckResult(oracle, footprint)

    def describe(self, window: FreshnessWindow) -> RunMetadata:
        oracle, settings = self._oracle, self._settings
        wrong = []
        if is_unfinished(oracle, self._gave_up, self._account.acknowledged):
            wrong.append(
                f"of {oracle.expected:,} events {oracle.missing:,} were not visible {settings.drain_seconds:g} s after "
                "the last one, when it was stopped: whether they would have come is not known"
            )
        elif not oracle.verdict:
            wrong.append(
                f"of {oracle.expected:,} events {oracle.missing:,} are not in the table, {oracle.duplicated:,} are "
                f"there more than once, and {oracle.unexpected:,} rows are of no event"
                + (f"; {self._account.acknowledged:,} were acknowledged" if self._upkeep else "")
            )
        if self._sent.latest_s > LATE_SECONDS:
            wrong.append(f"the producer was {self._sent.latest_s:.1f} s behind its own schedule at worst")
        system = self._system
        record = FreshnessRecord(
            encoding=settings.encoding,
            commits=self._commits,
            cpu_s=pairs(self._cpu_s),
            unseen=tuple(
                service.title
                for service in self._test_bed.servers.by_class.values()
                if service.is_elsewhere and service.name not in SPARED
            ),
            kills=tuple(self._kills),
            ramp=self._ramp,
            gave_up=self._gave_up,
            looks=len(window.looks),
            failed_looks=self._failed_looks,
            look_cpu_s=self._look_cpu_s,
            producer_cpu_s=self._sent.cpu_s,
            latest_s=self._sent.latest_s,
            reads=self._reads,
            upkeep=(self._account.record(window.begin_ns, self._upkeep, self._written_bytes) if self._upkeep else None),
            exactly_once=system.exactly_once if isinstance(system, StreamingSink) else EXACTLY_ONCE,
        )
        return RunMetadata(
            system=system_part(self._test_bed.variant, system, self._source.schema),
            versions={
                "confluent-kafka": confluent_kafka.__version__,
                "PyArrow": pa.__version__,
                "Python": platform.python_version(),
            },
            marks=tuple(wrong),
            found=written(record),
        )


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[FreshnessRunner]:
    """Yield the runner of a new topic and a new table, both empty, in the folder `name`; the pipeline is stopped."""
    kafka = test_bed.servers.by_class[Kafka]
    assert isinstance(kafka, Kafka)
    del seconds
    encoding = FreshnessSettings.of(test_bed.spec).encoding
    schema, trips = test_bed.workload.trips_schema, test_bed.workload.trips
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("making table and topic")
        context = test_bed.context(directory, ROWS_PER_WRITE)
        system = test_bed.variant.open(context)
        stack.callback(system.close)
        table = system
        if isinstance(system, StreamingSink):
            table = system.destination(test_bed.variant.options).open(context)
            stack.callback(table.close)
        assert isinstance(table, TableSystem)
        table.create(schema)
        topic = f"tidemark-{test_bed.spec.fingerprint}-{secrets.token_hex(6)}"
        kafka.create_topic(topic)
        stack.callback(_drop, kafka, topic)
        source = Source(kafka.bootstrap, topic, schema)
        producer = PacedProducer(trips, directory, kafka.bootstrap, topic, encoding)
        stack.enter_context(producer)
        runner = FreshnessRunner(test_bed, directory, system, table, source, producer, show)
        stack.callback(runner.stop)
        yield runner


def _drop(kafka: Kafka, topic: str) -> None:
    """Delete the topic; a failure is only printed, so that it does not hide the reason of a failed run."""
    if kafka.has_ended():
        return
    try:
        kafka.drop(topic)
    except TidemarkError as error:
        print(f"tidemark: while tidying up: {error}", file=sys.stderr)
