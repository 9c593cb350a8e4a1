"""Formats on Spark in the releases that LHBench measured (Delta 2.2.0, Iceberg 1.1.0 and 0.14.0 on Spark 3.3.0).

Hudi 0.12.0, which it measured as well, is in no package registry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tidemark.services.base import Service
from tidemark.services.engines.spark_formats import SparkDeltaBefore, SparkIceberg0p14, SparkIcebergBefore
from tidemark.systems.base import Options
from tidemark.systems.delta.spark import DeltaOnSpark
from tidemark.systems.iceberg.spark import IcebergOnSpark
from tidemark.systems.spark_sql import COPY_ON_WRITE, MODE, ModeOptions


class DeltaOnSparkBefore(DeltaOnSpark):
    """Delta before deletion vectors: a merge copies the files of changed rows."""

    name: ClassVar[str] = "delta-on-spark-before"
    title: ClassVar[str] = "Delta 2.2 (Spark 3.3)"
    needs: ClassVar[tuple[type[Service], ...]] = (SparkDeltaBefore,)
    release: ClassVar[str] = " (Spark 3.3)"
    Options: ClassVar[type[Options]] = Options

    def create(self, table: str, query: str, key: Sequence[str], date: str | None = None) -> Sequence[str]:
        del key
        return (self._creating(table, query, date, {}),)


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
