"""Parquet files and nothing else, on Spark: what the formats are held against when tables are loaded and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.spark.server import Spark
from tidemark.systems.lakehouses.spark import SparkLakehouse


class ParquetOnSpark(SparkLakehouse):
    name: ClassVar[str] = "parquet-on-spark"
    title: ClassVar[str] = "Parquet (Spark)"
    format: ClassVar[str] = "Parquet"
    notes: tuple[str, ...] = ("no table format: rows cannot be changed, and nothing is atomic",)
    needs: ClassVar[tuple[type[Service], ...]] = (Spark,)
    reader: ClassVar[str] = "parquet"
    merges: ClassVar[bool] = False

    def compact(self, table: str) -> Sequence[str]:
        del table
        return ()
