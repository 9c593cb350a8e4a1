"""Consumer of all events of one topic from its beginning, by assignment: no consumer group, no offset commits."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

import confluent_kafka

from tidemark.errors import StreamError
from tidemark.stream.events import Encoding, EventCodec

FIRST_EVENT_SECONDS = 60.0


class EventConsumer:
    """Reader of partition 0 of `topic`; `open` consumes the schema message, so that the next message is event 0."""

    def __init__(self, bootstrap: str, topic: str, encoding: Encoding) -> None:
        self._topic, self._encoding = topic, encoding
        self._closed = False
        self.client = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"tidemark-{topic}",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": False,
                # With small queues librdkafka pauses for fetch.queue.backoff.ms whenever they are full.
                "queued.min.messages": 200_000,
                "queued.max.messages.kbytes": 262_144,
                "fetch.queue.backoff.ms": 2,
                "fetch.wait.max.ms": 20,
                "fetch.message.max.bytes": 8_000_000,
                "fetch.max.bytes": 64_000_000,
                "log_level": 3,
            }
        )

    def open(self) -> EventCodec:
        """Assign the partition, read the schema message and return its codec; raise StreamError on a timeout."""
        self.client.assign([confluent_kafka.TopicPartition(self._topic, 0, 0)])
        deadline = time.monotonic() + FIRST_EVENT_SECONDS
        while time.monotonic() < deadline:
            message = self.client.poll(1.0)
            if message is None:
                continue
            check(message)
            return EventCodec.from_schema_message(message.value(), self._encoding)
        raise StreamError(f"topic {self._topic}: no message within {FIRST_EVENT_SECONDS:.0f} s; is the broker well?")

    def close(self) -> None:
        """Close the connection; safe to call twice."""
        if not self._closed:
            self._closed = True
            self.client.close()

    def __enter__(self) -> EventConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check(message: Any) -> None:
    """Raise StreamError if `message` carries an error instead of an event."""
    error = message.error()
    if error is not None:
        raise StreamError(f"the broker answered with an error instead of an event: {error}")
