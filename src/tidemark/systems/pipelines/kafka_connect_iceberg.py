"""Kafka Connect with Iceberg's sink connector: the topic is written to an Iceberg table, with commits by time only."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from tidemark.services.base import Service
from tidemark.services.kafka import Kafka
from tidemark.services.pipelines.connect import KafkaConnect, KafkaConnectPrompt
from tidemark.systems.base import DEFAULT, Capability, Context, Durability, Options
from tidemark.systems.iceberg.catalog import REFERENCE
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.pipelines.into_iceberg import NOTHING_ACKNOWLEDGED, IntoIceberg
from tidemark.systems.pipelines.kind import Source
from tidemark.systems.tables import TableSystem

DEFAULT_INTERVAL_S = 300  # iceberg.control.commit.interval-ms, as shipped
DEFAULT_TIMEOUT_MS = 30_000  # iceberg.control.commit.timeout-ms, as shipped
FILES = "org.apache.iceberg.hadoop.HadoopFileIO"


@dataclass(frozen=True, slots=True)
class ConnectOptions(Options):
    commit_timeout_ms: int = field(
        default=DEFAULT_TIMEOUT_MS,
        metadata={
            "help": "How long a commit waits for its tasks before it takes what has come "
            "(iceberg.control.commit.timeout-ms).",
            "minimum": 1000,
        },
    )
    prompt: bool = field(
        default=False,
        metadata={
            "help": "Let the worker commit offsets every second (offset.flush.interval.ms: 1000) and not every "
            "minute: a task that waits for events looks at nothing else until that is due. And let the broker notice "
            "after 6 s, not after 45 s, that it was killed (session.timeout.ms).",
        },
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
    capabilities: frozenset[Capability] = frozenset({Capability.READ_BACK, Capability.HISTORY})
    durability: Durability = Durability(
        "The catalog's database flushes its log before a commit is acknowledged; files are left to the page cache.",
        counted=None,
        remark=NOTHING_ACKNOWLEDGED,
    )
    exactly_once: ClassVar[str] = "offsets and data files in one transaction of the broker, offsets in the snapshot"
    Options: ClassVar[type[Options]] = ConnectOptions

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._worker = cast(KafkaConnect, context.services[options.worker])
        self._kafka = cast(Kafka, context.services[Kafka])
        self._token = secrets.token_hex(6)
        self._config: Mapping[str, str] = {}
        self._commits: Mapping[str, str] = {}  # its settings for commits

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        return (options.worker, *super().needs_for(options))

    @property
    def _connector(self) -> str:
        return f"tidemark-{self._token}"

    @property
    def _control(self) -> str:
        """Topic through which its tasks and their coordinator communicate."""
        return f"tidemark-control-{self._token}"

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
        self._worker.create(self._connector, self._config)

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

    def kill(self) -> None:
        self._worker.kill()

    def again(self) -> None:
        self._worker.start()
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

    @property
    def durability_level(self) -> str:
        return DEFAULT

    def settings(self) -> Mapping[str, str]:
        """Return the settings of the connector, without names and addresses that differ between runs."""
        return {**self._commits, **self._worker.told}
