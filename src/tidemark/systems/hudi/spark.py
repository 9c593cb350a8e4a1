"""Hudi on Spark: the sink of Structured Streaming, and SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import TypeMapping
from tidemark.services.base import Service
from tidemark.services.engines.spark_formats import SparkHudi as Engine
from tidemark.services.engines.spark_formats import SparkHudiSql
from tidemark.systems.base import Options, Variant, option
from tidemark.systems.hudi.table import NAME, HudiTable
from tidemark.systems.sinks.base import TIME
from tidemark.systems.sinks.spark import ALIGNED, Sink, SparkSink
from tidemark.systems.spark_sql.base import MERGE_ON_READ, ModeOptions, SqlEngineTable
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa


STORED = "timestamp[us, tz=UTC]"
UPSERT, INSERT = "upsert", "insert"


@dataclass(frozen=True, slots=True)
class HudiSinkOptions(Options):
    operation: str = option(
        UPSERT,
        "What a batch does (hoodie.datasource.write.operation). upsert, as shipped, looks each key up and "
        "writes a row of a known one again; insert does not look.",
        choices=(UPSERT, INSERT),
    )


class SparkHudi(SparkSink):
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
    Options: ClassVar[type[Options]] = HudiSinkOptions
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


class HudiOnSpark(SqlEngineTable):
    name: ClassVar[str] = "hudi-on-spark"
    title: ClassVar[str] = "Hudi (Spark)"
    format: ClassVar[str] = "Hudi"
    catalog: str = "Hudi timeline"
    notes: tuple[str, ...] = (
        "its server of file listings, which would listen on all interfaces, is off",
        "no field decides which of two rows of a key is newer: with one, merges drop updates without a word",
    )
    needs: ClassVar[tuple[type[Service], ...]] = (SparkHudiSql,)
    reader: ClassVar[str] = "hudi"
    registers: ClassVar[bool] = False
    Options: ClassVar[type[Options]] = ModeOptions
    told: ClassVar[Mapping[str, str]] = {
        "hoodie.embed.timeline.server": "false",
        "hoodie.parquet.compression.codec": "snappy",
    }

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        kind = "mor" if self.options.mode == MERGE_ON_READ else "cow"
        return (self._creating(table, query, date, {"type": kind, "primaryKey": ",".join(key)}),)

    def compact(self, table: str) -> Sequence[str]:
        if self.options.mode != MERGE_ON_READ:
            return ()
        return (f"CALL run_compaction(op => 'scheduleandexecute', table => '{table}')",)
