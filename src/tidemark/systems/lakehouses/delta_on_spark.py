"""Delta Lake on Spark; a merge copies the files of changed rows, or marks those rows in deletion vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.spark.formats import SparkDelta
from tidemark.systems.base import Options
from tidemark.systems.lakehouses.spark import MERGE_ON_READ, ModeOptions, SparkLakehouse


class DeltaOnSpark(SparkLakehouse):
    name: ClassVar[str] = "delta-on-spark"
    title: ClassVar[str] = "Delta (Spark)"
    format: ClassVar[str] = "Delta Lake"
    catalog: str = "Delta log"
    notes: tuple[str, ...] = ("a table's state is put together by as many tasks as processors, and not by 50",)
    needs: ClassVar[tuple[type[Service], ...]] = (SparkDelta,)
    reader: ClassVar[str] = "delta"
    Options: ClassVar[type[Options]] = ModeOptions

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        del key
        vectors = str(self.options.mode == MERGE_ON_READ).lower()
        return (self._creating(table, query, date, {"delta.enableDeletionVectors": vectors}),)

    def compact(self, table: str) -> Sequence[str]:
        return (f"OPTIMIZE {table}",)
