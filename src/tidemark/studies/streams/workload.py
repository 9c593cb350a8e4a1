"""Workload of the study: trips are read from a topic event by event, and written one by one or in batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine.sampler import Group
from tidemark.measure.workload import Rig, Show, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.kafka import Kafka
from tidemark.studies.streams.settings import StreamSettings
from tidemark.studies.streams.window.rates import Rates
from tidemark.systems.base import Capability, Variant

if TYPE_CHECKING:
    from tidemark.stream.producer import Producer
    from tidemark.stream.topics import Topics
    from tidemark.studies.streams.window.stage import StreamStage

PRODUCER = "producer"
COMMIT_SECONDS = 0.05  # of a commit, if nothing else is known
FILL_SECONDS = 5.0  # to create and fill a topic before a window: 5 s for windows of 8 s and of 60 s


class Streams(Workload):
    """Workload that writes trips through Kafka into a table: poll, decode, assemble, write."""

    name = "streams"
    measurement = 1
    services = (Kafka,)
    apart = (Kafka.name, PRODUCER)

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = StreamSettings.of(spec)
        self.rates = Rates(private / "rates.json", f"{spec.stack} {spec.name} {spec.mode}", self.settings.encoding)
        self._producer: Producer | None = None
        self._topics: Topics | None = None

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, with topic filling; a window ended by commits counts a typical time per commit."""
        commits = StreamSettings.of(spec).commits
        window = min(spec.window_seconds, commits * COMMIT_SECONDS) if commits else spec.window_seconds
        return FILL_SECONDS + window

    @property
    def is_ahead(self) -> bool:
        """True if the topic is filled before the window, not during it."""
        return self.settings.producer == "ahead"

    @property
    def producer(self) -> Producer:
        assert self._producer is not None, "the producer lives in `started`"
        return self._producer

    @contextmanager
    def started(self, work: Path) -> Iterator[None]:
        from tidemark.stream.producer import Producer

        with Producer(self.trips, work) as self._producer:
            yield

    def topics(self, rig: Rig) -> Topics:
        """Return the topics of this session, one in use at a time."""
        from tidemark.stream.topics import Topics

        if self._topics is None:
            kafka = rig.servers.by_class[Kafka]
            assert isinstance(kafka, Kafka)
            self._topics = Topics(kafka, self.producer, self.spec.fingerprint)
        return self._topics

    def share(self, other: Streams) -> None:
        """Use the producer and the topics of `other`, which has been started."""
        self._producer, self._topics = other._producer, other._topics

    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[StreamStage]:
        from tidemark.studies.streams.window.stage import staged

        return staged(self, rig, name, seconds, show)

    def groups(self) -> Mapping[str, Group]:
        return {PRODUCER: Group(lambda: [self.producer.pid], alone=True)}

    def has_ended(self) -> bool:
        return not self.producer.is_alive()

    def is_unknown(self) -> bool:
        return self.is_ahead and self.rates.events_per_s is None

    def probe(self, rig: Rig, show: Show) -> None:
        from tidemark.studies.streams.window.stage import probe

        probe(self, rig, show)

    @property
    def warms_up(self) -> bool:
        """False for a system that stores nothing: it has its full speed from the start."""
        return Capability.READ_BACK in self.variant.system.capabilities


WORKLOAD = Streams
