"""Common base of Spark's pipelines, for all formats: the topic, the stream, and its kills."""

from __future__ import annotations

import secrets
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from tidemark.config import ServicesConfig
from tidemark.services.base import Service
from tidemark.services.engines.spark import Spark, Stream, literal
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.systems.base import Context, Durability
from tidemark.systems.sinks.base import TIME, TYPES, Source, StreamingSink, columns
from tidemark.systems.tables import TableSystem

ALIGNED = "its batches begin at multiples of the interval, and not an interval after the first event that waits"


@dataclass(frozen=True, slots=True)
class Sink:
    """Destination of a stream."""

    format: str
    table: str | None = None  # in a catalog; None: an option sets the location
    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)  # of the session


class SparkSink(StreamingSink):
    """One query of Spark Structured Streaming: one batch per interval, and one commit per batch with events."""

    needs: ClassVar[tuple[type[Service], ...]]  # the first is the Spark that supports the format
    durability: Durability = Durability(
        "Files, those of checkpoints among them, are left to the page cache.",
        counted=None,
        remark="a pipeline acknowledges nothing",
    )
    time: ClassVar[str] = "TIMESTAMP_NTZ"  # the type of a time, which has no zone; the session's zone is UTC

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._spark = cast(Spark, context.services[self.needs[0]])
        self._job = f"job-{secrets.token_hex(6)}"
        self._stream: Stream | None = None
        self._trigger: Mapping[str, str] = {}

        if self._spark.is_elsewhere:
            self.say("a kill ends its driver, which runs here; executors end by themselves when they find it gone")

    @classmethod
    def why_no_kill(cls, options: Any, config: ServicesConfig) -> str | None:
        """Return None: the driver is Tidemark's even if the executors are not."""
        del options, config
        return None

    @abstractmethod
    def _sink(self, table: TableSystem) -> Sink:
        """Return how to write to `table`, which is newly created and empty."""

    def start(self, source: Source, table: TableSystem, interval_ms: int) -> None:
        sink = self._sink(table)
        shape = columns(source.schema, {**TYPES, TIME: self.time}, "Spark")
        self._stream = Stream(
            source={
                "kafka.bootstrap.servers": source.bootstrap,
                "subscribe": source.topic,
                "startingOffsets": "earliest",
            },
            query=f"SELECT event.* FROM (SELECT from_json(CAST(value AS STRING), {literal(shape)}, "
            "map('mode', 'FAILFAST')) AS event FROM events)",
            format=sink.format,
            options=dict(sink.options),
            table=sink.table,
            every_ms=interval_ms,
            settings=dict(sink.settings),
        )
        self._trigger = {"trigger": f"{interval_ms} ms"}
        self._spark.run(self._job, self._stream)

    def kill(self) -> None:
        self._spark.kill()

    def again(self) -> None:
        assert self._stream is not None
        self._spark.start()
        self._spark.run(self._job, self._stream)

    def check(self) -> None:
        self._spark.check_job()

    def stop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._spark.cancel(self._job)

    def settings(self) -> Mapping[str, str]:
        """Return the settings of the stream, without names and addresses that differ between runs."""
        return self._trigger

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {jar.artifact: jar.version for jar in read_jar_lock(jar_lock(cls.needs[0].locks[-1]))}
