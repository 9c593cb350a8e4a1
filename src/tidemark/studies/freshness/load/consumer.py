"""A consumer of ours, a process of its own: events from the topic, rows into the table, commits by a policy.

It goes on where the table ends, and keeps nothing else: with one consumer and one partition, the table holds the first
so many events. A consumer that is killed inside a commit may leave one behind that appears after the next one has
asked how far the table has come; nothing here prevents that, and the oracle would see it.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import confluent_kafka
import pyarrow as pa

from tidemark.lifetime import die_with_parent
from tidemark.services.http import keep_loopback_direct
from tidemark.stream.consumer import EventConsumer, check
from tidemark.stream.events import Encoding
from tidemark.stream.json_events import JsonCodec
from tidemark.stream.paced import JSON
from tidemark.studies.freshness.settings import Policy
from tidemark.systems.writers import Door

MOST = 100_000  # events of a commit
REST_SECONDS = 0.2  # that an empty poll lasts at most


@dataclass(frozen=True, slots=True)
class Order:
    """What a consumer is to do; it holds what `door` does, which may be secrets."""

    door: Door
    bootstrap: str
    topic: str
    encoding: str
    schema: bytes  # of the events, as Arrow serializes it
    policy: Policy
    first: int  # event to begin with


def decoder(order: Order, source: EventConsumer) -> Callable[[Sequence[bytes]], pa.Table]:
    """How messages become rows; the consumer is at its first event afterwards."""
    schema = pa.ipc.read_schema(pa.py_buffer(order.schema))
    if order.encoding == JSON:
        source.client.assign([confluent_kafka.TopicPartition(order.topic, 0, order.first)])
        return JsonCodec(schema).decode
    codec = source.open()
    # The topic's first message is the schema.
    source.client.assign([confluent_kafka.TopicPartition(order.topic, 0, 1 + order.first)])
    return lambda messages: codec.assemble(codec.decode(messages))


def gathered(client: confluent_kafka.Consumer, policy: Policy) -> list[bytes]:
    """The messages of the next commit."""
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
    """For ever: gather, decode, write."""
    writer = order.door.open()
    with EventConsumer(order.bootstrap, order.topic, Encoding.RECORD) as source:
        decode = decoder(order, source)
        print("ready", flush=True)
        while True:
            writer.write(decode(gathered(source.client, order.policy)))


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.umask(0o077)
    keep_loopback_direct()
    work(pickle.load(sys.stdin.buffer))
