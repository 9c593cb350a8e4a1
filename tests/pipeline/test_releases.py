"""Measurement of releases: the plan that the command makes, its folder, and the ratios that end its rounds."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.test_stopping import REPEATS
from tests.runs.models import DUCKLAKE
from tests.runs.runset import write_run_set

from tidemark.config import load
from tidemark.paths import Workspace
from tidemark.pipeline.build import ratio_widths
from tidemark.pipeline.plan import make_plan
from tidemark.pipeline.releases import overrides, workspace_of
from tidemark.runs.plan import Goal

SHIPPED = Path(__file__).parents[2] / "config.yaml"


def test_each_round_has_every_release_once_in_an_order_of_its_own() -> None:
    stacks = ["thesis", "paimon", "current"]
    plan = make_plan(load(SHIPPED, overrides("delta-rs", stacks)))
    assert plan.goal == Goal(5, 30)
    assert {(spec.name, spec.sweep) for spec in plan.series} == {("delta-rs", "main")}
    rounds: dict[int, list[str]] = {}
    for job in plan.jobs():
        if job[0].in_round:
            assert {spec.repeat for spec in job} == {job[0].block} and {spec.mode for spec in job} == {
                "single",
                "batch-1000",
            }
            rounds.setdefault(job[0].repeat, []).append(job[0].stack)
    assert len(rounds) == 60 and all(sorted(each) == sorted(stacks) for each in rounds.values())
    assert len({tuple(each) for each in rounds.values()}) == 6, "all orders of three"


def test_values_of_the_command_line_replace_those_of_releases() -> None:
    asked = ["precision=10", "budget_minutes=2", "streams.modes=[batch]", "streams.protocols.releases.rounds=4"]
    plan = make_plan(load(SHIPPED, [*overrides("delta-rs", ["thesis", "current"]), *asked]))
    assert plan.goal == Goal(10, 2)
    assert sum(spec.in_round for spec in plan.series) == 8 and {spec.mode for spec in plan.series} == {"batch-1000"}


def test_folder_of_a_system_has_the_trips_and_programs_of_the_one_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / "cache"))
    around = Workspace(tmp_path / "here")
    around.root.mkdir()
    for _ in range(2):
        own = workspace_of("delta-rs", around)
    assert own.root == around.root / "releases" / "delta-rs" and own.cache == around.cache
    (own.data / "prepared").mkdir()
    assert (around.data / "prepared").is_dir() and not own.data.readlink().is_absolute()
    assert os.environ["TIDEMARK_CACHE"] == str(tmp_path / "cache")


def test_rounds_end_by_the_ratio_of_each_release_to_the_one_before(tmp_path: Path) -> None:
    stacks = ("duckdb-1-5-5", "duckdb-1-4-4", "duckdb-1-3-2")
    models = [
        replace(DUCKLAKE, stack=stack, repeats=REPEATS[place:] + REPEATS[:place]) for place, stack in enumerate(stacks)
    ]
    results = write_run_set(tmp_path, models, window_s=2.0, config={"stacks": list(reversed(stacks))})
    found = ratio_widths(results, results / "plan.json")
    assert list(found) == [
        "DuckLake, duckdb-1-4-4 over duckdb-1-3-2, single",
        "DuckLake, duckdb-1-5-5 over duckdb-1-4-4, single",
    ], "in the order of the configuration, not in that of the plan"
    assert all(1 < width < 10 for width in found.values())


def test_stacks_with_several_systems_are_compared_within_each(tmp_path: Path) -> None:
    models = [
        replace(DUCKLAKE, stack=stack, system=system, title=system, repeats=REPEATS)
        for stack in ("thesis", "current")
        for system in ("ducklake", "other")
    ]
    results = write_run_set(tmp_path, models, window_s=2.0)
    assert list(ratio_widths(results, results / "plan.json")) == [
        "other over ducklake, single (thesis)",
        "other over ducklake, single (current)",
    ]
