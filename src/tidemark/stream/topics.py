"""A fresh topic for each run, filled by the producer; deleted after it, and its files with it."""

from __future__ import annotations

import secrets
import sys
import time
from pathlib import Path

from tidemark.errors import TidemarkError
from tidemark.services.base import files_below
from tidemark.services.kafka import Kafka
from tidemark.stream.events import Encoding
from tidemark.stream.producer import Producer

DELETION_SECONDS = 10.0  # a broker removes a topic's files about a second after it was told to


class Topics:
    """Topics with names that no other run has; one is in use at a time."""

    def __init__(self, kafka: Kafka, producer: Producer, name: str) -> None:
        self._kafka, self._producer, self._name = kafka, producer, name
        self._number = 0
        self._token = secrets.token_hex(6)  # the broker may serve others of us as well

    def begin(self, encoding: Encoding, events: int) -> str:
        """Create the next topic and have it filled with `events` events; its name, at once."""
        topic = f"tidemark-{self._name}-{self._token}-{self._number}"
        self._number += 1
        self._producer.connect(self._kafka.bootstrap)
        self._kafka.create_topic(topic)
        self._producer.begin(topic, encoding, events)
        return topic

    def wait_until_filled(self) -> None:
        """Return when the topic of the last `begin` holds what was asked for."""
        self._producer.wait_until_filled()

    def files(self, topic: str) -> tuple[Path, ...]:
        """The files that hold a topic's messages; none where the broker is on another machine.

        Its indexes are not among them: they are files of ten megabytes whatever is in them.
        """
        folders = self._kafka.topic_folders(topic)
        return tuple(path for folder in folders for path in files_below(folder) if path.suffix == ".log")

    def log_bytes(self, topic: str) -> int:
        """Bytes that a topic's messages take."""
        return sum(path.stat().st_size for path in self.files(topic))

    def drop(self, topic: str) -> None:
        """Delete a topic, and wait until its files are gone: they are none of the next run's business.

        That it cannot be deleted must not hide why a run failed.
        """
        if self._kafka.has_ended():
            return  # and its data goes with it
        try:
            self._kafka.delete_topic(topic)
        except TidemarkError as error:
            print(f"tidemark: while tidying up: {error}", file=sys.stderr)
            return
        deadline = time.monotonic() + DELETION_SECONDS
        while self._kafka.topic_folders(topic) and time.monotonic() < deadline:
            time.sleep(0.05)
