"""Clients that write through servers: rows go through Kafka and a Spark application, or through Spark alone.

`client.py` loads this file, from its own folder, for the systems that name it; it imports nothing of this package
either. A client's `steps` are the parts of its last write in nanoseconds, by the names in STEPS.
"""

from __future__ import annotations

import io
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


UPLOAD, APPLICATION, KAFKA, TASKS, DRIVER, HDFS = "upload", "application", "kafka", "tasks", "driver", "hdfs"
STEPS = (UPLOAD, APPLICATION, KAFKA, TASKS, DRIVER, HDFS)
LONGEST_S = 86_400.0  # the harness stops the client before this
BATCH_ROWS = 1_000
# Avro types of TPC-H's columns, by Arrow's names; the name of a decimal contains its digits.
AVRO = {
    "int64": "long",
    "int32": "int",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "date32[day]": {"type": "int", "logicalType": "date"},
}
Span = Sequence[int]


def avro_schema(table: pa.Table) -> dict[str, Any]:
    """Return the Avro schema of one row, with nullable values; raise ValueError for a type that TPC-H does not have."""
    import pyarrow as pa

    fields = []
    for column in table.schema:
        kind: Any = AVRO.get(str(column.type))
        if pa.types.is_decimal(column.type):
            kind = {"type": "bytes", "logicalType": "decimal", "precision": column.type.precision,
                    "scale": column.type.scale}  # fmt: skip
        if kind is None:
            known = ", ".join([*AVRO, "decimal"])
            raise ValueError(f"the column {column.name} is of the type {column.type}; allowed: {known}")
        fields.append({"name": column.name, "type": ["null", kind]})
    return {"type": "record", "name": "row", "fields": fields}


def divided(began: int, done: int, *layers: Iterable[Span]) -> list[int]:
    """Divide the time from `began` to `done`: each layer gets the time of its spans outside those of earlier layers.

    The last number is the time without any span.
    """
    layered = list(layers)
    edges = sorted(
        (max(began, min(done, at)), step, place)
        for place, spans in enumerate(layered)
        for first, last in spans
        for at, step in ((first, 1), (last, -1))
    )
    found, under_way, since = [0] * (len(layered) + 1), [0] * len(layered), began
    for at, step, place in [*edges, (done, 0, 0)]:
        topmost = next((place for place, count in enumerate(under_way) if count), len(layered))
        found[topmost] += at - since
        since = at
        under_way[place] += step
    return found


class Producing:
    """Producer that sends a table's rows to a separate topic, and waits until the broker has all of them."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        import confluent_kafka

        self.bootstrap: str = order["bootstrap"]
        self._prefix: str = order["topics"]
        self._make: Callable[[dict[str, Any]], Any] = confluent_kafka.Producer
        self._delivered = 0

    def topic(self, address: str) -> str:
        return f"{self._prefix}-{PurePosixPath(address).name}"

    def send(self, messages: Iterable[tuple[bytes | None, bytes]], topic: str, headers: list[tuple[str, bytes]]) -> int:
        """Send `messages` and return their number; raise ValueError if the broker did not accept all."""
        producer = self._make({"bootstrap.servers": self.bootstrap})
        self._delivered, sent = 0, 0
        for key, value in messages:
            while True:
                try:
                    producer.produce(topic, value, key, headers=headers, on_delivery=self._count)
                    break
                except BufferError:
                    producer.poll(1)
            producer.poll(0)
            sent += 1
        producer.flush()
        if self._delivered != sent:
            raise ValueError(f"the broker took {self._delivered:,} messages of {sent:,}")
        return sent

    def _count(self, error: Any, message: Any) -> None:
        del message
        self._delivered += error is None


class Asking:
    """Client of the Spark applications that write tables."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self._jobs: str = order["jobs"]
        self._sink: dict[str, Any] = order["sink"]

    def ask(self, path: str, order: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of the application; raise OSError with its reason if it fails."""
        request = urllib.request.Request(f"{self._jobs}/{path}", json.dumps(order).encode())
        try:
            with urllib.request.urlopen(request, timeout=LONGEST_S) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            raise OSError(str(json.load(error)["error"])) from error

    def sink(self, address: str, keys: Sequence[str]) -> dict[str, Any]:
        """Return the description of the table to write, with the options that depend on its keys."""
        options = {
            name: text.format(keys=",".join(keys), first=keys[0]) for name, text in self._sink["options"].items()
        }
        return {**self._sink, "options": options, "path": address}


def parts_of(answer: Mapping[str, Any]) -> dict[str, int]:
    """Return the parts of an application's time: stages that read Kafka, HDFS calls, other stages, and the rest."""
    kafka, hdfs, tasks, driver = divided(
        answer["began_ns"], answer["done_ns"], answer["kafka"], answer["hdfs"], answer["tasks"]
    )
    return {KAFKA: kafka, HDFS: hdfs, TASKS: tasks, DRIVER: driver}


class Through:
    """Common base, with the members of `Client` in `client.py`."""

    steps: Mapping[str, int] = MappingProxyType({})
    _keys: Sequence[str] = ()

    def hold(self, table: pa.Table, keys: Sequence[str]) -> Any:
        self._keys = keys
        return table

    def prepare(self, source: str) -> None:
        """Do nothing: no other process needs the rows."""


class Legacy(Through):
    """Pandas rows, each as one Avro message; one Spark application per table; reads by Arrow Flight."""

    packages = ("confluent-kafka", "pandas", "fastavro", "pyarrow")

    def __init__(self, order: dict[str, Any]) -> None:
        import fastavro
        import pandas
        import pyarrow.flight as flight

        assert pandas.__version__
        self._fastavro, self._flight = fastavro, flight
        self._reader: str = order["flight"]
        self._limit: int = order["limit"]
        self._producing, self._asking = Producing(order), Asking(order)
        self._schema: dict[str, Any] = {}

    def hold(self, table: pa.Table, keys: Sequence[str]) -> pd.DataFrame:
        """Return the rows in the form that the feature store's client has before it writes."""
        self._schema, self._keys = avro_schema(table), keys
        return table.to_pandas(date_as_object=True)

    def write(self, address: str, rows: pd.DataFrame) -> None:
        subject, topic = PurePosixPath(address).name, self._producing.topic(address)
        headers = [(name, subject.encode()) for name in ("projectId", "featureGroupId", "subjectId")]
        began = time.perf_counter_ns()
        self._producing.send(self._encoded(rows), topic, headers)
        uploaded = time.perf_counter_ns()
        source = {"options": self._source(topic), "subject": subject, "schema": json.dumps(self._schema),
                  "limit": self._limit}  # fmt: skip
        answer = self._asking.ask("job", {"topic": source, **self._asking.sink(address, self._keys)})
        around = answer["ready_ns"] - answer["asked_ns"] + answer["ended_ns"] - answer["done_ns"]
        self.steps = {UPLOAD: uploaded - began, APPLICATION: around, **parts_of(answer)}

    def _source(self, topic: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self._producing.bootstrap,
            "subscribe": topic,
            "startingOffsets": "earliest",
            "endingOffsets": "latest",
        }

    def _encoded(self, rows: pd.DataFrame) -> Iterable[tuple[bytes, bytes]]:
        schema, names = self._fastavro.parse_schema(self._schema), list(rows.columns)
        for row in rows.itertuples(index=False):
            found = dict(zip(names, row, strict=True))
            written = io.BytesIO()
            self._fastavro.schemaless_writer(written, schema, found)
            yield "".join(str(found[key]) for key in self._keys).encode(), written.getvalue()

    def read(self, address: str) -> pa.Table:
        with self._flight.connect(self._reader) as connection:
            return connection.do_get(self._flight.Ticket(urlsplit(address).path.encode())).read_all()


class ArrowKafkaDelta(Through):
    """Record batches in Arrow's format, each as one message; then delta-rs writes what was read from the topic."""

    packages = ("confluent-kafka", "deltalake", "pyarrow")

    def __init__(self, order: dict[str, Any]) -> None:
        import deltalake
        from confluent_kafka import Consumer, TopicPartition

        self._write: Callable[..., Any] = deltalake.write_deltalake
        codec: Any = order["codec"].upper()
        self._properties = deltalake.WriterProperties(compression=codec)
        self._producing = Producing(order)
        self._consumer, self._place = Consumer, TopicPartition

    def write(self, address: str, table: pa.Table) -> None:
        topic = self._producing.topic(address)
        began = time.perf_counter_ns()
        sent = self._producing.send(self._encoded(table), topic, [])
        uploaded = time.perf_counter_ns()
        rows = self._received(topic, sent)
        received = time.perf_counter_ns()
        self._write(address, rows, writer_properties=self._properties)
        self.steps = {UPLOAD: uploaded - began, KAFKA: received - uploaded}

    def _encoded(self, table: pa.Table) -> Iterable[tuple[None, bytes]]:
        import pyarrow as pa

        for batch in table.combine_chunks().to_batches(BATCH_ROWS):
            written = pa.BufferOutputStream()
            with pa.ipc.new_stream(written, batch.schema) as stream:
                stream.write_batch(batch)
            yield None, written.getvalue().to_pybytes()

    def _received(self, topic: str, messages: int) -> pa.Table:
        import pyarrow as pa

        consumer = self._consumer(
            {"bootstrap.servers": self._producing.bootstrap, "group.id": topic, "enable.auto.commit": False}
        )
        consumer.assign([self._place(topic, 0, 0)])
        batches: list[pa.RecordBatch] = []
        while len(batches) < messages:
            for message in consumer.consume(min(messages - len(batches), BATCH_ROWS), 1.0):
                if message.error():
                    raise ValueError(f"the topic cannot be read: {message.error()}")
                batches += pa.ipc.open_stream(message.value())
        consumer.close()
        return pa.Table.from_batches(batches)


class WarmSpark(Through):
    """Running Spark session, which has written before, and holds the rows in memory before they are written."""

    packages = ("pyarrow",)

    def __init__(self, order: dict[str, Any]) -> None:
        self._asking = Asking(order)
        self._practice: str | None = order["practice"]

    def prepare(self, source: str) -> None:
        """Load the rows of the file `source` into the session's memory; the first call also writes them once."""
        self._asking.ask("session", {"hold": source})
        if self._practice is not None:
            self._asking.ask("session", self._asking.sink(self._practice, self._keys))
            self._practice = None

    def write(self, address: str, rows: pa.Table) -> None:
        del rows  # the session has them
        answer = self._asking.ask("session", self._asking.sink(address, self._keys))
        self.steps = {step: took for step, took in parts_of(answer).items() if step != KAFKA}
