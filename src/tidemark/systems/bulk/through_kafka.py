"""Complete tables through Kafka: the legacy path of the study on delta-rs, and delta-rs behind the same broker."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.errors import ServiceError
from tidemark.services.base import Service
from tidemark.services.engines.spark import SparkHudiJobs
from tidemark.services.hdfs import TOOL, DataNode, Flight, NameNode
from tidemark.services.kafka import Kafka
from tidemark.systems.base import Context, Options, option
from tidemark.systems.bulk.base import OnHdfs
from tidemark.systems.bulk.hudi import UPSERT, BulkHudi
from tidemark.systems.delta.bulk import DeltaRsHdfs


@dataclass(frozen=True, slots=True)
class LegacyOptions(Options):
    limit: int = option(
        0,
        "The most messages that the application takes from the topic; 0 takes all. Hudi's streamer takes "
        "5,000,000 in a run unless it is set otherwise; what is beyond a limit is missing from the table.",
        minimum=0,
        examples=(600,),
    )


class ThroughKafka(OnHdfs):
    """Tables through a separate topic each, with one partition, which is created before and removed after the table."""

    is_slow: ClassVar[bool] = True

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._prefix = f"whole-{secrets.token_hex(4)}"
        self._topics: set[str] = set()

    def make_room(self, name: str) -> None:
        topic = f"{self._prefix}-{name}"
        self.context.server(Kafka).create_topic(topic)
        self._topics.add(topic)

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), "bootstrap": self.context.server(Kafka).bootstrap, "topics": self._prefix}

    def remove(self, name: str) -> None:
        super().remove(name)
        self._drop(f"{self._prefix}-{name}")

    def _drop(self, topic: str) -> None:
        if topic in self._topics:
            self.context.server(Kafka).delete_topic(topic)
            self._topics.remove(topic)

    def close(self) -> None:
        for topic in tuple(self._topics):
            with suppress(ServiceError):  # a stopped broker's topics no longer exist
                self._drop(topic)
        super().close()


class Legacy(ThroughKafka, BulkHudi):
    """Legacy path: rows go to Kafka one by one; a Spark application, started per table, upserts them into Hudi."""

    name: ClassVar[str] = "legacy"
    title: ClassVar[str] = "Legacy path (Kafka, Spark, Hudi), HDFS"
    client: ClassVar[str] = "rows of pandas, Avro, Kafka, an application of Spark a write"
    library: ClassVar[str] = "legacy"
    libraries: ClassVar[tuple[str, ...]] = ("confluent_kafka",)
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode, Kafka, SparkHudiJobs, Flight)
    reads: ClassVar[bool] = True
    operation: ClassVar[str] = UPSERT
    Options: ClassVar[type[Options]] = LegacyOptions
    notes: tuple[str, ...] = (
        *BulkHudi.notes,
        "the application is a process of this machine, started for each write: no YARN and no REST service before it",
        "a batch of the topic's messages is read and upserted, as by Hudi's streamer, which is not published "
        "for Spark 3.5",
        "reads go through a Flight server that has DuckDB read the base files",
    )

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), "flight": self.context.server(Flight).address, "limit": self.options.limit}


class ArrowKafkaDelta(ThroughKafka, DeltaRsHdfs):
    """Batches of 1,000 rows go to Kafka in Arrow's format; delta-rs writes what is read from the topic."""

    name: ClassVar[str] = "arrow-kafka-delta"
    title: ClassVar[str] = "Arrow batches, Kafka, delta-rs, HDFS"
    client: ClassVar[str] = "Arrow batches, Kafka, delta-rs"
    library: ClassVar[str] = "arrow-kafka-delta"
    libraries: ClassVar[tuple[str, ...]] = ("deltalake", "confluent_kafka")
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode, Kafka)
    reads: ClassVar[bool] = False
