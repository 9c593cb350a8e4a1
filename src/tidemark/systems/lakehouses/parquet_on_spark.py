"""Parquet files and nothing else, on Spark: what the formats are held against when tables are loaded and read."""

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
        """A view that lists all folders once, now: files alone have nowhere to keep what a listing finds."""
        self._registered[table] = written
        source = f"USING parquet OPTIONS (path {text(written.folder)})"
        self._spark.sql(f"CREATE TEMPORARY VIEW {table} {source}", f"list {table}", REGISTER_S)

    def compact(self, table: str) -> Sequence[str]:
        del table
        return ()
