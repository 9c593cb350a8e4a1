"""Spark for Hudi's SQL statements, which name classes of Hive's whether a metastore is used or, as here, is not."""

from __future__ import annotations

from typing import ClassVar

from tidemark.services.spark.formats import SparkHudi


class SparkHudiSql(SparkHudi):
    """As `SparkHudi`, which is enough for who writes by Spark's sinks."""

    name: ClassVar[str] = "spark-hudi-sql"
    title: ClassVar[str] = "Spark (Hudi, SQL)"
    locks: ClassVar[tuple[str, ...]] = (*SparkHudi.locks, "spark-hive")
