"""Spark Structured Streaming with Iceberg's sink: writes the topic to an Iceberg table, one commit per batch."""

from __future__ import annotations

from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.spark.formats import SparkIceberg as Engine
from tidemark.systems.iceberg.catalog import REFERENCE
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.pipelines.into_iceberg import IntoIceberg
from tidemark.systems.pipelines.spark import ALIGNED, Sink, SparkPipeline
from tidemark.systems.tables import TableSystem

CATALOG = "spark.sql.catalog.lake"


class SparkIceberg(IntoIceberg, SparkPipeline):
    name: ClassVar[str] = "spark-iceberg"
    title: ClassVar[str] = "Spark (Iceberg)"
    client: ClassVar[str] = "Iceberg sink of Spark"
    notes: tuple[str, ...] = (*REFERENCE.notes, ALIGNED)
    needs: ClassVar[tuple[type[Service], ...]] = (Engine,)
    exactly_once: ClassVar[str] = "offsets in a log before each batch, whose number is in the snapshot"

    def _sink(self, table: TableSystem) -> Sink:
        assert isinstance(table, IcebergPyIceberg)
        catalog = {
            CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{CATALOG}.type": "rest",
            **{f"{CATALOG}.{name}": value for name, value in self._reached().items()},
        }
        return Sink("iceberg", ".".join(("lake", *table.identifier)), settings=catalog)
