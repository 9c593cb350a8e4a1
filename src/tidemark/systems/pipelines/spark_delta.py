"""Spark Structured Streaming with Delta's sink: writes the topic to a Delta table at a path, one commit per batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.services.base import Service
from tidemark.services.programs.process import give
from tidemark.services.spark.formats import SparkDelta as Engine
from tidemark.systems.base import Variant
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.delta.table import NO_SERVICE, DeltaRsOptions
from tidemark.systems.pipelines.spark import ALIGNED, Sink, SparkPipeline
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


class SparkDelta(SparkPipeline):
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
    needs: ClassVar[tuple[type[Service], ...]] = (Engine,)
    exactly_once: ClassVar[str] = "offsets in a log before each batch, whose number is a transaction's in Delta's log"

    @classmethod
    def destination(cls, options: Any) -> Variant:
        del options
        return Variant(cls.name, DeltaForSpark, DeltaRsOptions(), cls.title)

    def _sink(self, table: TableSystem) -> Sink:
        assert isinstance(table, DeltaForSpark)
        for path in (table.place, *table.place.rglob("*")):
            give(path)
        return Sink("delta", options={"path": str(table.place)})
