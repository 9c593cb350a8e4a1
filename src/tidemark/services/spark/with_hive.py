"""Spark for Hudi's SQL statements, which reference Hive classes whether or not, as here, a metastore is used."""

from __future__ import annotations

from typing import ClassVar

from tidemark.services.spark.formats import SparkHudi


class SparkHudiSql(SparkHudi):
    """Spark with Hudi and Hive classes; `SparkHudi` is enough for writes by Spark's sinks."""

    name: ClassVar[str] = "spark-hudi-sql"
    title: ClassVar[str] = "Spark (Hudi, SQL)"
    locks: ClassVar[tuple[str, ...]] = (*SparkHudi.locks, "spark-hive")
