"""A fresh topic for each run, filled by the producer while the harness does something else that is not timed."""

from __future__ import annotations

import secrets
import sys

from tidemark.errors import TidemarkError
from tidemark.events import Encoding
from tidemark.services.kafka import Kafka
from tidemark.stream.producer import Producer


class Topics:
    """Topics with names that no other run has; at most one is being filled at a time."""

    def __init__(self, kafka: Kafka, producer: Producer, name: str) -> None:
        self._kafka, self._producer, self._name = kafka, producer, name
        self._number = 0
        self._token = secrets.token_hex(6)  # the broker may serve others of us as well
        self._filling: str | None = None

    def begin(self, encoding: Encoding, events: int) -> None:
        """Create the next topic and have it filled with `events` events; returns at once."""
        topic = f"tidemark-{self._name}-{self._token}-{self._number}"
        self._number += 1
        self._producer.connect(self._kafka.bootstrap)
        self._kafka.create_topic(topic)
        self._filling = topic
        self._producer.begin(topic, encoding, events)

    @property
    def begun(self) -> str:
        """The topic of the last `begin`, whatever it holds by now."""
        if self._filling is None:
            raise RuntimeError("no topic was begun")
        return self._filling

    def ready(self) -> str:
        """Wait until the topic of the last `begin` holds what was asked for; its name."""
        topic, self._filling = self.begun, None
        self._producer.wait_until_filled()
        return topic

    def drop(self, topic: str) -> None:
        """Delete a topic; that it cannot be deleted must not hide why a run failed."""
        if self._kafka.has_ended():
            return  # and its data goes with it
        try:
            self._kafka.delete_topic(topic)
        except TidemarkError as error:
            print(f"tidemark: while tidying up: {error}", file=sys.stderr)
