"""Spark Structured Streaming with Iceberg's sink: the topic goes into an Iceberg table, one commit a batch."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from tidemark.services.base import Service
from tidemark.services.iceberg.catalog import RestCatalog
from tidemark.services.spark.formats import SparkIceberg as Engine
from tidemark.systems.base import Context, Durability, Variant
from tidemark.systems.iceberg.catalog import REFERENCE
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg, PyIcebergOptions
from tidemark.systems.pipelines.spark import ALIGNED, Sink, SparkPipeline
from tidemark.systems.tables import TableSystem

CATALOG = "spark.sql.catalog.lake"


class SparkIceberg(SparkPipeline):
    name: ClassVar[str] = "spark-iceberg"
    title: ClassVar[str] = "Spark (Iceberg)"
    format: ClassVar[str] = "Iceberg"
    client: ClassVar[str] = "Iceberg sink of Spark"
    catalog: str = REFERENCE.label
    notes: tuple[str, ...] = (*REFERENCE.notes, ALIGNED)
    needs: ClassVar[tuple[type[Service], ...]] = (Engine,)
    durability: Durability = Durability(
        "The catalog's database flushes its log before a commit is acknowledged; files, those of checkpoints among "
        "them, are left to the page cache.",
        counted=None,
        remark=SparkPipeline.durability.remark,
    )
    exactly_once: ClassVar[str] = "offsets in a log before each batch, whose number is in the snapshot"

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._catalog = cast(RestCatalog, context.services[REFERENCE.server])

    @classmethod
    def destination(cls, options: Any) -> Variant:
        del options
        return Variant(cls.name, IcebergPyIceberg, PyIcebergOptions(), cls.title)

    def _sink(self, table: TableSystem) -> Sink:
        assert isinstance(table, IcebergPyIceberg)
        catalog = {
            CATALOG: "org.apache.iceberg.spark.SparkCatalog",
            f"{CATALOG}.type": "rest",
            f"{CATALOG}.uri": self._catalog.uri,
            f"{CATALOG}.warehouse": self._catalog.warehouse,
        }
        return Sink("iceberg", ".".join(("lake", *table.identifier)), settings=catalog)
