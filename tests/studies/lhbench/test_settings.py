"""Tests of the systems that a protocol may name, and of refusals with their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.schema import sections

SHIPPED = Path(__file__).parents[3] / "config.yaml"
SMOKE: dict[str, Any] = sections()["lhbench"]["properties"]["protocols"]["default"]["smoke"]


def plan(sizes: dict[str, Any], *overrides: str) -> Plan:
    given = f"lhbench.protocols={json.dumps({'smoke': sizes})}"
    return make_plan(load(SHIPPED, ["studies=[lhbench]", "protocol=smoke", given, *overrides]))


@pytest.mark.parametrize(
    ("sizes", "key"),
    [
        ({"without": ["hudi-on-sparc"]}, "smoke.without"),
        ({"merge": {**SMOKE["merge"], "without": ["hudi-on-sparc"]}}, "smoke.merge.without"),
        ({"refresh": {**SMOKE["refresh"], "instead": {"hudi-on-sparc": {"repeats": 2}}}}, "smoke.refresh.instead"),
    ],
)
def test_system_with_an_exception_must_exist(sizes: dict[str, Any], key: str) -> None:
    said = rf"key 'lhbench\.protocols\.{key}': found 'hudi-on-sparc'; allowed: .*did you mean 'hudi-on-spark'"
    with pytest.raises(ConfigError, match=said):
        plan({**SMOKE, **sizes})


def test_protocol_may_name_systems_that_are_not_measured() -> None:
    sizes = {**SMOKE, "without": ["hudi-on-spark-cow", "parquet-on-spark", "mine"]}
    found = plan(sizes, "lhbench.systems={mine: {like: delta-on-spark}, delta-on-spark: {}}")
    assert {spec.name for spec in found.series} == {"delta-on-spark"}
