"""Tidemark's consumer, a separate process that reads events from the topic and commits rows to the table by a policy.

The program also is the process beside a consumer that maintains the table.

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
from tidemark.studies.freshness.upkeep import Account, Upkeep, UpkeepOrder, UpkeepWriter, keep
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
    upkeep: Upkeep | None = None  # of the table, between commits
    account: Path | None = None  # file for the calls of commits and upkeep; None if there is no upkeep


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
    write = writer.write
    if order.upkeep is not None and order.account is not None:
        write = UpkeepWriter(writer, order.upkeep, order.account).write
    with EventConsumer(order.bootstrap, order.topic, Encoding.RECORD) as source:
        decode = decoder(order, source)
        print("ready", flush=True)
        while True:
            write(decode(gathered(source.client, order.policy)))


class OwnConsumer:
    """The consumer's process, with the interface of a pipeline, so that it gets the same kills as the others.

    With upkeep beside the consumer there are two processes.
    """

    def __init__(self, directory: Path, encoding: str, policy: Policy, upkeep: Upkeep | None = None) -> None:
        self._log = directory / "consumer.log"
        self._path = directory / ".consumer-calls"  # no file of the table
        self._encoding, self._policy, self._upkeep = encoding, policy, upkeep
        self._workers: list[Worker] = []
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
            upkeep=self._upkeep,
            account=self._path if self._upkeep else None,
        )
        self._launch(self._order)

    def kill(self) -> None:
        workers, self._workers = self._workers, []
        for worker in workers:
            with suppress(OSError):
                self._ended_seconds += cpu_seconds(worker.pid)
            worker.end()

    def again(self) -> None:
        assert self._order is not None and self._table is not None
        self._launch(replace(self._order, first=self._table.visible_rows()))

    def check(self) -> None:
        """Raise SystemFailure, with the end of the log, if a process has ended."""
        for worker in self._workers:
            if not worker.is_alive():
                raise worker.failure("ended on its own")

    def stop(self) -> None:
        """Stop the process; events that it gathered and did not commit are dropped."""
        self.kill()

    def pids(self) -> list[int]:
        return [worker.pid for worker in self._workers]

    def account(self) -> Account:
        """Return the calls of commits and upkeep so far; none if it was started without upkeep."""
        return Account.read(self._path)

    def ended_seconds(self) -> float:
        return self._ended_seconds

    def _launch(self, order: Order) -> None:
        if self._upkeep is not None and self._upkeep.beside:
            self._path.touch()
            assert self._table is not None
            self._begin("the maintenance", UpkeepOrder(self._table.maintainer(), self._upkeep, self._path))
        self._begin("the consumer", order)

    def _begin(self, name: str, order: Order | UpkeepOrder) -> None:
        command = [sys.executable, "-m", without_pandas.NAME, PROGRAM, os.getpid()]
        worker = Worker(name, command, self._log)
        self._workers.append(worker)
        worker.send(pickle.dumps(order))
        late = f"{name} was not ready within {READY_SECONDS:.0f} s; its log is {self._log}"
        worker.heard("ready", time.monotonic() + READY_SECONDS, late)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.umask(0o077)
    keep_loopback_direct()
    given = pickle.load(sys.stdin.buffer)
    if isinstance(given, UpkeepOrder):
        keep(given)
    work(given)
