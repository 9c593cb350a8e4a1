"""Producer and consumer against a real broker: every event once, in order, and a dead producer is noticed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.errors import StreamError
from tidemark.paths import Workspace, private_directory
from tidemark.services.kafka import Kafka
from tidemark.stream.consumer import EventConsumer, Source
from tidemark.stream.events import Encoding
from tidemark.stream.producer import CHUNK, Producer
from tidemark.stream.sizes import EventSizes, weigh
from tidemark.stream.topics import Topics
from tidemark.studies.streams.loop import run_segment
from tidemark.studies.streams.samples import Samples, StreamWindow

TRIPS = 3_000
PAUSE_S = 0.5


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Kafka]:
    assert cache
    workspace = Workspace(tmp_path_factory.mktemp("stream"))
    with Kafka(workspace, private_directory(workspace.work) / "kafka", heap_mb=512) as broker:
        yield broker


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    flags = pa.array(["N", None, "Y"] * (TRIPS // 3))
    table = pa.table({"id": np.arange(TRIPS), "fare": rng.normal(size=TRIPS), "flag": flags})
    pq.write_table(table, tmp_path / "trips.parquet", row_group_size=700)
    return tmp_path / "trips.parquet"


@pytest.fixture
def producer(trips: Path, tmp_path: Path) -> Iterator[Producer]:
    with Producer(trips, tmp_path) as process:
        yield process


@pytest.mark.parametrize("encoding", list(Encoding))
def test_every_event_arrives_once_and_in_order_over_several_laps(
    kafka: Kafka, producer: Producer, trips: Path, encoding: Encoding
) -> None:
    topics = Topics(producer, f"laps-{encoding}").on(kafka)
    topic = topics.begin(encoding, 2 * TRIPS + 500)
    topics.wait_until_filled()
    with EventConsumer(kafka.bootstrap, topic, encoding) as consumer:
        codec = consumer.open()
        source = Source(consumer.client, producer.counters, producer.is_alive)
        source.deadline = 1 << 62
        values = source.take(2 * TRIPS + 500, 2 * TRIPS + 500)
    rows = codec.assemble(codec.decode(values))
    given = pq.read_table(trips)
    assert rows.column("id").to_numpy().tolist() == list(range(2 * TRIPS + 500))
    for lap in range(2):
        assert rows.slice(lap * TRIPS, TRIPS).drop(["id"]).equals(given.drop(["id"]))
    assert producer.finish().events >= 2 * TRIPS + 500
    assert sum(path.stat().st_size for path in topics.files(topic)) > 2 * TRIPS * 10
    topics.drop(topic)
    assert topic not in kafka.topics() and topics.files(topic) == ()


def test_producer_stays_ahead_of_the_window_by_its_reserve_only(kafka: Kafka, producer: Producer) -> None:
    topics = Topics(producer, "short").on(kafka)
    topic = topics.begin(Encoding.RECORD, 100)
    topics.wait_until_filled()
    taken: list[int] = []

    def write(rows: pa.Table) -> None:
        taken.append(rows.num_rows)
        time.sleep(0.002)

    with EventConsumer(kafka.bootstrap, topic, Encoding.RECORD) as consumer:
        codec = consumer.open()
        source = Source(consumer.client, producer.counters, producer.is_alive)

        def count(events: int) -> None:
            producer.counters.consumed = events

        producer.follow(5_000, 2.0)
        window = StreamWindow(Samples(100))
        run_segment(window, source, codec, write, 2.0, count)
    done = producer.finish()
    assert sum(taken) == window.samples.events > 5_000
    assert done.topped_up > 0
    # The reserve and a third of a second's worth beyond what was taken are the upper limit.
    assert window.samples.events <= done.events <= window.samples.events + 5_000 + 50_000 // 3 + 2 * CHUNK


def test_exhausted_topic_is_refilled_outside_the_window(kafka: Kafka, producer: Producer) -> None:
    topics = Topics(producer, "stretches").on(kafka)
    topic = topics.begin(Encoding.RECORD, 1_000)
    topics.wait_until_filled()
    taken: list[int] = []

    def write(rows: pa.Table) -> None:
        taken.extend(rows.column("id").to_pylist())
        time.sleep(0.01)

    with EventConsumer(kafka.bootstrap, topic, Encoding.RECORD) as consumer:
        codec = consumer.open()
        source = Source(consumer.client, producer.counters, producer.is_alive, is_complete=True)
        window = StreamWindow(Samples(300))
        began = time.perf_counter_ns()
        while True:
            run_segment(window, source, codec, write, 0.3)
            segments_ns = time.perf_counter_ns() - began
            if not source.exhausted:
                break
            time.sleep(PAUSE_S)
            producer.extend(1_000)
            producer.wait_until_filled()
    done = producer.finish()
    assert taken == list(range(window.samples.events)), "none lost, none twice, over several stretches"
    assert window.stretches > 1 and done.topped_up == 0
    pauses_ns = (window.stretches - 1) * PAUSE_S * 1e9
    assert 0.3e9 <= window.elapsed_ns <= segments_ns - pauses_ns, "what happens between stretches is not counted"
    assert window.wait_for_producer_ns == 0
    assert sum(window.budget().values()) == window.elapsed_ns
    starts = window.samples.column("start")
    assert (np.diff(starts) > 0).all() and starts[-1] < window.elapsed_ns


def test_failed_topic_is_reported_and_does_not_affect_the_next(kafka: Kafka, producer: Producer) -> None:
    topics = Topics(producer, "after-a-failure").on(kafka)
    tight = NewTopic("tight", num_partitions=1, replication_factor=1, config={"max.message.bytes": "100"})
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([tight])["tight"].result(10)
    producer.connect(kafka.bootstrap)
    producer.begin("tight", Encoding.RECORD, 500)
    with pytest.raises(StreamError, match=r"did not take an event.*too large"):
        producer.wait_until_filled()
    for events in (700, 900):
        topic = topics.begin(Encoding.RECORD, events)
        topics.wait_until_filled()
        with EventConsumer(kafka.bootstrap, topic, Encoding.RECORD) as consumer:
            codec = consumer.open()
            source = Source(consumer.client, producer.counters, producer.is_alive)
            source.deadline = 1 << 62
            values = source.take(events, events)
        assert codec.assemble(codec.decode(values)).column("id").to_numpy().tolist() == list(range(events))
        assert producer.finish().events < 3 * CHUNK, "counted by topic"


def test_killed_producer_ends_the_window_and_names_its_log(kafka: Kafka, producer: Producer) -> None:
    topics = Topics(producer, "killed").on(kafka)
    topic = topics.begin(Encoding.RECORD, 10)
    topics.wait_until_filled()
    with EventConsumer(kafka.bootstrap, topic, Encoding.RECORD) as consumer:
        codec = consumer.open()
        os.kill(producer.pid, signal.SIGKILL)
        source = Source(consumer.client, producer.counters, producer.is_alive)
        with pytest.raises(StreamError, match="producer died"):
            run_segment(StreamWindow(Samples(1)), source, codec, lambda _rows: None, 60.0)
    with pytest.raises(StreamError, match=r"producer died \(exit status -9\).*producer\.log"):
        producer.finish()


def test_both_encodings_round_trip_and_are_measured(trips: Path, tmp_path: Path) -> None:
    sizes = weigh(trips)
    assert sizes.stream_bytes > sizes.record_bytes > sizes.arrow_bytes > 16
    sizes.write(tmp_path / "events.json")
    assert EventSizes.read(tmp_path / "events.json") == sizes
