"""Spark with the jars of one table format, and the session settings for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from tidemark.services.spark.server import Spark


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
