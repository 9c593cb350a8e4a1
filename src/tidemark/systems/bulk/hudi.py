"""Copy-on-write Hudi tables on HDFS, written completely by Spark applications, read by their file names and DuckDB."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tidemark.errors import SystemFailure
from tidemark.runs.manifest import Footprint
from tidemark.services.base import Service
from tidemark.services.engines.spark import SparkDeltaJobs, SparkHudiJobs, SparkJobs
from tidemark.services.hdfs import DataNode, NameNode
from tidemark.services.programs.hudi_files import METADATA, TIMELINE, begun, newest
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.systems.bulk.base import FETCHED, OnHdfs, ParquetOnHdfs
from tidemark.systems.delta.bulk import DeltaRsHdfs
from tidemark.systems.hudi import writer_options
from tidemark.systems.tables import footprint_of

UPSERT, BULK_INSERT = "upsert", "bulk_insert"
WARM = "its session holds the rows in memory, and has written them once, before the first write that is timed"
TASKS = "5"  # of a shuffle, as in the feature store


class ThroughSpark(OnHdfs):
    """Tables written by a Spark application on request; the options of `sink` may name the table's keys."""

    is_slow: ClassVar[bool] = True
    jobs: ClassVar[type[SparkJobs]]

    def sink(self) -> dict[str, Any]:
        raise NotImplementedError(self.name)

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        jobs = self.context.server(self.jobs).uri
        more = {"jobs": jobs, "sink": self.sink(), "practice": self.address("practice")}
        return {**super().order(processors), **more}

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Return the versions of the format's jars."""
        (lock,) = (name for name in cls.jobs.locks if name not in ("spark", "spark-avro"))
        return {jar.artifact: jar.version for jar in read_jar_lock(jar_lock(lock))}


class BulkHudi(ThroughSpark, ParquetOnHdfs):
    format: ClassVar[str] = "Hudi"
    client: ClassVar[str] = "Spark, warm"
    catalog: str = "Hudi timeline"
    library: ClassVar[str] = "warm-spark"
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode, SparkHudiJobs)
    jobs: ClassVar[type[SparkJobs]] = SparkHudiJobs
    reads: ClassVar[bool] = False
    notes: tuple[str, ...] = (
        *OnHdfs.notes,
        "Hudi 1.2 on Spark 3.5, where the thesis had 0.14; its server of file listings, which would listen on all "
        "interfaces, is off",
    )
    operation: ClassVar[str]
    reads_by: ClassVar[str] = f"{OnHdfs.reads_by}, {FETCHED}, which names and timeline tell"

    def sink(self) -> dict[str, Any]:
        options = writer_options("whole", self.operation, "{keys}", self.context.codec)
        first = {"hoodie.datasource.write.precombine.field": "{first}"}
        shuffles = {f"hoodie.{kind}.shuffle.parallelism": TASKS for kind in ("upsert", "insert", "bulkinsert")}
        return {"format": "hudi", "mode": "append", "options": {**options, **first, **shuffles}}

    def parquet(self, place: Path) -> Sequence[Path]:
        completed = {instant for path in (place / TIMELINE).glob("*") if (instant := begun(path.name))}
        found = newest(sorted(place.glob("*.parquet")), completed)
        if not found:
            raise SystemFailure(f"{self.name}: the timeline names no completed commit with rows in {place}")
        return found

    def footprint(self, name: str) -> Footprint:
        sizes = ((Path(path), size) for path, size in self.listed(name).items())
        return footprint_of((path.name[0] != "." and METADATA not in path.parts, size) for path, size in sizes)


class SparkHudiHdfs(BulkHudi):
    """Last part of the legacy path only, without Kafka, Avro and the start of an application."""

    name: ClassVar[str] = "spark-hudi-hdfs"
    notes: tuple[str, ...] = (*BulkHudi.notes, WARM)
    title: ClassVar[str] = "Spark, warm: Hudi upsert, HDFS"
    operation: ClassVar[str] = UPSERT


class SparkHudiBulk(BulkHudi):
    """Bulk insert: the same without key lookups."""

    name: ClassVar[str] = "spark-hudi-bulk"
    notes: tuple[str, ...] = (*BulkHudi.notes, WARM)
    title: ClassVar[str] = "Spark, warm: Hudi bulk insert, HDFS"
    operation: ClassVar[str] = BULK_INSERT


class SparkDeltaHdfs(ThroughSpark, DeltaRsHdfs):
    """Delta, written by Spark: differs from delta-rs only in the engine, and from Hudi on Spark only in the format."""

    name: ClassVar[str] = "spark-delta-hdfs"
    notes: tuple[str, ...] = (
        *OnHdfs.notes,
        WARM,
        "Delta's log goes to HDFS by another client of Hadoop's, whose calls count as the driver's",
    )
    title: ClassVar[str] = "Spark, warm: Delta, HDFS"
    client: ClassVar[str] = "Spark, warm"
    library: ClassVar[str] = "warm-spark"
    libraries: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode, SparkDeltaJobs)
    jobs: ClassVar[type[SparkJobs]] = SparkDeltaJobs
    reads: ClassVar[bool] = False

    def sink(self) -> dict[str, Any]:
        return {"format": "delta", "mode": "append", "options": {"compression": self.context.codec}}
