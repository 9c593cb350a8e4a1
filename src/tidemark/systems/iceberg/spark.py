"""Iceberg on Spark, with a folder as catalog; a merge copies files, or adds delete files to them.

Also the releases that LHBench measured; Hudi 0.12.0, which it measured as well, is in no package registry.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.engines.spark import SparkIceberg, SparkIceberg0p14, SparkIcebergBefore
from tidemark.services.programs.process import give
from tidemark.systems.base import Options, option
from tidemark.systems.spark_sql import COPY_ON_WRITE, MODE, REGISTER_S, ModeOptions, SqlEngineTable, Written

NAMESPACE = "db"
FIRST, HINT = "v1.metadata.json", "version-hint.text"  # of a table in a catalog that is a folder


@dataclass(frozen=True, slots=True)
class IcebergOptions(ModeOptions):
    format_version: int = option(2, "Of the table: 2 has position deletes, 3 deletion vectors.", choices=(2, 3))


class IcebergOnSpark(SqlEngineTable):
    name: ClassVar[str] = "iceberg-on-spark"
    title: ClassVar[str] = "Iceberg (Spark)"
    format: ClassVar[str] = "Iceberg"
    catalog: str = "a folder (Hadoop catalog)"
    notes: tuple[str, ...] = ("its catalog is a folder, which only one writer may use",)
    needs: ClassVar[tuple[type[Service], ...]] = (SparkIceberg,)
    reader: ClassVar[str] = "iceberg"
    is_placed: ClassVar[bool] = False
    Options: ClassVar[type[Options]] = IcebergOptions

    def _use(self) -> None:
        catalog = f"spark.sql.catalog.{self._database}"
        self._set(catalog, "org.apache.iceberg.spark.SparkCatalog")
        self._set(f"{catalog}.type", "hadoop")
        self._set(f"{catalog}.warehouse", str(self.warehouse))
        self._spark.sql(f"CREATE NAMESPACE {self._database}.{NAMESPACE}")
        self._spark.sql(f"USE {self._database}.{NAMESPACE}")

    def location(self, table: str) -> Path:
        return self.warehouse / NAMESPACE / table

    def register(self, table: str, written: Written) -> None:
        """Write the table's first metadata file and the hint that names it; Iceberg then rewrites all others."""
        source, folder = written.metadata[self.reader], self.location(table) / "metadata"
        self._registered[table] = replace(written, metadata={self.reader: folder})
        folder.mkdir(parents=True)
        described = json.loads((source / FIRST).read_text())
        (folder / FIRST).write_text(json.dumps({**described, "location": str(self.location(table))}))
        (folder / HINT).write_text("1")
        give(folder.parent)
        give(folder)
        anew = f"CALL {self._database}.system.rewrite_manifests(table => '{NAMESPACE}.{table}', use_caching => false)"
        self._spark.sql(anew, f"register {table}", REGISTER_S)

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        del key
        modes = {f"write.{command}.mode": self.options.mode for command in ("merge", "update", "delete")}
        # With one open writer per partition, thousands of partitions do not fit into memory; rows arrive sorted.
        apart = {"write.spark.fanout.enabled": "false"} if date else {}
        version = {"format-version": str(self.options.format_version), "write.parquet.compression-codec": "snappy"}
        return (self._creating(table, query, date, {**version, **modes, **apart}),)

    def compact(self, table: str) -> Sequence[str]:
        return (
            f"CALL {self._database}.system.rewrite_data_files(table => '{NAMESPACE}.{table}', "
            "options => map('rewrite-all', 'true'))",
        )


@dataclass(frozen=True, slots=True)
class IcebergBeforeOptions(ModeOptions):
    @property
    def format_version(self) -> int:
        """Format version of the table; version 3 came later."""
        return 2


@dataclass(frozen=True, slots=True)
class IcebergCopyOptions(IcebergBeforeOptions):
    mode: str = field(default=COPY_ON_WRITE, metadata=MODE)


class IcebergOnSparkBefore(IcebergOnSpark):
    name: ClassVar[str] = "iceberg-on-spark-before"
    title: ClassVar[str] = "Iceberg 1.1 (Spark 3.3)"
    needs: ClassVar[tuple[type[Service], ...]] = (SparkIcebergBefore,)
    release: ClassVar[str] = " (Spark 3.3)"
    Options: ClassVar[type[Options]] = IcebergBeforeOptions


class IcebergOnSparkBeforeCow(IcebergOnSparkBefore):
    """Iceberg in copy-on-write mode, which the paper measured of this release and which is its default."""

    name: ClassVar[str] = "iceberg-on-spark-before-cow"
    title: ClassVar[str] = "Iceberg 1.1 (Spark 3.3), CoW"
    Options: ClassVar[type[Options]] = IcebergCopyOptions


class IcebergOnSpark0p14(IcebergOnSparkBefore):
    name: ClassVar[str] = "iceberg-on-spark-0p14"
    title: ClassVar[str] = "Iceberg 0.14 (Spark 3.3)"
    needs: ClassVar[tuple[type[Service], ...]] = (SparkIceberg0p14,)
    release: ClassVar[str] = " (Iceberg 0.14)"
