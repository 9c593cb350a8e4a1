"""Streaming sinks of Iceberg: Flink SQL, Kafka Connect and Spark, through a REST catalog."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tidemark.services.base import Service
from tidemark.services.engines.connect import KafkaConnect, KafkaConnectPrompt
from tidemark.services.engines.flink import Flink
from tidemark.services.engines.spark import SparkIceberg as Engine
from tidemark.services.engines.spark import Stream
from tidemark.services.kafka import Kafka
from tidemark.systems.base import Context, Durability, Options, option
from tidemark.systems.duckdb_client import literal
from tidemark.systems.iceberg.catalog import REFERENCE, as_it_is
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.sinks import ALIGNED, TIME, TYPES, Source, SparkSink, StreamingSink, columns, quoted
from tidemark.systems.tables import TableSystem

NOTHING_ACKNOWLEDGED = "a pipeline acknowledges nothing"


class IntoIceberg(StreamingSink):
    """Pipeline into a table that PyIceberg creates and reads; the catalog is the reference server or the user's own."""

    format: ClassVar[str] = "Iceberg"
    catalog: str = REFERENCE.label
    into: ClassVar[type[TableSystem]] = IcebergPyIceberg
    durability: Durability = Durability(
        "The catalog's database flushes its log before a commit is acknowledged; files, those of checkpoints among "
        "them, are left to the page cache.",
        counted=None,
        remark=NOTHING_ACKNOWLEDGED,
    )

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._catalog = context.server(REFERENCE.server)
        found = as_it_is(REFERENCE, self._catalog)
        if found is not REFERENCE:
            self.catalog, self.durability = found.label, replace(found.durability, remark=NOTHING_ACKNOWLEDGED)
            self.notes = (*found.notes, *(note for note in self.notes if note not in REFERENCE.notes))

    def _reached(self) -> Mapping[str, str]:
        """Return the properties that connect a client to the catalog; a user's own one may have a single warehouse."""
        named = {"warehouse": self._catalog.warehouse} if self._catalog.warehouse else {}
        return {"uri": self._catalog.uri, **named}


PARALLELISM = 1  # the number of partitions of the topic


@dataclass(frozen=True, slots=True)
class FlinkOptions(Options):
    min_pause_ms: int = option(
        0,
        "The least time between two checkpoints (execution.checkpointing.min-pause). Without it, those "
        "that a long one delayed follow it at once, each with the few events that came in between.",
        minimum=0,
    )


class FlinkIceberg(IntoIceberg):
    name: ClassVar[str] = "flink-iceberg"
    title: ClassVar[str] = "Flink SQL (Iceberg)"
    client: ClassVar[str] = "Iceberg sink of Flink"
    notes: tuple[str, ...] = (
        *REFERENCE.notes,
        "it commits with each checkpoint and makes none unless an interval is set, as it is here",
        "it starts processes (chmod) for the files of a commit, by Hadoop's local file system",
    )
    needs: ClassVar[tuple[type[Service], ...]] = (Flink,)
    Options: ClassVar[type[Options]] = FlinkOptions
    exactly_once: ClassVar[str] = "offsets and data files in one checkpoint, whose number is in the snapshot"

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._flink = context.server(Flink)
        self._job = f"tidemark-{secrets.token_hex(6)}"
        self._statements: tuple[str, ...] = ()
        self._settings: Mapping[str, str] = {}

    def start(self, source: Source, table: TableSystem, interval_ms: int) -> None:
        assert isinstance(table, IcebergPyIceberg)
        catalog = {"type": "iceberg", "catalog-type": "rest", **self._reached()}
        place = ".".join(map(quoted, ("lake", *table.identifier)))
        shape = columns(source.schema, {**TYPES, TIME: "TIMESTAMP(6)"}, "Flink")
        self._statements = (
            f"CREATE TEMPORARY TABLE events ({shape}) WITH ({_pairs(_events(source))})",
            f"CREATE CATALOG lake WITH ({_pairs(catalog)})",
            f"INSERT INTO {place} SELECT * FROM events",
        )
        self._settings = {
            "parallelism.default": str(PARALLELISM),
            "execution.checkpointing.interval": f"{interval_ms} ms",
            "execution.checkpointing.min-pause": f"{self.options.min_pause_ms} ms",
        }
        self._run()
        if (storage := self._flink.checkpoint_storage(self._job)) is not None:
            self._settings = {**self._settings, "checkpoint_storage": storage}

    def _run(self) -> None:
        self._flink.run(self._job, self._statements, self._settings)

    def check(self) -> None:
        self._flink.check_job()

    def stop(self) -> None:
        if self._statements:
            self._statements = ()
            self._flink.cancel(self._job)

    def settings(self) -> Mapping[str, str]:
        """Return the settings of the job, without names and addresses that differ between runs."""
        return self._settings


def _events(source: Source) -> dict[str, str]:
    """Return the options of Flink's source table: the complete topic, from its first event and without an end."""
    return {
        "connector": "kafka",
        "topic": source.topic,
        "properties.bootstrap.servers": source.bootstrap,
        "scan.startup.mode": "earliest-offset",
        "format": "json",
        "json.timestamp-format.standard": "ISO-8601",
    }


def _pairs(options: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in options.items())


DEFAULT_INTERVAL_S = 300  # iceberg.control.commit.interval-ms, as shipped
DEFAULT_TIMEOUT_MS = 30_000  # iceberg.control.commit.timeout-ms, as shipped
FILES = "org.apache.iceberg.hadoop.HadoopFileIO"


@dataclass(frozen=True, slots=True)
class ConnectOptions(Options):
    commit_timeout_ms: int = option(
        DEFAULT_TIMEOUT_MS,
        "How long a commit waits for its tasks before it takes what has come (iceberg.control.commit.timeout-ms).",
        minimum=1000,
    )
    prompt: bool = option(
        False,
        "Let the worker commit offsets every second (offset.flush.interval.ms: 1000) and not every "
        "minute: a task that waits for events looks at nothing else until that is due. And let the broker notice "
        "after 6 s, not after 45 s, that it was killed (session.timeout.ms).",
    )

    @property
    def worker(self) -> type[KafkaConnect]:
        return KafkaConnectPrompt if self.prompt else KafkaConnect


class KafkaConnectIceberg(IntoIceberg):
    name: ClassVar[str] = "kafka-connect-iceberg"
    title: ClassVar[str] = "Kafka Connect (Iceberg)"
    client: ClassVar[str] = "Iceberg sink of Kafka Connect"
    notes: tuple[str, ...] = (
        *REFERENCE.notes,
        f"it commits every {DEFAULT_INTERVAL_S} s unless it is set otherwise, as it is here",
    )
    durability: Durability = Durability(
        "The catalog's database flushes its log before a commit is acknowledged; files are left to the page cache.",
        counted=None,
        remark=NOTHING_ACKNOWLEDGED,
    )
    exactly_once: ClassVar[str] = "offsets and data files in one transaction of the broker, offsets in the snapshot"
    Options: ClassVar[type[Options]] = ConnectOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._worker = context.server(options.worker)
        self._kafka = context.server(Kafka)
        token = secrets.token_hex(6)
        self._connector = f"tidemark-{token}"
        self._control = f"tidemark-control-{token}"  # topic through which its tasks and their coordinator communicate
        self._config: Mapping[str, str] = {}
        self._commits: Mapping[str, str] = {}  # its settings for commits

    @classmethod
    def for_single_events(cls, options: Any) -> Any:
        return replace(options, prompt=True)

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        return (options.worker, *super().needs_for(options))

    def start(self, source: Source, table: TableSystem, interval_ms: int) -> None:
        assert isinstance(table, IcebergPyIceberg)
        self._kafka.create_topic(self._control)
        self._config = {
            "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
            "tasks.max": "1",
            "topics": source.topic,
            "iceberg.tables": ".".join(table.identifier),
            "iceberg.control.topic": self._control,
            "iceberg.control.commit.interval-ms": str(interval_ms),
            "iceberg.control.commit.timeout-ms": str(self.options.commit_timeout_ms),
            "iceberg.catalog.type": "rest",
            **{f"iceberg.catalog.{name}": value for name, value in self._reached().items()},
            **self._of_the_worker(source),
        }
        commits = "iceberg.control.commit"
        self._commits = {name: value for name, value in self._config.items() if name.startswith(commits)}
        self._run()

    def _of_the_worker(self, source: Source) -> dict[str, str]:
        """Return settings that a user's own worker may have differently, or those specific to Tidemark's worker."""
        if not self._worker.is_external:
            return {
                "iceberg.catalog.io-impl": FILES,
                "iceberg.kafka.session.timeout.ms": self._worker.told["session.timeout.ms"],
            }
        return {
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "iceberg.kafka.bootstrap.servers": source.bootstrap,
        }

    def _run(self) -> None:
        self._worker.create(self._connector, self._config)

    def check(self) -> None:
        before = len(self._worker.restarts)
        self._worker.check_tasks(self._connector)
        for reason in self._worker.restarts[before:]:
            self.say(f"it was started again in a window: {reason.splitlines()[0]}")

    def stop(self) -> None:
        config, self._config = self._config, {}
        if config:
            if not self._worker.has_ended():
                self._worker.drop(self._connector)
            if not self._kafka.has_ended():
                self._kafka.delete_topic(self._control)

    def settings(self) -> Mapping[str, str]:
        """Return the settings of the connector, without names and addresses that differ between runs."""
        return {**self._commits, **self._worker.told}


CATALOG = "spark.sql.catalog.lake"


class SparkIceberg(IntoIceberg, SparkSink):
    name: ClassVar[str] = "spark-iceberg"
    title: ClassVar[str] = "Spark (Iceberg)"
    client: ClassVar[str] = "Iceberg sink of Spark"
    notes: tuple[str, ...] = (*REFERENCE.notes, ALIGNED)
    needs: ClassVar[tuple[type[Service], ...]] = (Engine,)
    exactly_once: ClassVar[str] = "offsets in a log before each batch, whose number is in the snapshot"

    def _sink(self, table: TableSystem) -> Stream:
        assert isinstance(table, IcebergPyIceberg)
        catalog = {
            CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{CATALOG}.type": "rest",
            **{f"{CATALOG}.{name}": value for name, value in self._reached().items()},
        }
        return Stream("iceberg", ".".join(("lake", *table.identifier)), settings=catalog)
