"""Measurement window of the stream: a new table, a new topic full of events, and a consumer at its beginning."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka
import pyarrow as pa

from tidemark.errors import OracleError, StreamError, SystemFailure
from tidemark.machine.processes import bind
from tidemark.machine.sampler import Group
from tidemark.measure import table_calls
from tidemark.measure.describe import system_part
from tidemark.measure.oracle import consult, difference
from tidemark.measure.table_calls import Latencies, hold, read
from tidemark.measure.warmup import uncounted
from tidemark.measure.workload import CheckResult, Files, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.runs.manifest import Flush, Merge, Produced, ProducerPart
from tidemark.runs.serde import pairs, written
from tidemark.services.base import files_below
from tidemark.services.kafka import Kafka
from tidemark.stream.consumer import EventConsumer, Source
from tidemark.stream.events import Encoding, EventCodec
from tidemark.stream.sizes import EventSizes
from tidemark.studies.streams.loop import clock, run_segment
from tidemark.studies.streams.samples import Samples, StreamWindow
from tidemark.studies.streams.session import Session
from tidemark.studies.streams.settings import A_CHUNK_EACH, FLUSHED, PRODUCER, STREAMED, NotRead, StreamRecord
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem

PROBE_SECONDS = 1.0
BESIDE_MARGIN = 50_000  # events that a producer keeps ahead when it runs during the window
# Shares of a window above which a run is marked: waiting for the producer, and time that no part of the budget covers.
STARVED_SHARE = 0.001
UNACCOUNTED_SHARE = 0.01


class StreamRunner(WindowRunner[StreamWindow]):
    """Table and topic, ready for a window; created by `open_window`."""

    def __init__(
        self,
        test_bed: TestBed,
        directory: Path,
        topic: str,
        system: TableSystem,
        consumer: EventConsumer,
        codec: EventCodec,
        show: ProgressCallback,
    ) -> None:
        self.directory, self.system = directory, system
        self._session: Session = test_bed.session
        self._settings, self._producer = self._session.settings, self._session.producer
        self._test_bed, self._topic, self._show = test_bed, topic, show
        self._consumer, self._codec = consumer, codec
        producer = self._producer
        self._source = Source(consumer.client, producer.counters, producer.is_alive, self._session.is_ahead)
        self._commits_before = system.commits()
        self._following = False
        self._ended_ns = 0  # when the last write returned, on the clock of files
        self._produced: Produced | None = None
        self._reads: dict[str, Latencies | NotRead] = {}

    def new_window(self) -> StreamWindow:
        return StreamWindow(Samples(self._settings.batch_size), overlapped=self._settings.overlap)

    def groups(self) -> Mapping[str, Group]:
        return {PRODUCER: Group(lambda: [self._producer.pid], alone=True)}

    def has_ended(self) -> bool:
        return not self._producer.is_alive()

    def segments(self, window: StreamWindow, until_seconds: float) -> Iterator[None]:
        """Yield once per stretch; refill the topic between stretches if it ran out of events."""
        while True:
            yield
            self._test_bed.servers.check()
            is_over = window.elapsed_ns >= until_seconds * 1e9 or not self._source.deadline
            if not self._source.exhausted or is_over or self._test_bed.fails(self):
                return
            self._show("filling the topic again (not counted)")
            self._refill(window, until_seconds)

    def execute(self, window: StreamWindow, until_seconds: float) -> None:
        producer, settings = self._producer, self._settings
        if not self._session.is_ahead and not self._following:
            producer.follow(BESIDE_MARGIN, until_seconds)
            self._following = True
        counters = producer.counters
        commits = settings.commits if self.is_counted else 0
        most, least_ns = commits * settings.batch_size, int(settings.least_seconds * 1e9)
        length_ns = int(until_seconds * 1e9)

        def count(events: int) -> None:
            counters.consumed = events
            if most and events >= most and clock() - (self._source.deadline - length_ns) >= least_ns:
                self._source.cancel()  # the requested number of commits is reached

        ahead = settings.read_ahead
        run_segment(window, self._source, self._codec, self.system.write, until_seconds, count, ahead, commits)
        self._ended_ns = time.time_ns()

    def _refill(self, window: StreamWindow, until_seconds: float) -> None:
        """Add events for the rest of the window to the topic, at the window's rate so far."""
        rates, settings = self._session.rates, self._settings
        if window.elapsed_ns and window.rows:
            rates.note(window.events_per_s)
        left = until_seconds - window.elapsed_ns / 1e9
        self._producer.extend(rates.events(left, settings.batch_size, self._test_bed.work, self._session.most_events))
        self._producer.wait_until_filled()

    def cancel(self) -> None:
        self._source.cancel()

    def finish(self, window: StreamWindow) -> None:
        self._produced = self._producer.finish(keep=self._session.is_ahead)
        self._test_bed.servers.check()
        if window.rows == 0:
            raise StreamError(
                f"not one operation ended within the window of {self._test_bed.spec.window_seconds:g} s; "
                "a longer window (protocol) may be what it needs"
            )
        self._session.rates.note(window.events_per_s)
        self._consumer.close()  # otherwise it would continue to read ahead during the next steps

    def check(self, window: StreamWindow, last: bool, show: ProgressCallback) -> CheckResult:
        show("oracle")
        self._refuse_late_files()
        # Before any other request, which could trigger a late commit.
        verdict = consult(self.system, window.rows, window.operations, self._commits_before)
        if not verdict.verdict:
            raise OracleError(f"{difference(verdict, window.operations)}. The run is not counted.")
        show("flush and footprint")
        footprint = self.system.footprint()
        maintained = last and self._settings.maintenance
        if maintained:
            self._read(window, STREAMED, show)
        flush = table_calls.flush(self.system)
        self._check_rows(window, "flush", flush)
        after = None if flush is None else self.system.footprint()
        if maintained and flush is not None:
            self._read(window, FLUSHED, show)
        merge = table_calls.merge(self.system) if maintained else None
        self._check_rows(window, "merge", merge)
        return CheckResult(verdict, footprint, flush, after, merge)

    def _read(self, window: StreamWindow, state: str, show: ProgressCallback) -> None:
        """Time the reads of a client that never wrote to the table, if the system has one."""
        if Capability.ASKED in self.system.capabilities:
            show("reading")
            try:
                self._reads[state] = hold(read(self.system), window.rows).latencies
            except SystemFailure as error:
                self._reads[state] = NotRead(str(error))

    def _refuse_late_files(self) -> None:
        """Raise OracleError if the table has files from after the last write: the time until now would hide them."""
        late = [
            after for path in files_below(self.directory) if (after := path.stat().st_mtime_ns - self._ended_ns) > 0
        ]
        if late:
            raise OracleError(
                f"{len(late):,} files were written after the last write had returned, up to {max(late) / 1e6:,.0f} ms "
                "later: a write returns once its rows are committed. The run is not counted."
            )

    def _check_rows(self, window: StreamWindow, what: str, done: Flush | Merge | None) -> None:
        """Raise OracleError if a flush or merge changed the table's rows; it must only move them."""
        if done is not None and not consult(self.system, window.rows).verdict:
            raise OracleError(f"the {what} changed the table's rows. The run is not counted.")

    def describe(self, window: StreamWindow) -> RunMetadata:
        assert self._produced is not None, "`finish` comes first"
        assert self._test_bed.dataset is not None, "a stream is made of trips"
        sizes = EventSizes.read(self._test_bed.workload.trips.with_name("events.json"))
        topics = self._session.topics
        producer = ProducerPart.of(
            self._settings.producer,
            self._produced,
            self._test_bed.dataset.rows,
            window.stretches,
            topics.log_bytes(self._topic),
        )
        return RunMetadata(
            system=system_part(self._test_bed.variant, self.system, self._codec.schema),
            versions={
                "confluent-kafka": confluent_kafka.__version__,
                "librdkafka": confluent_kafka.libversion()[0],
                "PyArrow": pa.__version__,
                "Python": platform.python_version(),
            },
            marks=marks(window),
            logical_bytes=round(sizes.arrow_bytes * window.rows),
            producer=producer,
            found=written(StreamRecord(pairs(self._reads))) if self._reads else {},
        )

    def excluded_files(self) -> Files:
        """Return the log of the topic, which is meant to be in memory in every run."""
        return {"stream": self._session.topics.files(self._topic)}


def marks(window: StreamWindow) -> tuple[str, ...]:
    found = []
    share = window.wait_for_producer_ns / window.elapsed_ns
    if share > STARVED_SHARE:
        found.append(f"starved: {100 * share:.2f} % of the window went by waiting for the producer")
    unaccounted = window.budget()["rest"] / window.elapsed_ns
    if abs(unaccounted) > UNACCOUNTED_SHARE:
        found.append(f"unaccounted: {100 * unaccounted:.2f} % of the window is in no part of the time budget")
    return tuple(found)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[StreamRunner]:
    """Create a runner in the folder `name` for a window of `seconds`, and remove it afterwards.

    A topic that was filled before the window is read again by the next one; one that the producer fills meanwhile is
    deleted at the end. The table stays if tables are kept.
    """
    session: Session = test_bed.session
    settings, rates, producer = session.settings, session.rates, session.producer
    kafka = test_bed.servers.by_class[Kafka]
    assert isinstance(kafka, Kafka)
    topics = session.topics.on(kafka)
    spec = test_bed.spec
    encoding = Encoding(settings.encoding)
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("filling the topic")
        if session.is_ahead:
            ahead = rates.events(seconds, settings.batch_size, test_bed.work, session.most_events)
            topic = topics.begin_again(encoding, ahead)
        else:
            topic = topics.begin(encoding, settings.batch_size)
            stack.callback(topics.drop, topic)
        if spec.cpus is not None:
            bind(spec.cpus)
        context = test_bed.context(
            directory, settings.batch_size, threads=settings.threads, compression=settings.compression
        )
        system = test_bed.variant.open_as(TableSystem, context)
        if not spec.keep_tables:
            stack.callback(system.drop)
        stack.callback(system.close)
        system.create(producer.schema)  # while the topic is being filled
        topics.wait_until_filled()
        rates.note_topic(producer.counters.produced, topics.log_bytes(topic))
        consumer = stack.enter_context(EventConsumer(kafka.bootstrap, topic, encoding))
        codec = consumer.open()
        if codec.schema != producer.schema:
            raise StreamError(f"topic {topic}: its schema message is not that of the trips: {codec.schema}")
        if settings.chunks == A_CHUNK_EACH:
            codec = codec.as_collected()
        yield StreamRunner(test_bed, directory, topic, system, consumer, codec, show)


def probe(test_bed: TestBed, show: ProgressCallback) -> None:
    """Measure the rate of a system that was never measured on this machine, to size its first topic."""
    with open_window(test_bed, "probe", PROBE_SECONDS, show) as runner:
        show("finding out how fast it is (not counted)")
        runner.finish(uncounted(test_bed, runner, runner.new_window(), PROBE_SECONDS))
