"""Inputs that determine a series' fingerprint, and inputs that do not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.pipeline import plan as plan_module
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.streams.study import Streams
from tidemark.systems import MEASUREMENTS
from tidemark.systems.base import Options
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.registry import registry

SHIPPED = Path(__file__).parents[2] / "config.yaml"
THRICE = "streams.protocols={quick: {window_seconds: 8, runs: 2, repeats: 3}}"


def made(*overrides: str) -> Plan:
    return make_plan(load(SHIPPED, ["streams.modes=[batch]", "streams.sweeps=[main]", *overrides]))


def only(*overrides: str) -> SeriesSpec:
    first, *others = made(*overrides).series
    assert {each.repeated_id for each in others} <= {first.repeated_id}
    return first


def test_explicit_default_is_the_same_series() -> None:
    written = only("streams.systems={delta-rs: {checkpoint_interval: 10}}")
    assert written.fingerprint == only("streams.systems={delta-rs: {}}").fingerprint
    assert written.fingerprint != only("streams.systems={delta-rs: {checkpoint_interval: 100}}").fingerprint


def test_changed_default_makes_another_series(monkeypatch: pytest.MonkeyPatch) -> None:
    before = only("streams.systems={delta-rs: {}}")

    @dataclass(frozen=True, slots=True)
    class Changed(Options):
        checkpoint_interval: int = 11

    monkeypatch.setattr(DeltaRs, "Options", Changed)
    assert only("streams.systems={delta-rs: {}}").fingerprint != before.fingerprint


def test_measurement_version_and_machine_make_another_series(monkeypatch: pytest.MonkeyPatch) -> None:
    before = only("streams.systems={ducklake: {}}")
    assert before.measurement == "streams 1, ducklake 1"
    assert replace(before, machine="another").fingerprint != before.fingerprint
    with monkeypatch.context() as patch:
        patch.setattr(Streams, "measurement", 2)
        assert only("streams.systems={ducklake: {}}").fingerprint != before.fingerprint
    monkeypatch.setitem(MEASUREMENTS, "ducklake", 2)
    assert only("streams.systems={ducklake: {}}").fingerprint != before.fingerprint


def test_moved_code_makes_no_series_due(monkeypatch: pytest.MonkeyPatch) -> None:
    before = only("streams.systems={ducklake: {}}")
    monkeypatch.setattr(plan_module, "harness_digest", lambda _workload: "0" * 64)
    monkeypatch.setattr(plan_module, "client_digest", lambda _system: "1" * 64)
    after = made("streams.systems={ducklake: {}}")
    assert after.series[0].fingerprint == before.fingerprint
    assert (after.series[0].harness, after.series[0].client) == ("0" * 64, "1" * 64), "kept as information"
    assert '"harness": "' + "0" * 64 in after.to_json()


def test_system_without_a_version_is_due_after_each_change_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(MEASUREMENTS, "ducklake")
    before = only("streams.systems={ducklake: {}}")
    monkeypatch.setattr(plan_module, "client_digest", lambda _system: "1" * 64)
    assert only("streams.systems={ducklake: {}}").fingerprint != before.fingerprint


def test_measurement_versions_name_existing_systems() -> None:
    assert MEASUREMENTS.keys() <= registry().keys()


def test_disturbance_settings_do_not_make_another_series(tmp_path: Path) -> None:
    before = only("streams.systems={ducklake: {}}")
    again = only("streams.systems={ducklake: {}}", "disturbance.retries=3", "disturbance.foreign_cores=1.5")
    assert again.fingerprint == before.fingerprint and again.disturbance.retries == 3
    (tmp_path / "spec.json").write_text(again.to_json())
    assert SeriesSpec.read(tmp_path / "spec.json") == again


def test_null_system_has_separate_shorter_windows() -> None:
    windows = {spec.name: spec.window_seconds for spec in made('streams.systems={"null": {}, ducklake: {}}').series}
    assert windows == {"null": 3.0, "ducklake": 25.0}
    longer = "streams.protocols={quick: {window_seconds: 20, runs: 2, null_seconds: 9}}"
    assert {spec.window_seconds for spec in made(longer, 'streams.systems={"null": {}}').series} == {9.0}
    assert {spec.window_seconds for spec in made("protocol=smoke", 'streams.systems={"null": {}}').series} == {2.0}


def test_null_system_is_measured_once_in_the_last_round() -> None:
    specs = made('streams.systems={"null": {}, ducklake: {}}', "streams.modes=[single]", THRICE).series
    assert sorted((spec.name, spec.repeat) for spec in specs) == [
        ("ducklake", 1),
        ("ducklake", 2),
        ("ducklake", 3),
        ("null", 3),
    ]
    assert [spec.name for spec in specs if spec.repeat == 1] == ["ducklake"], "the first round is of systems alone"


def test_twin_is_the_first_storing_system_with_the_same_options_under_a_second_name() -> None:
    systems = 'streams.systems={"null": {}, mine: {like: ducklake, title: Mine, durability: full}, delta-rs: {}}'
    once = "streams.protocols={quick: {window_seconds: 8, runs: 2, twin: true}}"
    found = {spec.name: spec for spec in made(systems, once).series}
    assert set(found) == {"null", "mine", "delta-rs", "mine-twin"} and found["mine"].id != found["mine-twin"].id
    of = [(found[name].system, found[name].options, found[name].settings) for name in ("mine", "mine-twin")]
    assert of[0] == of[1] and found["mine-twin"].title == "mine-twin"
    assert {spec.name for spec in made("protocol=reference", systems).series} == set(found)


def test_a_repeat_has_every_series_once_and_the_parts_of_a_study_one_after_another() -> None:
    plan = make_plan(load(SHIPPED, ["studies=[ingest, catalogs]", "protocol=smoke", "repeats=3"]))
    repeats = [[spec for spec in plan.series if spec.repeat == number] for number in (1, 2, 3)]
    assert [spec for each in repeats for spec in each] == list(plan.series)
    for each in repeats:
        assert len([study for study, _ in groupby(spec.study for spec in each)]) == 2
    parts = [
        [part for part, _ in groupby((spec.study, dict(spec.settings).get("part")) for spec in each)]
        for each in repeats
    ]
    assert all(len(each) == len(set(each)) > 5 for each in parts) and len({tuple(each) for each in parts}) > 1
    orders = [[spec.repeated_id for spec in each] for each in repeats]
    assert len({tuple(sorted(order)) for order in orders}) == 1 and len({tuple(order) for order in orders}) == 3


def test_processor_sweep_is_limited_to_the_processors_of_the_machine() -> None:
    sweep = "streams.sweep={cores: {axis: cpus, values: [1, 4096]}}"
    plan = made("streams.systems={delta-rs: {}}", sweep, "streams.sweeps=[cores]")
    assert {spec.cpus for spec in plan.series} >= {1} and all(spec.cpus != 4096 for spec in plan.series)
    assert any("4096 cpus were asked for" in note for note in plan.notes)
