"""Tidemark's consumer, a separate process: reads events from the topic and commits rows to the table by a policy.

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

MOST = 100_000  # most events per commit
REST_SECONDS = 0.2  # longest time of an empty poll


@dataclass(frozen=True, slots=True)
class Order:
    """Instructions for a consumer; they contain what `door` contains, which may be secrets."""

    door: Door
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
