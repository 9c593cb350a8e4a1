"""Producer and topics of a session, which all of its windows use."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.measure.workload import TestBed
from tidemark.services.kafka import Kafka
from tidemark.stream.producer import Producer
from tidemark.stream.topics import Topics
from tidemark.studies.streams.settings import AHEAD, StreamSettings
from tidemark.studies.streams.window.rates import Rates


@dataclass(slots=True)
class Session:
    """A running producer, and the topics that it fills, one in use at a time."""

    settings: StreamSettings
    rates: Rates
    producer: Producer
    _topics: Topics | None = None

    @property
    def is_ahead(self) -> bool:
        """True if the topic is filled before the window, not during it."""
        return self.settings.producer == AHEAD

    def topics(self, test_bed: TestBed) -> Topics:
        if self._topics is None:
            kafka = test_bed.servers.by_class[Kafka]
            assert isinstance(kafka, Kafka)
            self._topics = Topics(kafka, self.producer, test_bed.spec.fingerprint)
        return self._topics
