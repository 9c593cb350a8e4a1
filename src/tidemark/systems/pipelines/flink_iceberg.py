"""Flink SQL with Iceberg's sink: the topic is written to an Iceberg table, with one commit per checkpoint."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

from tidemark.services.base import Service
from tidemark.services.flink.server import Flink
from tidemark.systems.base import Capability, Context, Options
from tidemark.systems.iceberg.catalog import REFERENCE
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.pipelines.into_iceberg import IntoIceberg
from tidemark.systems.pipelines.kind import TIME, TYPES, Source, columns, quoted
from tidemark.systems.tables import TableSystem

PARALLELISM = 1  # the number of partitions of the topic


@dataclass(frozen=True, slots=True)
class FlinkOptions(Options):
    min_pause_ms: int = field(
        default=0,
        metadata={
            "help": "The least time between two checkpoints (execution.checkpointing.min-pause). Without it, those "
            "that a long one delayed follow it at once, each with the few events that came in between.",
            "minimum": 0,
        },
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
    capabilities: frozenset[Capability] = frozenset({Capability.READ_BACK, Capability.HISTORY})
    needs: ClassVar[tuple[type[Service], ...]] = (Flink,)
    Options: ClassVar[type[Options]] = FlinkOptions
    exactly_once: ClassVar[str] = "offsets and data files in one checkpoint, whose number is in the snapshot"

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._flink = cast(Flink, context.services[Flink])
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
        self._flink.run(self._job, self._statements, self._settings)
        storage = self._flink.checkpoint_storage(self._job)
        if storage is not None:
            self._settings = {**self._settings, "checkpoint_storage": storage}

    def kill(self) -> None:
        self._flink.kill()

    def again(self) -> None:
        self._flink.start()
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
    return ", ".join(f"{_text(name)} = {_text(value)}" for name, value in options.items())


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
