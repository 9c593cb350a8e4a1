"""Tests that values planted in a run set are recovered within the stated intervals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.runs.runset import (
    DUCKLAKE,
    ICEBERG_DUCKDB,
    INLINED,
    NULL,
    PYICEBERG,
    STANDARD,
    SYNC_BYTES,
    Model,
    batched,
    write_run_set,
)

from tidemark.analysis.measures import Measures, NotAvailable
from tidemark.analysis.metrics import Metric
from tidemark.analysis.statistics import Estimate
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.streams.metrics import (
    DISK_MEDIAN,
    GROWTH,
    HARNESS_RATE,
    QUANTITIES,
    RELATIVE_GROWTH,
    SYSTEM_RATE,
    WRITE_AMPLIFICATION,
    WRITE_MAX,
    WRITE_MEDIAN,
    WRITE_P99,
    WRITE_P999,
)


def series(measures: Measures, system: str, mode: str = "single") -> Series:
    found = measures.run_set.find(system, mode)
    assert found is not None
    return found


def hot(measures: Measures, quantity: Metric, system: str, mode: str = "single") -> Estimate:
    return measures.hot(quantity, series(measures, system, mode)).estimate("")


@pytest.mark.parametrize("model", [m for m in STANDARD if m.slope_ms == 0 and m.factors], ids=lambda m: m.id[:26])
def test_medians_are_found(measures: Measures, model: Model) -> None:
    found = hot(measures, WRITE_MEDIAN, model.system, model.mode)
    assert found.value == pytest.approx(model.median_ms, rel=0.02)
    assert found.contains(model.median_ms)


@pytest.mark.parametrize(
    ("system", "mode", "slope"),
    [
        ("ducklake", "single", 0.0),
        ("ducklake-inlined", "single", 0.0),
        ("iceberg-pyiceberg", "single", 60.0),
        ("iceberg-duckdb", "single", 10.0),
        ("iceberg-pyiceberg", "batch", 80.0),
        ("ducklake", "batch", 0.0),
    ],
)
def test_slopes_are_found(measures: Measures, system: str, mode: str, slope: float) -> None:
    found = hot(measures, GROWTH, system, mode)
    assert found.contains(slope)
    assert found.is_above(0) == (slope > 0)


def test_ratios_are_found(measures: Measures) -> None:
    a, b = series(measures, "ducklake"), series(measures, "ducklake-inlined")
    assert measures.ratio(WRITE_MEDIAN, a, b).estimate("").contains(10 / 8)
    assert measures.ratio(SYSTEM_RATE, b, a).value == pytest.approx(10 / 8, rel=0.03)
    assert measures.dominance("write_ns", a, b).estimate("").is_above(0.8)
    batch = [series(measures, name, "batch") for name in ("ducklake-inlined", "ducklake")]
    assert measures.ratio(WRITE_MEDIAN, *batch).estimate("").contains(2.0)


def test_a_series_without_runs_gives_its_reason(measures: Measures) -> None:
    with pytest.raises(NotAvailable, match="Airport_fee"):
        measures.hot(WRITE_MEDIAN, series(measures, "delta-rs"))
    with pytest.raises(NotAvailable, match="no such series"):
        measures.hot(WRITE_MEDIAN, measures.run_set.find("nobody", "single"))


def test_harness_and_system_throughput_differ_by_the_write_share(measures: Measures) -> None:
    run = series(measures, "ducklake").runs[1]
    harness = measures.of_run(HARNESS_RATE, run).estimate("events/s")
    system = measures.of_run(SYSTEM_RATE, run).estimate("events/s")
    assert harness.value == pytest.approx(run.manifest.events / run.elapsed_s)
    write_share = dict(run.manifest.time_budget_ns)["write"] / run.manifest.elapsed_ns
    assert harness.value / system.value == pytest.approx(write_share)


def test_system_is_charged_with_window_and_sync_but_not_with_the_stream(measures: Measures) -> None:
    run = series(measures, "ducklake").runs[1]
    disk = run.seconds().disk_bytes_per_s
    assert disk is not None
    found = measures.of_run(WRITE_AMPLIFICATION, run).value
    # The model's seconds are all complete, and contain only what the system wrote.
    assert found == pytest.approx((disk.sum() + SYNC_BYTES) / run.manifest.logical_bytes)
    assert run.manifest.disk.stream_bytes == 200_000


def test_a_tail_needs_enough_operations(measures: Measures) -> None:
    with pytest.raises(NotAvailable, match="needs 10,000 operations"):
        measures.of_run(WRITE_P999, series(measures, "iceberg-pyiceberg").runs[1])
    assert measures.of_run(WRITE_MAX, series(measures, "ducklake").runs[1]).estimate("ms").low is None


def test_equal_systems_show_no_difference(tmp_path: Path) -> None:
    """This is an A/A test: one system measured as four, whose runs differ by some 3 %."""
    factors = [(1.0, 1.03, 0.99), (1.01, 0.98, 1.02), (1.02, 1.0, 1.04), (0.97, 1.01, 0.99)]
    models = [
        replace(DUCKLAKE, system=f"ducklake-{place}", factors=each, slope_ms=2.0) for place, each in enumerate(factors)
    ]
    measures = Measures(RunSet.load(write_run_set(tmp_path, models, window_s=15)), QUANTITIES)
    chosen = measures.run_set.select(mode="single")
    for place, a in enumerate(chosen):
        for b in chosen[place + 1 :]:
            for quantity in (WRITE_MEDIAN, HARNESS_RATE, WRITE_P99):
                assert measures.ratio(quantity, a, b).estimate("").contains(1.0), (a.system, b.system, quantity)


def test_difference_of_five_milliseconds_per_write_is_recovered(tmp_path: Path) -> None:
    factors = (1.0, 1.01, 0.99)
    models = [
        replace(DUCKLAKE, factors=factors),
        replace(DUCKLAKE, system="ducklake-slowed", median_ms=15.0, factors=factors, sigma=0.08 * 10 / 15),
        replace(ICEBERG_DUCKDB, factors=factors),
    ]
    measures = Measures(RunSet.load(write_run_set(tmp_path, models, window_s=15)), QUANTITIES)
    slowed, plain = series(measures, "ducklake-slowed"), series(measures, "ducklake")
    difference = measures.difference(WRITE_MEDIAN, slowed, plain).estimate("ms")
    assert difference.contains(5.0)
    assert difference.is_above(4.0)
    assert difference.is_below(6.0)
    assert measures.ratio(WRITE_MEDIAN, slowed, plain).estimate("").is_above(1.3)


def test_slow_cold_run_is_detected_and_excluded_from_hot_runs(tmp_path: Path) -> None:
    models = [replace(model, factors=(1.4, 1.0, 1.01)) for model in (DUCKLAKE, INLINED)]
    models.append(replace(ICEBERG_DUCKDB, factors=(1.0, 1.01, 1.0)))
    measures = Measures(RunSet.load(write_run_set(tmp_path, models, window_s=10)), QUANTITIES)
    assert measures.cold_effect(WRITE_MEDIAN, series(measures, "ducklake")).estimate("").contains(1.4 / 1.005)
    assert measures.cold_effect(WRITE_MEDIAN, series(measures, "iceberg-duckdb")).estimate("").contains(1.0)
    assert hot(measures, WRITE_MEDIAN, "ducklake").is_below(11)


def test_no_hot_number_depends_on_a_cold_run(tmp_path: Path) -> None:
    found = []
    for place, cold in enumerate((1.0, 5.0)):
        models = [replace(model, factors=(cold, 1.0, 1.02)) for model in (DUCKLAKE, ICEBERG_DUCKDB)]
        measures = Measures(RunSet.load(write_run_set(tmp_path / str(place), models, window_s=5)), QUANTITIES)
        metrics = (WRITE_MEDIAN, HARNESS_RATE, RELATIVE_GROWTH, DISK_MEDIAN)
        found.append([hot(measures, quantity, "ducklake") for quantity in metrics])
    assert found[0] == found[1]


def test_one_hot_run_is_enough_for_an_interval(tmp_path: Path) -> None:
    models = [replace(model, factors=(1.0, 1.0), merge_s=None) for model in (DUCKLAKE, PYICEBERG, NULL)]
    measures = Measures(RunSet.load(write_run_set(tmp_path, models, window_s=5)), QUANTITIES)
    found = hot(measures, WRITE_MEDIAN, "ducklake")
    assert found.runs == 1
    assert found.contains(10.0)
    cold_only = Measures(
        RunSet.load(write_run_set(tmp_path / "cold", [replace(DUCKLAKE, factors=(1.0,))], window_s=3)), QUANTITIES
    )
    with pytest.raises(NotAvailable, match="no run 1"):
        hot(cold_only, WRITE_MEDIAN, "ducklake")


def test_the_same_files_give_the_same_numbers_in_any_order(results: Path) -> None:
    forth, back = Measures(RunSet.load(results), QUANTITIES), Measures(RunSet.load(results), QUANTITIES)
    wanted = [(quantity, name) for quantity in (WRITE_MEDIAN, GROWTH) for name in ("ducklake", "null")]
    first = [hot(forth, quantity, name) for quantity, name in wanted]
    second = [hot(back, quantity, name) for quantity, name in reversed(wanted)]
    assert first == second[::-1]


def test_slow_batch_run_does_not_affect_single_writes(tmp_path: Path) -> None:
    """Between-run variance is pooled within a mode."""
    models = [DUCKLAKE, INLINED, batched(DUCKLAKE, median_ms=30.0, factors=(1.0, 1.0, 2.0))]
    measures = Measures(RunSet.load(write_run_set(tmp_path, models, window_s=10)), QUANTITIES)
    single, batch = (hot(measures, WRITE_MEDIAN, "ducklake", mode) for mode in ("single", "batch"))
    assert single.low is not None
    assert single.high is not None
    assert single.high / single.low < 1.05
    assert batch.low is not None
    assert batch.high is not None
    assert batch.high / batch.low > 2
