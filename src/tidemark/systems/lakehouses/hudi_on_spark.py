"""Hudi on Spark; a merge copies the files of changed rows, or appends logs to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.spark.with_hive import SparkHudiSql
from tidemark.systems.base import Options
from tidemark.systems.lakehouses.spark import MERGE_ON_READ, ModeOptions, SparkLakehouse


class HudiOnSpark(SparkLakehouse):
    name: ClassVar[str] = "hudi-on-spark"
    title: ClassVar[str] = "Hudi (Spark)"
    format: ClassVar[str] = "Hudi"
    catalog: str = "Hudi timeline"
    notes: tuple[str, ...] = (
        "its server of file listings, which would listen on all interfaces, is off",
        "no field decides which of two rows of a key is newer: with one, merges drop updates without a word",
    )
    needs: ClassVar[tuple[type[Service], ...]] = (SparkHudiSql,)
    reader: ClassVar[str] = "hudi"
    registers: ClassVar[bool] = False
    Options: ClassVar[type[Options]] = ModeOptions
    told: ClassVar[Mapping[str, str]] = {
        "hoodie.embed.timeline.server": "false",
        "hoodie.parquet.compression.codec": "snappy",
    }

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        kind = "mor" if self.options.mode == MERGE_ON_READ else "cow"
        return (self._creating(table, query, date, {"type": kind, "primaryKey": ",".join(key)}),)

    def compact(self, table: str) -> Sequence[str]:
        if self.options.mode != MERGE_ON_READ:
            return ()
        return (f"CALL run_compaction(op => 'scheduleandexecute', table => '{table}')",)
