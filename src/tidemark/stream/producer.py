"""The producer, in a separate process: it reads trips and sends events on command.

`Producer` is the harness's interface: it starts `python -m tidemark.stream.producer` and exchanges lines of JSON.
Event k of a topic is trip k modulo the dataset's rows, with the id k, so ids are unique however long a run lasts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.errors import StreamError
from tidemark.process_lifetime import die_with_parent
from tidemark.runs.manifest import Produced
from tidemark.stream.counters import Counters
from tidemark.stream.events import Encoding, EventCodec, endless

CHUNK = 2048  # events encoded at once: the matrix of their bytes fits in the CPU cache
LOOK_SECONDS = 0.02  # between checks of the consumer's position
AHEAD_SECONDS = 0.33  # lead over the consumer, at its current rate, while a window is open
ANSWER_SECONDS = 30.0  # for the broker to answer a new client
LAST_SECONDS = 5.0  # for in-flight events when a topic ends
# A broker that has just started has no producer ids yet. It refuses the first request, obtains a block of ids within
# milliseconds, and librdkafka retries only after half a second.
NUMBERS_SECONDS = 0.05


class Connection:
    """The producer process's connection to a broker: one client for all topics, until one of them fails."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.failure: str | None = None
        settings = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,  # in order, each once: event k is at offset k + 1
            # The messages of a batch are similar, so it compresses 17-fold: less work for the broker in the window.
            "compression.type": "lz4",
            "linger.ms": 20,
            "batch.size": 4_000_000,
            "message.max.bytes": 8_000_000,
            # Few enough that a slow machine sends each within message.timeout.ms, which counts the wait in this queue.
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": 250_000,
            "delivery.report.only.error": True,
            "on_delivery": self._on_error,
            "error_cb": self._on_broker_error,
            "message.timeout.ms": 30_000,
            "log_level": 3,
        }
        first = confluent_kafka.Producer(settings)
        first.list_topics(timeout=ANSWER_SECONDS)
        time.sleep(NUMBERS_SECONDS)
        self.client = confluent_kafka.Producer(settings)

    def _on_error(self, error: Any, _message: Any) -> None:
        if error is not None:
            self.failure = str(error)

    def _on_broker_error(self, error: Any) -> None:
        print(f"broker: {error}", file=sys.stderr, flush=True)

    def is_spent(self) -> bool:
        """Return True if earlier topics have failed or in-flight events, which would be attributed to the next one."""
        return self.client.flush(LAST_SECONDS) > 0 or self.failure is not None


class Producer(AbstractContextManager["Producer"]):
    """Controller of the producer process in the harness; one topic at a time. It may start before the broker."""

    def __init__(self, trips: Path, directory: Path) -> None:
        from tidemark.stream.process import ProducerProcess  # not in the producer itself, which runs this file too

        self.counters = Counters(directory / "counters", create=True)
        self._trips = trips
        self._follows = self._is_filling = False
        self._process = ProducerProcess("tidemark.stream.producer", directory, trips, directory / "counters")

    @property
    def pid(self) -> int:
        return self._process.pid

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema in each topic's schema message, from the file that the producer reads."""
        return pq.read_schema(self._trips).remove_metadata()

    def connect(self, bootstrap: str) -> None:
        """Connect to a running broker, for all topics that begin there; return immediately."""
        self._send(command="connect", bootstrap=bootstrap)

    def begin(self, topic: str, encoding: Encoding, events: int) -> None:
        """Begin a topic with its schema message and `events` events; call `wait_until_filled` next."""
        with suppress(StreamError):  # what a failed window left behind
            self._end_following()
            self.wait_until_filled()
        self.rewind()
        self._send(command="begin", topic=topic, encoding=encoding, events=events)
        self._is_filling = True

    def rewind(self) -> None:
        """Forget what a consumer has read: the next one begins at the topic's start."""
        self.counters.consumed = 0
        self.counters.stop = False

    def wait_until_filled(self) -> None:
        """Return when the broker has acknowledged all events that were asked for."""
        if self._is_filling:
            self._is_filling = False
            self._process.answer()

    def extend(self, events: int) -> None:
        """Add at least `events` events to the topic; call `wait_until_filled` next."""
        self._send(command="extend", events=events)
        self._is_filling = True

    def follow(self, margin: int, seconds: float) -> None:
        """Keep at least `margin` events ahead of the consumer, for a window of `seconds` from now on.

        The lead is also at least what the consumer reads in a third of a second, or in the rest of the window.
        """
        self._follows = True
        self._send(command="follow", margin=margin, seconds=seconds)

    def finish(self, *, keep: bool = False) -> Produced:
        """End the topic unless it is to be kept, and `follow` if it is active; return what was produced."""
        self._end_following()
        self._send(command="tell" if keep else "finish")
        return Produced(**self._process.answer())

    def _end_following(self) -> None:
        self.counters.stop = True
        if self._follows:
            self._follows = False
            self._process.answer()

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def _send(self, **command: Any) -> None:
        self._process.tell(json.dumps(command))

    def close(self) -> None:
        """End the process; safe to call twice."""
        self._process.end()
        self.counters.close()

    def __exit__(self, *_: object) -> None:
        self.close()


class _Topic:
    """State of one topic in the child process."""

    def __init__(self, connection: Connection, name: str, trips: Path, encoding: Encoding, counters: Counters) -> None:
        file = pq.ParquetFile(trips)
        self._codec = EventCodec(file.schema_arrow.remove_metadata(), encoding)
        self._name = name
        self._counters = counters
        self._events = self._topped_up = 0
        self._batches = endless(file, CHUNK)
        self._seconds = 0.0
        self._cpu = time.process_time()
        self._connection, self._client = connection, connection.client
        counters.produced = 0
        self._client.produce(name, self._codec.schema_message, partition=0)
        self._flush()

    def produce(self, events: int) -> None:
        """Pass at least `events` further events to the client."""
        goal = self._events + events
        name, produce = self._name, self._client.produce
        while self._events < goal:
            batch = next(self._batches)
            for message in self._codec.encode(batch):
                try:
                    produce(name, message, partition=0)
                except BufferError:
                    self._wait_for_room(name, message)
            self._events += batch.num_rows
            self._client.poll(0)
            self._note()

    def _wait_for_room(self, name: str, message: bytes) -> None:
        while True:
            self._client.poll(0.05)
            self._note()
            try:
                self._client.produce(name, message, partition=0)
                return
            except BufferError:
                continue

    def _note(self) -> None:
        if self._connection.failure is not None:
            raise StreamError(f"the broker did not take an event: {self._connection.failure}")
        self._counters.produced = max(self._counters.produced, self._events - len(self._client))

    def _flush(self) -> None:
        while self._client.flush(1.0):
            self._note()
        self._note()

    def fill(self, events: int) -> None:
        """Add at least `events` events, and wait until the broker has acknowledged all."""
        began = time.perf_counter()
        self.produce(events)
        self._flush()
        self._seconds += time.perf_counter() - began

    def follow(self, margin: int, seconds: float) -> None:
        """Stay ahead of the consumer until the stop flag is set."""
        before = self._events
        seen, at = self._counters.consumed, time.perf_counter()
        rate, end = 0.0, at + seconds
        while not self._counters.stop:
            now, consumed = time.perf_counter(), self._counters.consumed
            if now - at >= 0.2:
                rate, seen, at = (consumed - seen) / (now - at), consumed, now
            if self._events - consumed < max(margin, rate * min(AHEAD_SECONDS, end - now)):
                self.produce(CHUNK)
            else:
                self._client.poll(0)
                self._note()
                time.sleep(LOOK_SECONDS)
        self._topped_up += self._events - before
        self._seconds += time.perf_counter() - end + seconds

    def summary(self) -> Produced:
        return Produced(
            events=self._events, seconds=self._seconds, cpu_s=time.process_time() - self._cpu, topped_up=self._topped_up
        )


class _Server:
    """Child process, with a method of the name of each command; every command except `connect` gets a response."""

    def __init__(self, trips: Path, counters: Counters) -> None:
        self._trips, self._counters = trips, counters
        self._bootstrap = ""
        self._connection: Connection | None = None
        self._topic: _Topic | None = None

    def connect(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        if self._connection is None or self._connection.bootstrap != bootstrap:
            with suppress(confluent_kafka.KafkaException):  # `begin` tries again, and reports the error
                self._connection = Connection(bootstrap)

    def begin(self, topic: str, encoding: str, events: int) -> None:
        if self._connection is None or self._connection.bootstrap != self._bootstrap:
            self._connection = Connection(self._bootstrap)
        try:
            self._topic = _Topic(self._connection, topic, self._trips, Encoding(encoding), self._counters)
            self._topic.fill(events)
        except BaseException:
            self._connection = None
            raise

    def extend(self, events: int) -> None:
        self._current().fill(events)

    def follow(self, margin: int, seconds: float) -> None:
        self._current().follow(margin, seconds)

    def tell(self) -> dict[str, Any]:
        return asdict(self._current().summary())

    def finish(self) -> dict[str, Any]:
        topic, self._topic = self._current(), None
        connection, self._connection = self._connection, None
        done = topic.summary()
        if connection is not None and not connection.is_spent():
            self._connection = connection
        return asdict(done)

    def _current(self) -> _Topic:
        if self._topic is None:
            raise StreamError("there is no topic; it was not begun, or it failed")
        return self._topic


def _serve(trips: Path, counters: Counters) -> None:
    server = _Server(trips, counters)
    for line in sys.stdin:
        request = json.loads(line)
        command = request.pop("command")
        if command == "connect":
            server.connect(**request)
            continue
        try:
            reply = getattr(server, command)(**request) or {}
        except (StreamError, OSError, pa.ArrowException, confluent_kafka.KafkaException) as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    die_with_parent(os.getppid())
    with closing(Counters(Path(sys.argv[2]), create=False)) as shared:
        _serve(Path(sys.argv[1]), shared)
