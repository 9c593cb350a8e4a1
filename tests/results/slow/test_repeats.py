"""Tests of series that were measured more than once: the repeat is the unit in numbers, tables and sentences."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
from tests.results.places import builder
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, INLINED, NULL, Model, write_run_set

from tidemark.analysis import aggregation
from tidemark.analysis.blocks import BlockSample, Numbers
from tidemark.analysis.measures import Measures
from tidemark.pipeline.build import build_database
from tidemark.results.paper.method_text import setting
from tidemark.results.tables import setup as tables_setup
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.streams import published as tables_thesis
from tidemark.studies.streams import tables as tables_beyond
from tidemark.studies.streams.metrics import QUANTITIES, WRITE_MEDIAN

DRIFT = (1.0, 1.25)  # slowdown of the machine in the second repeat
MODELS = (
    replace(DUCKLAKE, median_ms=10.0, factors=(1.3, 1.0, 1.0), repeats=DRIFT),
    replace(INLINED, median_ms=10.0, factors=(1.3, 1.0, 1.0), repeats=DRIFT[::-1]),
    replace(ICEBERG_DUCKDB, median_ms=40.0, slope_ms=0.0, factors=(1.3, 1.0, 1.0), repeats=(1.1, 1.0)),
    replace(NULL, repeats=DRIFT),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run_set(tmp_path_factory.mktemp("repeats"), MODELS, window_s=8.0)


@pytest.fixture(scope="module")
def measures(results: Path) -> Measures:
    return Measures(RunSet.load(results), QUANTITIES)


def find(measures: Measures, model: Model) -> Series:
    found = measures.run_set.find(model.system, "single")
    assert found is not None
    return found


def test_repeats_of_a_series_are_one_series(measures: Measures) -> None:
    ducklake = find(measures, MODELS[0])
    assert len(measures.run_set.series) == len(MODELS)
    assert [(run.repeat, run.number) for run in ducklake.runs] == [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)]
    assert [repeat.position for repeat in ducklake.repeats] == [0, 4], "in rounds"
    assert (len(ducklake.cold_runs), len(ducklake.hot_runs), ducklake.status) == (2, 4, "complete")
    first = ducklake.run(1)
    assert first is not None and first.repeat == 1, "the run that the thesis shows"


def test_the_typical_hot_run_is_the_mean_of_all_repeats(measures: Measures) -> None:
    found = measures.hot(WRITE_MEDIAN, find(measures, MODELS[0])).estimate("ms")
    assert found.value == pytest.approx(10.0 * math.sqrt(1.25), rel=0.01)
    assert found.runs == 4
    assert found.contains(10.0) and found.contains(12.5)


def test_drift_between_repeats_is_no_difference_between_systems(measures: Measures, tmp_path: Path) -> None:
    def ratio(of: Measures) -> bool | None:
        a, b = find(of, MODELS[0]), find(of, MODELS[1])
        return of.ratio(WRITE_MEDIAN, a, b).estimate("").contains(1.0)

    assert ratio(measures)
    once = tuple(replace(model, repeats=model.repeats[:1]) for model in MODELS)
    assert not ratio(Measures(RunSet.load(write_run_set(tmp_path, once, window_s=8.0)), QUANTITIES)), (
        "which is why they are made"
    )


def test_a_difference_beyond_the_drift_is_seen(measures: Measures) -> None:
    ratio = measures.ratio(WRITE_MEDIAN, find(measures, MODELS[2]), find(measures, MODELS[0])).estimate("")
    assert ratio.is_above(1.0)


def test_each_cold_run_is_compared_with_the_hot_runs_of_its_repeat(measures: Measures) -> None:
    """Both contain the drift, which therefore does not widen the interval of the effect."""
    effects = [measures.cold_effect(WRITE_MEDIAN, find(measures, model)).estimate("") for model in MODELS[:3]]
    for effect in effects:
        assert effect.value == pytest.approx(1.3, rel=0.03)
        assert effect.low is not None and effect.low > 1.2
    assert sum(bool(effect.contains(1.3)) for effect in effects) >= 2, "of intervals of 95 %"


def test_cliffs_delta_takes_repeats_in_pairs(measures: Measures) -> None:
    delta = measures.dominance("write_ns", find(measures, MODELS[2]), find(measures, MODELS[0])).estimate("")
    assert delta.value > 0.9


def test_each_run_is_prepared_once_for_all_pairs(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[int] = []

    def counted(samples: Numbers, rng: np.random.Generator) -> BlockSample:
        prepared.append(len(samples))
        return BlockSample.prepare(samples, rng)

    monkeypatch.setattr(aggregation, "BlockSample", SimpleNamespace(prepare=counted))
    fresh = Measures(RunSet.load(results), QUANTITIES)
    all_series = fresh.run_set.select(mode="single", harness=False)
    pairs = {(a.id, b.id): fresh.dominance("write_ns", a, b) for a, b in combinations(all_series, 2)}
    assert len(prepared) == sum(len(series.hot_runs) for series in all_series) == 12
    a, b = all_series[0], all_series[-1]
    turned, straight = fresh.dominance("write_ns", b, a).estimate(""), pairs[a.id, b.id].estimate("")
    assert turned.value == pytest.approx(-straight.value)
    assert straight.low is not None and turned.high == pytest.approx(-straight.low, abs=0.02)


def test_tables_name_the_repeat_of_each_run(measures: Measures) -> None:
    bench = builder(measures)
    tables = {
        table.name: table for module in (tables_beyond, tables_setup, tables_thesis) for table in module.build(bench)
    }
    for name in ("throughput", "latency", "time-budget", "cold-proof", "oracle", "table-5.3"):
        place = [column.key for column in tables[name].columns].index("repeat")
        assert {1, 2} <= {row[place] for row in tables[name].rows}, name
    positions = [row[0] for row in tables["cold-proof"].rows]
    assert positions == sorted(positions) and positions[-1] == 2 * len(MODELS) - 1  # type: ignore[type-var]


def test_database_has_one_row_per_repeat(results: Path) -> None:
    with duckdb.connect(str(build_database(results)), read_only=True) as connection:
        rows = connection.sql(
            "SELECT s.repeat, count(*) FROM series s JOIN runs USING (series_id) GROUP BY 1 ORDER BY 1"
        )
        assert rows.fetchall() == [(1, 3 * len(MODELS)), (2, 3 * len(MODELS))]


def test_paper_states_what_intervals_cover(measures: Measures, tmp_path: Path) -> None:
    twice = setting(measures.run_set)
    once = setting(RunSet.load(write_run_set(tmp_path, (DUCKLAKE,), window_s=2.0)))
    assert "measured 2 times" in twice["repeats"] and "measured once" in once["repeats"]
    assert "variance between repeats" in twice["coverage"] and "do not cover the variance" in once["coverage"]


def test_ratio_table_states_whether_intervals_cover_between_series_variance(measures: Measures, tmp_path: Path) -> None:
    def notes(of: Measures) -> str:
        return " ".join(next(table for table in tables_beyond.build(builder(of)) if table.name == "ratios").notes)

    once = RunSet.load(write_run_set(tmp_path, (DUCKLAKE, INLINED), window_s=2.0))
    assert "Intervals cover the variance between repeats of a series" in notes(measures)
    assert "intervals do not cover the variance between series of one system" in notes(Measures(once, QUANTITIES))


def test_failed_repeat_states_its_reason_and_the_other_counts(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, MODELS[:3], window_s=4.0)
    (path,) = results.glob("runs/ducklake/single/*-2/outcome.json")
    path.write_text(json.dumps({"status": "failed", "reason": "the broker stopped", "exit_code": 5, "runs": []}))
    measures = Measures(RunSet.load(results), QUANTITIES)
    ducklake = find(measures, MODELS[0])
    assert (ducklake.status, ducklake.reason, len(ducklake.runs)) == ("failed", "the broker stopped", 3)
    alone = measures.hot(WRITE_MEDIAN, ducklake).estimate("ms")
    assert alone.low is not None and alone.high is not None
    assert alone.high / alone.low > 1.2, "it may be as far off as repeats of the others differ"
