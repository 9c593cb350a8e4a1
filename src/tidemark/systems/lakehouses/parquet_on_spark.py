"""Plain Parquet files on Spark: the baseline of the formats for loading and reading tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.spark.server import Spark
from tidemark.systems.lakehouses.kind import Written
from tidemark.systems.lakehouses.spark import REGISTER_S, SparkLakehouse, text


class ParquetOnSpark(SparkLakehouse):
    name: ClassVar[str] = "parquet-on-spark"
    title: ClassVar[str] = "Parquet (Spark)"
    format: ClassVar[str] = "Parquet"
    notes: tuple[str, ...] = ("no table format: rows cannot be changed, and nothing is atomic",)
    needs: ClassVar[tuple[type[Service], ...]] = (Spark,)
    reader: ClassVar[str] = "parquet"
    merges: ClassVar[bool] = False

    def register(self, table: str, written: Written) -> None:
        """Create a view that lists all folders once, now: plain files have no metadata to keep a listing in."""
        self._registered[table] = written
        source = f"USING parquet OPTIONS (path {text(written.folder)})"
        self._spark.sql(f"CREATE TEMPORARY VIEW {table} {source}", f"list {table}", REGISTER_S)

    def compact(self, table: str) -> Sequence[str]:
        del table
        return ()
