"""Spark with the jars of one format of tables, and a session that knows it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

from tidemark.services.spark.server import Spark


class SparkIceberg(Spark):
    """A catalog is told to the session by settings of its own."""

    name: ClassVar[str] = "spark-iceberg"
    title: ClassVar[str] = "Spark (Iceberg)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-iceberg")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }


class SparkDelta(Spark):
    """Tables are on paths, or in the session's own catalog."""

    name: ClassVar[str] = "spark-delta"
    title: ClassVar[str] = "Spark (Delta)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-delta")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # A table's state is put together by so many tasks, of which Delta has 50 where nobody says so.
        "spark.databricks.delta.snapshotPartitions": str(os.cpu_count() or 1),
    }


class SparkHudi(Spark):
    """Tables are on paths, or in the session's own catalog. A write must leave its server of file listings off."""

    name: ClassVar[str] = "spark-hudi"
    title: ClassVar[str] = "Spark (Hudi)"
    locks: ClassVar[tuple[str, ...]] = ("spark", "spark-hudi")
    session: ClassVar[Mapping[str, str]] = {
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }
