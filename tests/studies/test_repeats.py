"""Claims of all studies on series that were repeated: what a repeat has in common drops out of each ratio.

A drift that moves all series of a repeat together is planted. A ratio that is formed within repeats does not see it;
the same ratio of the series' means, which the tests form beside it, does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, PYICEBERG, batched, write_run_set

from tidemark.analysis.aggregation import mean_of_rounds
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import LOWER, Metric
from tidemark.analysis.rounds import RoundVariance
from tidemark.analysis.statistics import BootstrapEstimate, Estimate, generator, known
from tidemark.results.claims.claim_data import extreme
from tidemark.results.claims.measures import GENERAL, Measure
from tidemark.runs.runset import RunSet
from tidemark.studies.catalogs import claims as catalogs
from tidemark.studies.deltars import claims as deltars
from tidemark.studies.freshness import results as freshness
from tidemark.studies.ingest import claims as ingest
from tidemark.studies.ingest.metrics import CONFLICTS
from tidemark.studies.lhbench import claims as lhbench
from tidemark.studies.streams import claims as streams
from tidemark.studies.streams.metrics import QUANTITIES, WRITE_MEDIAN

DRIFT = (0.0, 0.5, -0.4, 0.3)  # of the logarithm in each repeat: the machine was 1.6 times slower in the second one
NONE = (0.0,) * len(DRIFT)
NOISE = 0.01  # standard deviation of the logarithm of one value
SYSTEMS = {"a": 1.0, "b": 2.0, "c": 20.0}
FILES = (1_000, 10_000, 50_000)
TIME, WHOLE = (Metric(name, "s", name, lambda _run: known(1.0), LOWER) for name in ("time", "whole"))
ACCEPTED = {"one-8": 0.2, "one-4": 0.4}


@dataclass(frozen=True)
class Planted:
    """Evidence of series with one value a repeat, which grows with the system and with the numbers in the mode."""

    drift: tuple[float, ...] = DRIFT
    paired: bool = True

    def hot(self, quantity: Metric, system: str, mode: str) -> BootstrapEstimate:
        values = {name: self._values(quantity, name, mode) for name in SYSTEMS}
        rng = generator(quantity.name, system, mode)
        if quantity == CONFLICTS:
            units = {number: known(1 - math.exp(each), log=False) for number, each in values[system].items()}
            found = mean_of_rounds(units, rng, None)
        else:
            units = {number: known(math.exp(each)) for number, each in values[system].items()}
            found = mean_of_rounds(units, rng, RoundVariance.of(values))
        return found if self.paired else replace(found, rounds=None)

    value = hot  # as the evidence of lhbench calls it

    def at_files(self, quantity: Metric, system: str, files: int) -> BootstrapEstimate:
        return self.hot(quantity, system, str(files))

    def along_files(self, quantity: Metric, system: str) -> list[tuple[float, BootstrapEstimate]]:
        return [(float(files), self.at_files(quantity, system, files)) for files in FILES]

    def _values(self, quantity: Metric, system: str, mode: str) -> dict[int, float]:
        level = (4.0 if quantity == WHOLE else 1.0) * SYSTEMS[system]
        level *= 1 + sum(map(int, re.findall(r"\d+", mode))) / 10
        if quantity == CONFLICTS:
            level = ACCEPTED[mode]
        noise = NOISE * generator("noise", quantity.name, system, mode).normal(size=len(self.drift))
        return {number: math.log(level) + more + noise[number] for number, more in enumerate(self.drift)}


CASES: list[tuple[Mapping[str, Measure], str, dict[str, Any], float]] = [
    (GENERAL, "ratio", {"quantity": TIME, "system": "b", "vs": "a", "mode": "x"}, 2.0),
    (GENERAL, "ratio-to-largest", {"quantity": TIME, "system": "c", "vs": ["a", "b"], "mode": "x"}, 10.0),
    (GENERAL, "spread", {"quantity": TIME, "systems": ["a", "b", "c"], "mode": "x"}, 20.0),
    (GENERAL, "order", {"quantity": TIME, "systems": ["a", "b", "c"], "mode": "x"}, 2.0),
    (GENERAL, "quotient", {"quantity": TIME, "system": "b", "over": WHOLE, "vs": "b", "mode": "x"}, 0.25),
    (streams.OWN, "mode-ratio", {"quantity": TIME, "system": "a"}, 1.0),
    (streams.OWN, "mode-ratio-to-largest", {"quantity": TIME, "system": "a", "vs": ["b", "c"]}, 1.0),
    (streams.OWN, "mode-spread-ratio", {"quantity": TIME, "systems": ["a", "b"]}, 1.0),
    (streams.OWN, "largest-to-smallest", {"quantity": TIME, "systems": ["c"], "vs": ["a", "b"], "mode": "x"}, 20.0),
    (ingest.OWN, "modes-ratio", {"quantity": TIME, "system": "a", "modes": ["one-8", "one-4"]}, 1.8 / 1.4),
    (ingest.OWN, "ratio-of-ratios", {"quantity": TIME, "system": "a", "vs": "b", "modes": ["one-8", "one-4"]}, 1.0),
    (ingest.OWN, "accepted-ratio", {"system": "a", "modes": ["one-8", "one-4"]}, 0.5),
    (ingest.OWN, "smallest-modes-ratio",
     {"quantity": TIME, "system": "a", "first": "staged-10", "second": "direct-20", "shapes": ["1"]}, 2.1 / 3.1),
    (ingest.OWN, "gain-growth",
     {"quantity": TIME, "system": "a", "first": "staged", "second": "direct", "shapes": ["1", "30"]}, 1.0),
    (ingest.OWN, "schedule-over-closed", {"system": "a", "mode": "x"}, 1.0),
    (catalogs.OWN, "users-ratio", {"quantity": TIME, "system": "a", "users": [50, 1]}, 6.0 / 1.1),
    (catalogs.OWN, "over-quantity", {"quantity": TIME, "over": WHOLE, "system": "a", "mode": "x"}, 0.25),
    (lhbench.OWN, "part-ratio", {"quantity": TIME, "system": "b", "vs": "a", "part": "x"}, 2.0),
    (lhbench.OWN, "part-spread", {"quantity": TIME, "systems": ["a", "b", "c"], "part": "x"}, 20.0),
    (lhbench.OWN, "part-ratio-to-largest", {"quantity": TIME, "system": "c", "vs": ["a", "b"], "part": "x"}, 10.0),
    (lhbench.OWN, "part-ratio-to-smallest", {"quantity": TIME, "system": "c", "vs": ["a", "b"], "part": "x"}, 20.0),
    (lhbench.OWN, "part-gap-share", {"quantity": TIME, "over": WHOLE, "system": "c", "vs": "a", "part": "x"}, 25.0),
    (lhbench.OWN, "ratio-of-parts", {"quantity": TIME, "over": WHOLE, "system": "b", "vs": "a"}, 1.0),
    (lhbench.OWN, "query-margin", {"query": "q9", "system": "b", "vs": "a"}, 1.0),
    (lhbench.OWN, "query-share", {"query": "q9", "system": "a"}, 100.0),
    (lhbench.OWN, "size-ratio", {"system": "b", "vs": "a", "updates": 35}, 2.0),
    (lhbench.OWN, "size-slowdown", {"system": "b", "vs": "a", "updates": 35}, 2.0),
    (lhbench.OWN, "files-ratio", {"quantity": TIME, "system": "b", "vs": "a", "files": FILES[0]}, 2.0),
    (lhbench.OWN, "files-share", {"quantity": TIME, "over": WHOLE, "system": "a"}, 25.0),
    (lhbench.OWN, "files-growth-ratio", {"quantity": TIME, "system": "b", "vs": "a"}, 2.0),
    (deltars.OWN, "least-ratio", {"quantity": TIME, "system": "b", "vs": "a", "tables": ["t_1", "t_10"]}, 2.0),
    (deltars.OWN, "largest-ratio", {"quantity": TIME, "system": "b", "vs": "a", "tables": ["t_1", "t_10"]}, 2.0),
    (deltars.OWN, "decrease", {"quantity": TIME, "system": "a", "data": "t", "cores": 10}, 100 - 100 * 2.0 / 1.1),
    (deltars.OWN, "exponent",
     {"quantity": TIME, "system": "a", "tables": ["supplier_sf1", "supplier_sf10"]}, math.log10(2.1 / 1.2)),
]  # fmt: skip


def width(found: Estimate) -> float:
    assert found.low is not None and found.high is not None
    return found.high - found.low


@pytest.mark.parametrize(("measures", "name", "arguments", "truth"), CASES, ids=[name for _, name, _, _ in CASES])
def test_drift_of_a_repeat_drops_out_of_the_ratios_of_claims(
    measures: Mapping[str, Measure], name: str, arguments: dict[str, Any], truth: float
) -> None:
    def of(evidence: Planted) -> Estimate:
        return measures[name].compute(cast(Any, evidence), **arguments)[0].estimate("")

    found, calm = of(Planted()), of(Planted(NONE))
    assert found.value == pytest.approx(truth, rel=0.05)
    assert width(found) < 1.5 * width(calm), "it is as wide as without the drift"
    assert width(of(Planted(paired=False))) > 3 * width(found), "which the means of the series contain"


def test_each_measure_of_a_claim_that_divides_two_series_is_tested() -> None:
    """A measure that is added is listed here, or above, where it shows that it is formed within repeats."""
    apart = {
        # No ratios of two series
        "value", "largest", "smallest", "most", "difference", "difference-to-largest", "cold-effect", "overlapping",
        "killed", "sent-twice", "not-once-after-kills", "refused", "beside", "not-here", "axis-error", "files-growth",
        # Of ratios that are above
        "largest-mode-ratio", "smallest-mode-ratio", "largest-threads-ratio", "query-spread", "files-crossover",
        "gap-closed",
        # Of runs, not of the evidence's numbers
        "threads-ratio", "merge-over-flush", "rounds-ratio",
    }  # fmt: skip
    studies = (streams, ingest, catalogs, freshness, lhbench, deltars)
    every = {*GENERAL, *(name for each in studies for name in each.OWN)}
    named = {name for _, name, _, _ in CASES}
    assert {name for name in every - named - apart if not name.startswith("printed-")} == set()
    assert apart <= every


def test_drift_of_a_repeat_drops_out_of_ratios_of_run_files(tmp_path: Path) -> None:
    drift = tuple(np.exp(DRIFT).tolist())
    models = [
        model
        for one in (DUCKLAKE, PYICEBERG, ICEBERG_DUCKDB)
        for model in (
            replace(one, median_ms=5.0, slope_ms=0.0, factors=(1.0, 1.0), repeats=drift),
            batched(one, median_ms=20.0, slope_ms=0.0, factors=(1.0, 1.0), repeats=drift),
        )
    ]
    measures = Measures(RunSet.load(write_run_set(tmp_path, models, window_s=2.0)), QUANTITIES)
    single, batch = ([measures.run_set.find(one.system, mode) for one in models[::2]] for mode in ("single", "batch"))
    for a, b, truth in ((single[0], single[1], 1.0), (batch[0], single[0], 4.0)):
        found = measures.ratio(WRITE_MEDIAN, a, b).estimate("")
        alone = [replace(measures.hot(WRITE_MEDIAN, each), rounds=None) for each in (a, b)]
        assert found.value == pytest.approx(truth, rel=0.05) and width(found) < 0.3 * truth
        assert width(alone[0].ratio(alone[1]).estimate("")) > 4 * width(found)


def test_two_repeats_take_their_variance_from_all_modes(tmp_path: Path) -> None:
    drift = tuple(np.exp(DRIFT[:2]).tolist())
    models = [replace(one, slope_ms=0.0, factors=(1.0, 1.0), repeats=drift) for one in (DUCKLAKE, PYICEBERG)]
    both = write_run_set(tmp_path / "both", [*models, *(batched(one) for one in models)], window_s=1.0)
    for results, degrees in ((write_run_set(tmp_path / "one", models, window_s=1.0), 1), (both, 3)):
        measures = Measures(RunSet.load(results), QUANTITIES)
        a, b = (measures.run_set.find(one.system, "single") for one in models)
        assert measures.ratio(WRITE_MEDIAN, a, b).degrees == degrees


def test_values_that_a_window_has_once_vary_independently() -> None:
    """Two that moved together would give the larger of them, or a slope, an interval as if they were one."""
    first, other = (Planted(NONE).hot(TIME, system, "x") for system in "ab")
    assert abs(float(np.corrcoef(first.replicates, other.replicates)[0, 1])) < 0.15
    larger = extreme([first, other.scaled(first.value / other.value)], largest=True)
    assert larger.variance < 0.9 * max(first.variance, other.variance)


def test_variance_within_windows_counts_once() -> None:
    """The deviations of repeats contain it: it is not added to them, and is the least that the variance can be."""
    rng = np.random.default_rng(4)
    values = {name: {number: 0.1 * rng.normal() for number in range(4)} for name in "abc"}
    between = RoundVariance.of(values)
    assert between is not None
    for within in (0.02, 1.0):
        units = {
            number: BootstrapEstimate(each, each + within * rng.normal(size=1_000), 100)
            for number, each in values["a"].items()
        }
        least = np.mean([unit.variance for unit in units.values()]) / len(units)
        expected = max(between.of_mean(values["a"])[0], least)
        assert mean_of_rounds(units, rng, between).variance == pytest.approx(expected, rel=0.15)
