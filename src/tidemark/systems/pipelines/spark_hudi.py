"""Spark Structured Streaming with Hudi's sink: writes the topic to a Hudi table at a path, one commit per batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import TypeMapping
from tidemark.services.base import Service
from tidemark.services.spark.formats import SparkHudi as Engine
from tidemark.systems.base import Options, Variant
from tidemark.systems.hudi.table import NAME, HudiTable
from tidemark.systems.pipelines.kind import TIME
from tidemark.systems.pipelines.spark import ALIGNED, Sink, SparkPipeline
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

STORED = "timestamp[us, tz=UTC]"
UPSERT, INSERT = "upsert", "insert"


@dataclass(frozen=True, slots=True)
class HudiOptions(Options):
    operation: str = field(
        default=UPSERT,
        metadata={
            "help": "What a batch does (hoodie.datasource.write.operation). upsert, as shipped, looks each key up and "
            "writes a row of a known one again; insert does not look.",
            "choices": (UPSERT, INSERT),
        },
    )


class SparkHudi(SparkPipeline):
    name: ClassVar[str] = "spark-hudi"
    title: ClassVar[str] = "Spark (Hudi)"
    format: ClassVar[str] = "Hudi"
    client: ClassVar[str] = "Hudi sink of Spark"
    catalog: str = HudiTable.catalog
    notes: tuple[str, ...] = (
        ALIGNED,
        "copy-on-write: a batch rewrites the files that its rows go into, the smallest among them",
        "its server of file listings, which would listen on all interfaces, is off",
    )
    needs: ClassVar[tuple[type[Service], ...]] = (Engine,)
    Options: ClassVar[type[Options]] = HudiOptions
    exactly_once: ClassVar[str] = "offsets in a log before each batch, whose number is in the commit; keys"
    time: ClassVar[str] = "TIMESTAMP"

    @classmethod
    def destination(cls, options: Any) -> Variant:
        del options
        return Variant(cls.name, HudiTable, Options(), cls.title)

    def type_mappings(self, schema: pa.Schema) -> list[TypeMapping]:
        reason = "a time without a zone is given as one of UTC"
        return [TypeMapping(each.name, TIME, STORED, reason) for each in schema if str(each.type) == TIME]

    def _sink(self, table: TableSystem) -> Sink:
        assert isinstance(table, HudiTable)
        return Sink("hudi", options={**self._told(), "path": str(table.place)})

    def settings(self) -> Mapping[str, str]:
        return {**super().settings(), **self._told()}

    def _told(self) -> Mapping[str, str]:
        return {
            "hoodie.table.name": NAME,
            "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
            "hoodie.datasource.write.operation": self.options.operation,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.parquet.compression.codec": self.context.codec,
            "hoodie.embed.timeline.server": "false",
        }
