"""Tests of the likely duration of series: by their steps, and zero for those that cannot run."""

from __future__ import annotations

from pathlib import Path

from tidemark.config import load
from tidemark.pipeline.plan import likely_seconds, make_plan
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.lhbench.settings import settings_of
from tidemark.studies.lhbench.study import Lhbench

SHIPPED = Path(__file__).parents[3] / "config.yaml"


def series(*asked: str) -> list[SeriesSpec]:
    return list(make_plan(load(SHIPPED, ["studies=[lhbench]", *asked])).series)


def test_quick_takes_an_hour_and_a_half_at_most() -> None:
    assert 50 < likely_seconds(series("protocol=quick")) / 60 < 90


def test_quick_has_one_system_per_format_in_load_and_all_in_refresh() -> None:
    found = series("protocol=quick")
    by_part = {part: {each.name for each in found if settings_of(each).part == part} for part in ("load", "refresh")}
    assert by_part["load"] == {f"{name}-on-spark-cow" for name in ("delta", "iceberg", "hudi")} | {"parquet-on-spark"}
    assert len(by_part["refresh"]) == 8


def test_series_that_cannot_run_take_no_time_and_more_steps_take_longer() -> None:
    took: dict[tuple[str, str], float] = {}
    for each in series("protocol=quick"):
        took[each.name, each.mode] = Lhbench.likely_seconds(each)
    assert took["parquet-on-spark", "refresh-sf0p1-5"] == took["hudi-on-spark", "files-1000"] == 0
    assert took["delta-on-spark", "files-1000"] < took["delta-on-spark", "files-50000"]
    assert took["iceberg-on-spark", "refresh-sf0p1-5"] < took["hudi-on-spark", "refresh-sf0p1-5"]
