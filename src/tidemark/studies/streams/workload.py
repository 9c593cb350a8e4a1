"""Workload of the study: trips are read from a topic event by event, and written one by one or in batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.kafka import Kafka
from tidemark.studies.streams.settings import AHEAD, PRODUCER, StreamSettings
from tidemark.studies.streams.window.rates import Rates
from tidemark.systems.base import Capability, Variant

if TYPE_CHECKING:
    from tidemark.studies.streams.window.session import Session

COMMIT_SECONDS = 0.05  # of a commit, if nothing else is known
FILL_SECONDS = 5.0  # to create and fill a topic before a window: 5 s for windows of 8 s and of 60 s


class Streams(Workload):
    """Workload that writes trips through Kafka into a table: poll, decode, assemble, write."""

    name = "streams"
    measurement = 1
    runner = "tidemark.studies.streams.window.runner"
    services = (Kafka,)
    excluded_groups = (Kafka.name, PRODUCER)

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = StreamSettings.of(spec)
        self.rates = Rates(private / "rates.json", f"{spec.stack} {spec.name} {spec.mode}", self.settings.encoding)

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, with topic filling; a window ended by commits counts a typical time per commit."""
        commits = StreamSettings.of(spec).commits
        window = min(spec.window_seconds, commits * COMMIT_SECONDS) if commits else spec.window_seconds
        return FILL_SECONDS + window

    @contextmanager
    def start_processes(self, work: Path) -> Iterator[Session]:
        """Start the producer, which lives for a session; topics are created when the servers run."""
        from tidemark.stream.producer import Producer
        from tidemark.studies.streams.window.session import Session

        with Producer(self.trips, work) as producer:
            yield Session(self.settings, self.rates, producer)

    def needs_probe(self) -> bool:
        return self.settings.producer == AHEAD and self.rates.events_per_s is None

    @property
    def warms_up(self) -> bool:
        """False for a system that stores nothing: it has its full speed from the start."""
        return Capability.READ_BACK in self.variant.system.capabilities


WORKLOAD = Streams
