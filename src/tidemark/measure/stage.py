"""What a window happens on: a fresh table, a fresh topic full of events, and a consumer at its beginning."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidemark.dataset import Provenance
from tidemark.errors import StreamError
from tidemark.events import Encoding, EventCodec
from tidemark.machine.inventory import Inventory
from tidemark.machine.processes import bind
from tidemark.machine.sampler import Group
from tidemark.measure.loop import Samples, Window, run_stretch
from tidemark.measure.rates import Rates
from tidemark.measure.servers import Servers
from tidemark.measure.spec import SeriesSpec
from tidemark.paths import private_directory
from tidemark.services.kafka import Kafka
from tidemark.stream.consumer import EventConsumer
from tidemark.stream.producer import Producer
from tidemark.stream.sizes import EventSizes
from tidemark.stream.source import Source
from tidemark.stream.topics import Topics
from tidemark.systems.base import Context, System, Variant

PRODUCER = "producer"
STREAM_GROUPS = (Kafka.name, PRODUCER)  # processes whose writes are the stream's, and no system's
BESIDE_MARGIN = 50_000  # events that a producer beside the window keeps ahead


@dataclass(frozen=True, slots=True)
class Bench:
    """What the runs of a series share: running servers, a producer, and what is known before."""

    spec: SeriesSpec
    variant: Variant
    servers: Servers
    producer: Producer
    topics: Topics
    rates: Rates
    dataset: Provenance
    sizes: EventSizes
    machine: Inventory
    lock_digests: dict[str, str]
    rest_bytes: int | None  # what waits for the disk on this machine when it is at rest
    work: Path  # emptied after each run unless tables are kept
    series: Path  # where the files of its runs go

    @property
    def kafka(self) -> Kafka:
        service = self.servers.by_class[Kafka]
        assert isinstance(service, Kafka)
        return service

    @property
    def is_ahead(self) -> bool:
        return self.spec.producer == "ahead"

    def groups(self) -> dict[str, Group]:
        """The processes of each server that is ours, of the harness itself (client included), and of the producer."""
        groups = {each.name: Group(each.leader) for each in self.servers.by_class.values() if not each.is_external}
        return groups | {
            "harness": Group(lambda: [os.getpid()], alone=True),
            PRODUCER: Group(lambda: [self.producer.pid], alone=True),
        }

    def fails(self) -> bool:
        """Whether something died that a window needs; cheap enough to ask while it is open."""
        return self.servers.ended() or not self.producer.is_alive()


@dataclass(frozen=True, slots=True)
class Stage:
    """One table and one topic, ready for a window."""

    bench: Bench
    directory: Path
    topic: str
    system: System
    commits_before: int | None
    consumer: EventConsumer
    source: Source
    codec: EventCodec
    show: Callable[[str], None]

    def new_window(self) -> Window:
        return Window(Samples(self.bench.spec.batch_size), overlapped=self.bench.spec.overlap)

    def write(self, window: Window, until_seconds: float, around: Callable[[], AbstractContextManager[object]]) -> None:
        """Write until `window` is so long, in as many stretches as its topic is short of events.

        `around` makes what is entered around each stretch. Between them the topic is filled again, and nothing counts.
        Raises ServiceError where a server died meanwhile.
        """
        while True:
            with around():
                self._advance(window, until_seconds)
            self.bench.servers.check()
            if not self.source.exhausted or window.elapsed_ns >= until_seconds * 1e9 or self.bench.fails():
                return
            self.show("filling the topic again (not counted)")
            self._refill(window, until_seconds)

    def _advance(self, window: Window, until_seconds: float) -> None:
        counters = self.bench.producer.counters

        def count(events: int) -> None:
            counters.consumed = events

        run_stretch(
            window, self.source, self.codec, self.system.write, until_seconds, count, self.bench.spec.read_ahead
        )

    def _refill(self, window: Window, until_seconds: float) -> None:
        """Bring events for the rest of the window into the topic, at the rate that it has shown so far."""
        spec, rates = self.bench.spec, self.bench.rates
        if window.elapsed_ns and window.samples.events:
            rates.note(window.events_per_s)
        left = until_seconds - window.elapsed_ns / 1e9
        self.bench.producer.extend(rates.events(left, spec.batch_size, self.bench.work))


@contextmanager
def staged(bench: Bench, name: str, seconds: float, show: Callable[[str], None]) -> Iterator[Stage]:
    """Make a stage in the folder `name` for a window of `seconds`, and remove it afterwards.

    The topic is deleted and its files are gone when it ends; the table stays where tables are kept. Close the consumer
    when the window is over: it goes on reading ahead beside whatever comes next.
    """
    spec = bench.spec
    directory = private_directory(bench.work / name)
    with ExitStack() as stack:
        stack.callback(_remove, directory, spec.keep_tables)
        show("filling the topic")
        ahead = bench.rates.events(seconds, spec.batch_size, bench.work) if bench.is_ahead else spec.batch_size
        topic = bench.topics.begin(Encoding(spec.encoding), ahead)
        stack.callback(bench.topics.drop, topic)
        if spec.cpus is not None:
            bind(spec.cpus)
        context = Context(
            directory, bench.servers.by_class, spec.batch_size, threads=spec.threads, compression=spec.compression
        )
        system = bench.variant.open(context)
        stack.callback(system.close)
        system.create(bench.producer.schema)  # while the topic is being filled
        commits_before = system.commits()
        bench.topics.wait_until_filled()
        bench.rates.note_topic(ahead, bench.topics.log_bytes(topic))
        consumer = stack.enter_context(EventConsumer(bench.kafka.bootstrap, topic, Encoding(spec.encoding)))
        codec = consumer.open()
        if codec.schema != bench.producer.schema:
            raise StreamError(f"topic {topic}: its schema message is not that of the trips: {codec.schema}")
        source = Source(consumer.client, bench.producer.counters, bench.producer.is_alive, bench.is_ahead)
        yield Stage(bench, directory, topic, system, commits_before, consumer, source, codec, show)


def _remove(directory: Path, keep: bool) -> None:
    if not keep:
        shutil.rmtree(directory, ignore_errors=True)
