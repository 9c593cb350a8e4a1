"""Tests of windows that end after a number of commits, and of the slowdown of their last commits against the first."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import make_plan
from tidemark.runs.run import Run
from tidemark.studies.streams.session import Rates, Session, margin
from tidemark.studies.streams.settings import StreamSettings
from tidemark.studies.streams.storage_tables import PARTS, part_median

SHIPPED = Path(__file__).parents[3] / "config.yaml"


def test_sweep_has_the_same_number_of_commits_for_each_system() -> None:
    asked = ["protocol=smoke", "streams.sweeps=[age]", "streams.systems={delta-rs: {}, own: {like: delta-rs}}"]
    made = make_plan(load(SHIPPED, asked)).series
    assert sorted((spec.name, spec.sweep, spec.mode, spec.runs) for spec in made) == [
        ("delta-rs", "age", "single", 1),
        ("own", "age", "single", 1),
    ]
    assert {StreamSettings.of(spec).most_events for spec in made} == {10_000}
    assert {spec.window_seconds for spec in made} == {7200}
    batches = [*asked, "streams.sweep={age: {axis: commits, values: [50], modes: [batch]}}"]
    assert {StreamSettings.of(spec).most_events for spec in make_plan(load(SHIPPED, batches)).series} == {50_000}


def test_windows_of_quick_end_at_100_commits() -> None:
    made = make_plan(load(SHIPPED, ["protocol=quick", "streams.systems={null: {}, delta-rs: {}}"])).series
    found = {(spec.name, StreamSettings.of(spec).commits, StreamSettings.of(spec).least_seconds) for spec in made}
    assert found == {("null", 0, 0.0), ("delta-rs", 100, 2.0)}
    assert {(spec.name, spec.window_seconds, spec.repeat) for spec in made} == {
        ("null", 3, 21), *(("delta-rs", 25, repeat) for repeat in range(1, 22))
    }  # fmt: skip
    threads = make_plan(load(SHIPPED, ["protocol=quick", "streams.sweeps=[threads]"])).series
    assert {(StreamSettings.of(spec).commits, spec.window_seconds) for spec in threads} == {(0, 60)}


@pytest.mark.parametrize(
    ("sizes", "allowed"),
    [
        ("runs: 2, commits: 100, least_seconds: 6", "least_seconds': found 6; allowed: at most 5, its window_seconds"),
        ("runs: 2, least_seconds: 2", "least_seconds': found 2; allowed: at most 0, as it has no commits"),
        ("runs: 1, rounds: 3", "rounds': found 3; allowed: 0, as its one run is cold and rounds are hot"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes: str, allowed: str) -> None:
    own = f"streams.protocols={{own: {{window_seconds: 5, {sizes}}}}}"
    with pytest.raises(ConfigError, match=f"streams.protocols.own.{allowed}"):
        make_plan(load(SHIPPED, [own, "protocol=own"]))


def test_series_without_a_least_length_are_those_of_earlier_versions() -> None:
    for spec in make_plan(load(SHIPPED, ["protocol=thesis"])).series:
        assert "least_seconds" not in dict(spec.settings) and dict(spec.settings)["commits"] == 0


def test_topic_holds_only_what_the_commits_need(tmp_path: Path) -> None:
    rates = Rates(tmp_path / "rates.json", "a system", "record")
    rates.note(1000.0)
    assert rates.events(3600, 1, tmp_path, 10_000) == 10_000 + margin(1)
    assert rates.events(2, 1, tmp_path, 10_000) == 2 * 1000 * 1.3 + margin(1)
    settings = StreamSettings("single", 1, 1, "snappy", "record", "ahead", False, 64, True, 100, 5.0)
    session = Session(settings, rates, cast(Any, None), cast(Any, None))
    assert session.most_events == 5 * 1000 * 1.3, "the least length, which is longer than 100 commits"


def test_the_first_and_the_last_writes_are_compared() -> None:
    times = np.concatenate([np.full(60, 2_000_000), np.arange(180) + 3_000_000, np.full(60, 6_000_000)])
    run = cast(Run, SimpleNamespace(label="a run", column=lambda _name: times))
    first, last = part_median(run, 0), part_median(run, PARTS - 1)
    assert (first.value, last.value) == (pytest.approx(2.0), pytest.approx(6.0))
    assert last.ratio(first).value == pytest.approx(3.0)
    few = cast(Run, SimpleNamespace(label="a run", column=lambda _name: times[:4]))
    with pytest.raises(NotAvailable, match="needs 5 commits, the run has 4"):
        part_median(few, 0)
