"""Delta Lake on Spark: the sink of Structured Streaming, and SQL, also of the release that LHBench measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from tidemark.services.base import Service
from tidemark.services.engines.spark import SparkDelta, SparkDeltaBefore, Stream
from tidemark.services.programs.process import give
from tidemark.systems.base import Options
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.delta.table import NO_SERVICE
from tidemark.systems.sinks import ALIGNED, SparkSink
from tidemark.systems.spark_sql import MERGE_ON_READ, ModeOptions, SqlEngineTable
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa


class DeltaForSpark(DeltaRs):
    """Delta table created by delta-rs that Spark accepts.

    For a column that is not nullable, delta-rs does not list the feature "invariants" in addition to the one for
    timestamps without a zone, and Delta's own library refuses such a table.
    """

    def create(self, schema: pa.Schema) -> None:
        import pyarrow as pa

        super().create(pa.schema([each.with_nullable(True) for each in schema]))


class SparkDeltaSink(SparkSink):
    name: ClassVar[str] = "spark-delta"
    title: ClassVar[str] = "Spark (Delta)"
    format: ClassVar[str] = "Delta Lake"
    client: ClassVar[str] = "Delta sink of Spark"
    catalog: str = "Delta log"
    notes: tuple[str, ...] = (
        NO_SERVICE,
        ALIGNED,
        "its table is made by delta-rs, with a checkpoint every 10 commits, and any column may be null: Spark refuses "
        "the one that delta-rs makes otherwise",
    )
    needs: ClassVar[tuple[type[Service], ...]] = (SparkDelta,)
    into: ClassVar[type[TableSystem]] = DeltaForSpark
    exactly_once: ClassVar[str] = "offsets in a log before each batch, whose number is a transaction's in Delta's log"

    def _sink(self, table: TableSystem) -> Stream:
        assert isinstance(table, DeltaForSpark)
        for path in (table.place, *table.place.rglob("*")):
            give(path)
        return Stream("delta", options={"path": str(table.place)})


class DeltaOnSpark(SqlEngineTable):
    name: ClassVar[str] = "delta-on-spark"
    title: ClassVar[str] = "Delta (Spark)"
    format: ClassVar[str] = "Delta Lake"
    catalog: str = "Delta log"
    notes: tuple[str, ...] = ("a table's state is put together by as many tasks as processors, and not by 50",)
    needs: ClassVar[tuple[type[Service], ...]] = (SparkDelta,)
    reader: ClassVar[str] = "delta"
    Options: ClassVar[type[Options]] = ModeOptions

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        del key
        vectors = str(self.options.mode == MERGE_ON_READ).lower()
        return (self._creating(table, query, date, {"delta.enableDeletionVectors": vectors}),)

    def compact(self, table: str) -> Sequence[str]:
        return (f"OPTIMIZE {table}",)


class DeltaOnSparkBefore(DeltaOnSpark):
    """Delta before deletion vectors: a merge copies the files of changed rows."""

    name: ClassVar[str] = "delta-on-spark-before"
    title: ClassVar[str] = "Delta 2.2 (Spark 3.3)"
    needs: ClassVar[tuple[type[Service], ...]] = (SparkDeltaBefore,)
    release: ClassVar[str] = " (Spark 3.3)"
    Options: ClassVar[type[Options]] = Options

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        del key
        return (self._creating(table, query, date, {}),)
