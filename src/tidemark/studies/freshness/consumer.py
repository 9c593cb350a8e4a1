"""Tidemark's consumer, a separate process that reads events from the topic and commits rows to the table by a policy.

It resumes where the table ends, and keeps no other state: with one consumer and one partition, the table holds a prefix
of the events. A consumer killed inside a commit may leave one behind that appears after the next consumer has read the
table's length; nothing here prevents that, and the oracle would detect it.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import confluent_kafka
import pyarrow as pa

from tidemark import without_pandas
from tidemark.machine.processes import cpu_seconds
from tidemark.process_lifetime import die_with_parent
from tidemark.services.http import keep_loopback_direct
from tidemark.services.programs.worker import Worker
from tidemark.stream.consumer import EventConsumer, check
from tidemark.stream.events import Encoding
from tidemark.stream.json_events import JsonCodec
from tidemark.stream.paced import JSON
from tidemark.studies.freshness.settings import Policy
from tidemark.systems.sinks import Source
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory

PROGRAM = "tidemark.studies.freshness.consumer"
READY_SECONDS = 60.0
EXACTLY_ONCE = "it goes on with the event that the table's number of rows names"
MOST = 100_000  # most events per commit
REST_SECONDS = 0.2  # longest time of an empty poll


@dataclass(frozen=True, slots=True)
class Order:
    """Instructions for a consumer; they contain what `client_factory` contains, which may be secrets."""

    client_factory: ClientFactory
    bootstrap: str
    topic: str
    encoding: str
    schema: bytes  # of the events, as serialized by Arrow
    policy: Policy
    first: int  # number of the first event to read


def decoder(order: Order, source: EventConsumer) -> Callable[[Sequence[bytes]], pa.Table]:
    """Return the function that converts messages to rows, and position the consumer at its first event."""
    schema = pa.ipc.read_schema(pa.py_buffer(order.schema))
    if order.encoding == JSON:
        source.client.assign([confluent_kafka.TopicPartition(order.topic, 0, order.first)])
        return JsonCodec(schema).decode
    codec = source.open()
    # The topic's first message is the schema.
    source.client.assign([confluent_kafka.TopicPartition(order.topic, 0, 1 + order.first)])
    return lambda messages: codec.assemble(codec.decode(messages))


def gathered(client: confluent_kafka.Consumer, policy: Policy) -> list[bytes]:
    """Return the messages of the next commit."""
    most = policy.rows or MOST
    messages: list[bytes] = []
    due = float("inf")
    while len(messages) < most and (left := due - time.monotonic()) > 0:
        found = client.consume(most - len(messages) if messages else 1, min(REST_SECONDS, left))
        for message in found:
            check(message)
            messages.append(message.value())
        if found and due == float("inf") and policy.interval_ms is not None:
            due = time.monotonic() + policy.interval_ms / 1000
    return messages


def work(order: Order) -> None:
    """Gather, decode and write, without end."""
    writer = order.client_factory.open()
    with EventConsumer(order.bootstrap, order.topic, Encoding.RECORD) as source:
        decode = decoder(order, source)
        print("ready", flush=True)
        while True:
            writer.write(decode(gathered(source.client, order.policy)))


class OwnConsumer:
    """The consumer's process, with the interface of a pipeline, so that it gets the same kills as the others."""

    def __init__(self, directory: Path, encoding: str, policy: Policy) -> None:
        self._log = directory / "consumer.log"
        self._encoding, self._policy = encoding, policy
        self._worker: Worker | None = None
        self._order: Order | None = None
        self._table: TableSystem | None = None
        self._ended_seconds = 0.0

    def start(self, source: Source, table: TableSystem) -> None:
        """Start at the topic's first event; return once the client is open."""
        self._table = table
        self._order = Order(
            client_factory=table.client_factory(),
            bootstrap=source.bootstrap,
            topic=source.topic,
            encoding=self._encoding,
            schema=source.schema.serialize().to_pybytes(),
            policy=self._policy,
            first=0,
        )
        self._launch(self._order)

    def kill(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        with suppress(OSError):
            self._ended_seconds += cpu_seconds(worker.pid)
        worker.end()

    def again(self) -> None:
        assert self._order is not None and self._table is not None
        self._launch(replace(self._order, first=self._table.visible_rows()))

    def check(self) -> None:
        """Raise SystemFailure, with the end of the log, if the process has ended."""
        assert self._worker is not None
        if not self._worker.is_alive():
            raise self._worker.failure("ended on its own")

    def stop(self) -> None:
        """Stop the process; events that it gathered and did not commit are dropped."""
        self.kill()

    def pids(self) -> list[int]:
        return [] if self._worker is None else [self._worker.pid]

    def ended_seconds(self) -> float:
        return self._ended_seconds

    def _launch(self, order: Order) -> None:
        command = [sys.executable, "-m", without_pandas.NAME, PROGRAM, os.getpid()]
        self._worker = worker = Worker("the consumer", command, self._log)
        worker.send(pickle.dumps(order))
        late = f"the consumer was not ready within {READY_SECONDS:.0f} s; its log is {self._log}"
        worker.heard("ready", time.monotonic() + READY_SECONDS, late)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.umask(0o077)
    keep_loopback_direct()
    work(pickle.load(sys.stdin.buffer))
