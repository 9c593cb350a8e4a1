"""What a series' fingerprint follows from, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.pipeline import plan as plan_module
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.streams.workload import Streams
from tidemark.systems import MEASUREMENTS, registry
from tidemark.systems.base import Options
from tidemark.systems.delta.delta_rs import DeltaRs

SHIPPED = Path(__file__).parents[2] / "config.yaml"


def made(*overrides: str) -> Plan:
    return make_plan(load(SHIPPED, ["streams.modes=[batch]", *overrides]))


def only(*overrides: str) -> SeriesSpec:
    first, *others = made(*overrides).series
    assert {each.repeated_id for each in others} <= {first.repeated_id}
    return first


def test_a_default_that_is_written_out_is_the_same_series() -> None:
    written = only("streams.systems={delta-rs: {checkpoint_interval: 10}}")
    assert written.fingerprint == only("streams.systems={delta-rs: {}}").fingerprint
    assert written.fingerprint != only("streams.systems={delta-rs: {checkpoint_interval: 100}}").fingerprint


def test_a_default_that_changes_makes_another_series(monkeypatch: pytest.MonkeyPatch) -> None:
    before = only("streams.systems={delta-rs: {}}")

    @dataclass(frozen=True, slots=True)
    class Changed(Options):
        checkpoint_interval: int = 11

    monkeypatch.setattr(DeltaRs, "Options", Changed)
    assert only("streams.systems={delta-rs: {}}").fingerprint != before.fingerprint


def test_another_measurement_and_another_machine_are_other_series(monkeypatch: pytest.MonkeyPatch) -> None:
    before = only("streams.systems={ducklake: {}}")
    assert before.measurement == "streams 1, ducklake 1"
    assert replace(before, machine="another").fingerprint != before.fingerprint
    with monkeypatch.context() as patch:
        patch.setattr(Streams, "measurement", 2)
        assert only("streams.systems={ducklake: {}}").fingerprint != before.fingerprint
    monkeypatch.setitem(MEASUREMENTS, "ducklake", 2)
    assert only("streams.systems={ducklake: {}}").fingerprint != before.fingerprint


def test_code_that_moves_makes_no_series_due(monkeypatch: pytest.MonkeyPatch) -> None:
    before = only("streams.systems={ducklake: {}}")
    monkeypatch.setattr(plan_module, "harness_digest", lambda _workload: "0" * 64)
    monkeypatch.setattr(plan_module, "client_digest", lambda _system: "1" * 64)
    after = made("streams.systems={ducklake: {}}")
    assert after.series[0].fingerprint == before.fingerprint
    assert (after.series[0].harness, after.series[0].client) == ("0" * 64, "1" * 64), "kept as information"
    assert '"harness": "' + "0" * 64 in after.to_json()


def test_a_system_without_a_version_is_due_with_each_change_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MEASUREMENTS, "ducklake")
    before = only("streams.systems={ducklake: {}}")
    monkeypatch.setattr(plan_module, "client_digest", lambda _system: "1" * 64)
    assert only("streams.systems={ducklake: {}}").fingerprint != before.fingerprint


def test_versions_are_those_of_systems() -> None:
    assert MEASUREMENTS.keys() <= registry().keys()


def test_how_often_a_disturbed_run_is_repeated_is_no_other_series() -> None:
    before = only("streams.systems={ducklake: {}}")
    again = only("streams.systems={ducklake: {}}", "disturbance.retries=3", "disturbance.foreign_cores=1.5")
    assert again.fingerprint == before.fingerprint and again.disturbance.retries == 3
    assert SeriesSpec.from_json(again.to_json(), "spec.json") == again


def test_a_system_that_stores_nothing_has_short_windows_of_its_own() -> None:
    windows = {spec.name: spec.window_seconds for spec in made('streams.systems={"null": {}, ducklake: {}}').series}
    assert windows == {"null": 3.0, "ducklake": 8.0}
    longer = "streams.protocols={quick: {window_seconds: 20, runs: 2, null_seconds: 9}}"
    assert {spec.window_seconds for spec in made(longer, 'streams.systems={"null": {}}').series} == {9.0}
    assert {spec.window_seconds for spec in made("protocol=smoke", 'streams.systems={"null": {}}').series} == {2.0}


def test_a_system_that_stores_nothing_is_measured_once_in_the_last_round() -> None:
    specs = made('streams.systems={"null": {}, ducklake: {}}', "streams.modes=[single]").series
    assert sorted((spec.name, spec.repeat) for spec in specs) == [("ducklake", 1), ("ducklake", 2), ("null", 2)]
    assert [spec.name for spec in specs if spec.repeat == 1] == ["ducklake"], "the first round is of systems alone"


def test_processors_are_an_axis_as_far_as_the_machine_has_them() -> None:
    sweep = "streams.sweep={cores: {axis: cpus, values: [1, 4096]}}"
    plan = made("streams.systems={delta-rs: {}}", sweep, "streams.sweeps=[cores]")
    assert {spec.cpus for spec in plan.series} >= {1} and all(spec.cpus != 4096 for spec in plan.series)
    assert any("4096 cpus were asked for" in note for note in plan.notes)
