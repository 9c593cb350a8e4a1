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
    """Topics with unique names, one in use at a time: a new one each time, or one that is read again from its start."""

    def __init__(self, producer: Producer, name: str) -> None:
        self._producer, self._name = producer, name
        self._kafka: Kafka
        self._number = 0
        self._token = secrets.token_hex(6)  # the broker may serve other Tidemark processes too
        self._kept: tuple[str, Encoding] | None = None

    def on(self, kafka: Kafka) -> Topics:
        """Return these topics, on the broker that is running now."""
        self._kafka = kafka
        return self

    def begin(self, encoding: Encoding, events: int) -> str:
        """Create the next topic and start filling it with `events` events; return its name immediately."""
        self.drop_kept()
        topic = f"tidemark-{self._name}-{self._token}-{self._number}"
        self._number += 1
        self._producer.connect(self._kafka.bootstrap)
        self._kafka.create_topic(topic)
        self._producer.begin(topic, encoding, events)
        return topic

    def begin_again(self, encoding: Encoding, events: int) -> str:
        """Return the topic of an earlier call, or create one; fill it up to `events` events as `begin` does."""
        if self._kept is None or self._kept[1] != encoding:
            self._kept = self.begin(encoding, events), encoding
        else:
            self._producer.rewind()
            if (more := events - self._producer.counters.produced) > 0:
                self._producer.extend(more)
        return self._kept[0]

    def wait_until_filled(self) -> None:
        """Return when the topic contains all requested events."""
        self._producer.wait_until_filled()

    def close(self) -> None:
        """Delete what an external broker would keep; one that was started here loses its data with its end."""
        if self._kept is not None and self._kafka.is_external:
            self.drop_kept()

    def drop_kept(self) -> None:
        """Delete the topic of `begin_again`, if there is one."""
        if self._kept is not None:
            (topic, _), self._kept = self._kept, None
            self.drop(topic)

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
