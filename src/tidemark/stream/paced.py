"""An open-loop producer in a separate process: it sends at a set rate, independent of the consumer's progress.

Event i of a stretch is due at the stretch's begin + i / rate. This time is the timestamp of its message even if it is
sent late, so latency measured from the timestamp includes all waiting (no coordinated omission).
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.errors import StreamError
from tidemark.process_lifetime import die_with_parent
from tidemark.stream.events import Encoding, EventCodec, endless
from tidemark.stream.json_events import JsonCodec

JSON, RECORD = "json", "record"
CHUNK = 2048  # events encoded at once
ANSWER_SECONDS = 120.0
FLUSH_SECONDS = 30.0
REST_SECONDS = 0.001  # between checks for due events
SETTINGS = {
    "enable.idempotence": True,  # in order, each once
    "compression.type": "lz4",
    "linger.ms": 2,  # maximum wait of an event for others
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 1_000_000,
    "delivery.report.only.error": True,
    "message.timeout.ms": 30_000,
    "log_level": 3,
}


@dataclass(frozen=True, slots=True)
class Sent:
    """Result of a stretch: events, CPU time, and the maximum delay until an event was handed to the client."""

    events: int
    cpu_s: float
    latest_s: float


class PacedProducer(AbstractContextManager["PacedProducer"]):
    """Controller of the producer process in the harness; it has one topic, in which event k has the id k."""

    def __init__(self, trips: Path, directory: Path, bootstrap: str, topic: str, encoding: str) -> None:
        from tidemark.stream.process import ProducerProcess  # not in the producer itself, which runs this file too

        arguments = (os.getpid(), trips, bootstrap, topic, encoding)
        self._process = ProducerProcess("tidemark.stream.paced", directory, *arguments)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def send(self, events: int) -> None:
        """Send `events` events at once, and return when the broker has acknowledged them."""
        self._process.tell(json.dumps({"events": events, "rate": None, "begin_ns": time.time_ns()}))
        self.wait()

    def pace(self, events: int, rate: float, begin_ns: int) -> None:
        """Send `events` at `rate` per second from `begin_ns` (time.time_ns) on; return at once. Call `wait` next."""
        self._process.tell(json.dumps({"events": events, "rate": rate, "begin_ns": begin_ns}))

    def enough(self) -> None:
        """End the current stretch with the event that is due now; `wait` returns the number sent."""
        with suppress(StreamError):  # `wait` reports it
            self._process.tell()

    def wait(self) -> Sent:
        """Return the result of the last stretch, once the broker has acknowledged all its events."""
        return Sent(**self._process.answer(ANSWER_SECONDS))

    def __exit__(self, *_: object) -> None:
        self._process.end()


class _Topic:
    """State of the child process: its client and the next messages, encoded in advance."""

    def __init__(self, trips: Path, bootstrap: str, name: str, encoding: str) -> None:
        file = pq.ParquetFile(trips)
        schema = file.schema_arrow.remove_metadata()
        self._name = name
        self._failure: str | None = None
        settings = {**SETTINGS, "bootstrap.servers": bootstrap, "on_delivery": self._on_error}
        self._client = confluent_kafka.Producer(settings)
        codec: JsonCodec | EventCodec
        if encoding == JSON:
            codec = JsonCodec(schema)
        else:
            codec = EventCodec(schema, Encoding.RECORD)
            self._client.produce(name, codec.schema_message, partition=0)
        self._messages = chain.from_iterable(map(codec.encode, endless(file, CHUNK)))

    def _on_error(self, error: Any, _message: Any) -> None:
        if error is not None:
            self._failure = str(error)

    def stretch(self, events: int, rate: float | None, begin_ns: int) -> Sent:
        """Send `events`, at `rate` per second or as fast as possible if None, from `begin_ns` on."""
        cpu, sent, latest_ns = time.process_time(), 0, 0
        produce, name, messages = self._client.produce, self._name, self._messages
        while sent < events:
            now = time.time_ns()
            if rate is not None and select.select([0], [], [], 0)[0]:
                break
            due = events if rate is None else min(events, 1 + int((now - begin_ns) * rate / 1e9))
            if now < begin_ns or sent >= due:
                self._client.poll(REST_SECONDS)
                continue
            if rate is not None:
                latest_ns = max(latest_ns, now - begin_ns - round(sent * 1e9 / rate))
            for number in range(sent, min(due, sent + CHUNK)):
                at_ms = (begin_ns if rate is None else begin_ns + round(number * 1e9 / rate)) // 1_000_000
                produce(name, next(messages), partition=0, timestamp=at_ms)
            sent = min(due, sent + CHUNK)
            self._client.poll(0)
            self._check()
        left = self._client.flush(FLUSH_SECONDS)
        self._check()
        if left:
            raise StreamError(f"the broker did not acknowledge {left} events within {FLUSH_SECONDS:.0f} s")
        return Sent(sent, time.process_time() - cpu, latest_ns / 1e9)

    def _check(self) -> None:
        if self._failure is not None:
            raise StreamError(f"the broker did not take an event: {self._failure}")


def _line() -> bytes:
    """Return the next line of standard input without reading ahead: a stretch polls for further input."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


def _serve(trips: Path, bootstrap: str, name: str, encoding: str) -> None:
    topic = _Topic(trips, bootstrap, name, encoding)
    for line in iter(_line, b""):
        if not line.strip():
            continue  # `enough`, which a stretch detects by itself
        try:
            reply = asdict(topic.stretch(**json.loads(line)))
        except (StreamError, OSError, BufferError, pa.ArrowException, confluent_kafka.KafkaException) as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    _serve(Path(sys.argv[2]), *sys.argv[3:6])
