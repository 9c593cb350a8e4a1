"""A new topic for each run, filled by the producer; deleted after the run together with its files."""

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

DELETION_SECONDS = 10.0  # a broker removes a topic's files about a second after the request


class Topics:
    """Topics with unique names; one is in use at a time."""

    def __init__(self, kafka: Kafka, producer: Producer, name: str) -> None:
        self._kafka, self._producer, self._name = kafka, producer, name
        self._number = 0
        self._token = secrets.token_hex(6)  # the broker may serve other Tidemark processes too

    def begin(self, encoding: Encoding, events: int) -> str:
        """Create the next topic and start filling it with `events` events; return its name immediately."""
        topic = f"tidemark-{self._name}-{self._token}-{self._number}"
        self._number += 1
        self._producer.connect(self._kafka.bootstrap)
        self._kafka.create_topic(topic)
        self._producer.begin(topic, encoding, events)
        return topic

    def wait_until_filled(self) -> None:
        """Return when the topic of the last `begin` contains all requested events."""
        self._producer.wait_until_filled()

    def files(self, topic: str) -> tuple[Path, ...]:
        """Return the files that hold a topic's messages; empty if the broker is external.

        Index files are not included: they are ten megabytes each regardless of their content.
        """
        folders = self._kafka.topic_folders(topic)
        return tuple(path for folder in folders for path in files_below(folder) if path.suffix == ".log")

    def log_bytes(self, topic: str) -> int:
        """Return the bytes of a topic's messages on disk."""
        return sum(path.stat().st_size for path in self.files(topic))

    def drop(self, topic: str) -> None:
        """Delete a topic, and wait until its files are gone, so that they do not affect the next run.

        A failure to delete is only printed, so that it does not hide the reason of a failed run.
        """
        if self._kafka.has_ended():
            return  # its data is deleted too
        try:
            self._kafka.delete_topic(topic)
        except TidemarkError as error:
            print(f"tidemark: while tidying up: {error}", file=sys.stderr)
            return
        deadline = time.monotonic() + DELETION_SECONDS
        while self._kafka.topic_folders(topic) and time.monotonic() < deadline:
            time.sleep(0.05)
