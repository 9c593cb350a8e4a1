"""Consumer of all events of one topic from its beginning, by assignment: no consumer group, no offset commits.

The timed loop takes the messages from `Source`, as fast as the client returns them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import confluent_kafka

from tidemark.errors import StreamError
from tidemark.stream.counters import Counters
from tidemark.stream.events import Encoding, EventCodec

FIRST_EVENT_SECONDS = 60.0
STALL_SECONDS = 30.0  # without any event although the producer has some: the broker has failed
POLL_SECONDS = 0.005  # timeout of one poll once the client's own queue is empty

clock = time.perf_counter_ns


class EventConsumer(AbstractContextManager["EventConsumer"]):
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

    def __exit__(self, *_: object) -> None:
        self.close()


def check(message: Any) -> None:
    """Raise StreamError if `message` carries an error instead of an event."""
    error = message.error()
    if error is not None:
        raise StreamError(f"the broker answered with an error instead of an event: {error}")


class Source:
    """Messages for the timed loop, and the time spent waiting for a producer that had none.

    `is_complete`: nothing is produced while the window is open. A topic with fewer than `least` events left then ends
    the stretch (`exhausted`), and messages already read are kept for the next one; otherwise wait for the producer.
    """

    def __init__(
        self, client: Any, counters: Counters, is_producer_alive: Callable[[], bool], is_complete: bool = False
    ) -> None:
        self._client = client
        self._counters = counters
        self._is_producer_alive = is_producer_alive
        self._is_complete = is_complete
        self._in_hand: list[Any] = []  # messages of a batch cut short by the topic's end or the deadline
        self.taken = 0  # events handed out
        self.starved_ns = 0
        self.exhausted = False
        self.deadline = 0  # on `clock`, in ns; the loops read it at each operation

    def cancel(self) -> None:
        """End the window after the current operation because a required process died. Callable from any thread."""
        self.deadline = 0

    def take(self, least: int, most: int) -> list[bytes]:
        """Return the values of at least `least` messages, and of up to `most` if they are available.

        Return [] after the deadline, or if a complete topic has fewer than `least` messages left.
        """
        messages: list[Any]
        if self._in_hand:
            messages, self._in_hand = self._in_hand, []
        else:
            messages = self._client.consume(most, 0)
        while len(messages) < least:
            if self._is_complete and self._counters.produced - self.taken < least:
                self.exhausted, self._in_hand = True, messages
                return []
            message = self._wait_for_one(self.taken + len(messages))
            if message is None:
                self._in_hand = messages
                return []
            messages.append(message)
            messages += self._client.consume(most - len(messages), 0)
        for message in messages:
            if message.error() is not None:
                check(message)
        self.taken += len(messages)
        return [message.value() for message in messages]

    def _wait_for_one(self, held: int) -> Any:
        """Return the next message, or None after the deadline. `held` events were read before it."""
        began = last = clock()
        while last < self.deadline:
            starved = self._counters.produced <= held
            message = self._client.poll(POLL_SECONDS)
            now = clock()
            if starved:
                self.starved_ns += now - last
                if not self._is_producer_alive():
                    raise StreamError("the producer died while the window was open")
            last = now
            if message is not None:
                return message
            if now - began > STALL_SECONDS * 1e9:
                raise StreamError(f"no event for {STALL_SECONDS:.0f} s; the broker stopped answering")
        return None
