"""Tests of estimates on data with known answers, including autocorrelated samples."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.analysis.samples import noise, runs_of, sample

from tidemark.analysis.aggregation import PRIOR_UNITS, BetweenRunVariance, mean, measured_once, pooled_mean
from tidemark.analysis.blocks import BlockSample, Ranks, block_length, draw_cells
from tidemark.analysis.statistics import (
    BootstrapEstimate,
    Estimate,
    at_most,
    cliffs_delta,
    counted,
    generator,
    interquartile_range,
    known,
    literal,
    median,
    quantile,
    ratio_of_sums,
    theil_sen,
)

VARIES = 0.14  # of the logarithm: how windows hours apart differ on the machine of the reference results


def interval(estimate: Estimate) -> tuple[float, float]:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low, estimate.high


def test_a_quantile_is_that_of_all_samples() -> None:
    values = np.exp(np.random.default_rng(1).normal(size=5_001))
    prepared = sample(values)
    for probability in (0.25, 0.5, 0.9, 0.99, 0.999):
        estimate = quantile(prepared, probability).estimate("ms")
        assert estimate.value == pytest.approx(np.quantile(values, probability))
        low, high = interval(estimate)
        assert low <= estimate.value <= high
        assert (estimate.n, estimate.unit) == (5_001, "ms")


def test_one_outlier_among_many_neither_vanishes_nor_moves_the_median() -> None:
    values = np.full(1_000, 10.0) + np.linspace(-0.1, 0.1, 1_000)
    values[500] = 10_000.0
    prepared = sample(values)
    assert median(prepared).value == pytest.approx(10.0, abs=0.01)
    assert quantile(prepared, 1.0).value == pytest.approx(10_000.0)


@pytest.mark.parametrize(("autocorrelation", "least"), [(0.0, 0.86), (0.6, 0.84), (0.9, 0.80)])
def test_median_interval_reaches_its_coverage(autocorrelation: float, least: float) -> None:
    rng = np.random.default_rng(20)
    trials = 80
    covered = 0
    for seed in range(trials):
        values = np.exp(0.2 * noise(1_200, autocorrelation, rng))
        covered += bool(median(sample(values, seed)).estimate("").contains(1.0))
    assert covered / trials >= least


def test_autocorrelation_widens_the_interval() -> None:
    rng = np.random.default_rng(3)
    widths = []
    for autocorrelation in (0.0, 0.9):
        low, high = interval(median(sample(np.exp(0.2 * noise(2_000, autocorrelation, rng)))).estimate(""))
        widths.append(high - low)
    assert widths[1] > 2 * widths[0]
    assert block_length(noise(256, 0.0, rng)) < block_length(noise(256, 0.9, rng))


def test_growth_does_not_widen_the_interval_of_the_median() -> None:
    rng = np.random.default_rng(4)
    values = np.linspace(100, 500, 2_000) * np.exp(0.05 * rng.normal(size=2_000))
    low, high = interval(median(sample(values)).estimate("ms"))
    assert low < 300 < high
    assert high - low < 40  # blocks from anywhere in the run would give more than 100


def test_a_ratio_of_sums_is_a_throughput() -> None:
    rng = np.random.default_rng(5)
    times = np.exp(0.3 * noise(3_000, 0.5, rng)) * 1e-3
    estimate = ratio_of_sums(np.full(3_000, 7), times, rng).estimate("events/s")
    assert estimate.value == pytest.approx(3_000 * 7 / times.sum())
    assert estimate.contains(7 / (1e-3 * math.exp(0.3**2 / 2)))


def test_theil_sen_agrees_with_scipy_where_no_sample_is_summarised() -> None:
    rng = np.random.default_rng(6)
    values = 5 + 0.02 * np.arange(60) + rng.normal(size=60)
    slope = theil_sen(values, rng).value
    assert slope == pytest.approx(1000 * stats.theilslopes(values).slope)


def test_theil_sen_finds_a_slope_under_outliers_and_autocorrelation() -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(40):
        values = 5 + 0.002 * np.arange(1_500) + 0.5 * noise(1_500, 0.6, rng)
        values += (rng.random(1_500) < 0.02) * 50
        estimate = theil_sen(values, rng).estimate("ms")
        assert estimate.value == pytest.approx(2.0, abs=0.5)
        covered += bool(estimate.contains(2.0))
    assert covered >= 33


def test_a_flat_run_has_a_slope_whose_interval_contains_zero() -> None:
    rng = np.random.default_rng(8)
    assert theil_sen(10 + noise(2_000, 0.5, rng), rng).estimate("ms").contains(0.0)


def test_too_few_samples_have_no_slope() -> None:
    estimate = theil_sen(np.array([1.0, 2.0]), np.random.default_rng(0)).estimate("ms")
    assert math.isnan(estimate.value)
    assert estimate.low is None


def test_cliffs_delta_counts_pairs() -> None:
    rng = np.random.default_rng(9)
    a, b = np.array([1.0, 2.0, 3.0, 4.0] * 50), np.array([2.0, 2.5, 9.0, 9.0] * 50)
    prepared = [Ranks.of(BlockSample.prepare(values, rng)) for values in (a, b)]
    expected = np.sign(a[:, None] - b[None, :]).mean()
    estimate = cliffs_delta(*prepared).estimate("")
    assert estimate.value == pytest.approx(expected)
    assert estimate.contains(expected)
    assert cliffs_delta(prepared[0], prepared[0]).value == pytest.approx(0.0)


def test_cliffs_delta_never_leaves_its_range() -> None:
    rng = np.random.default_rng(10)
    low, high = 1 + 0.1 * rng.random(100), 5 + 0.1 * rng.random(100)
    delta = cliffs_delta(*(Ranks.of(BlockSample.prepare(values, rng)) for values in (low, high))).estimate("")
    assert interval(delta) == pytest.approx((-1.0, -1.0))
    assert interval(delta)[0] >= -1.0


def test_equal_systems_show_no_difference() -> None:
    """With two hot runs each of equal systems, the ratio's interval must contain 1 at its nominal rate."""
    rng = np.random.default_rng(11)
    contained = 0
    for _ in range(40):
        groups = [runs_of(10.0, 0.03, 2, rng) for _ in range(4)]
        effects = BetweenRunVariance.pooled(groups)
        a, b = (pooled_mean(group, rng, effects) for group in groups[:2])
        contained += bool(a.ratio(b).estimate("").contains(1.0))
    assert contained >= 35


def test_own_repeats_of_a_series_count_once_in_the_pooled_variance() -> None:
    """Two systems with two repeats each give two degrees of freedom, not more."""
    groups = [[known(10.0), known(11.0)], [known(10.0), known(12.0)]]
    effects = BetweenRunVariance.pooled(groups)
    assert effects is not None
    rng = np.random.default_rng(21)
    a, b = (pooled_mean(group, rng, effects) for group in groups)
    assert a.degrees == pytest.approx(2.0)
    assert a.ratio(b).degrees == pytest.approx(2.0)
    assert effects.with_own(BetweenRunVariance.pooled(groups[:1])).variance == pytest.approx(effects.variance)


def test_ratio_and_inverse_ratio_agree() -> None:
    rng = np.random.default_rng(22)
    a, b = pooled_mean(runs_of(20.0, 0.02, 3, rng), rng), pooled_mean(runs_of(10.0, 0.02, 3, rng), rng)
    forth, back = a.ratio(b).estimate(""), b.ratio(a).estimate("")
    assert forth.contains(2.0)
    assert forth.value == pytest.approx(1 / back.value)
    low, high = interval(forth)
    assert (1 / high, 1 / low) == pytest.approx(interval(back), rel=1e-9)


def test_an_injected_difference_is_recovered() -> None:
    rng = np.random.default_rng(13)
    groups = [runs_of(10.0, 0.01, 3, rng), runs_of(15.0, 0.01, 3, rng)]
    effects = BetweenRunVariance.pooled(groups)
    plain, slowed = (pooled_mean(group, rng, effects) for group in groups)
    difference = slowed.difference(plain).estimate("ms")
    assert difference.contains(5.0)
    assert difference.is_above(3.5)


def test_differing_runs_widen_the_interval_of_a_single_run() -> None:
    rng = np.random.default_rng(14)
    runs = runs_of(10.0, 0.10, 3, rng)
    one, all_of_them = (interval(each.estimate("")) for each in (runs[0], pooled_mean(runs, rng)))
    assert all_of_them[1] - all_of_them[0] > 2 * (one[1] - one[0])


def test_single_run_uses_the_between_run_variance_of_other_systems() -> None:
    rng = np.random.default_rng(15)
    effects = BetweenRunVariance.pooled([runs_of(10.0, 0.05, 2, rng) for _ in range(6)])
    run = runs_of(10.0, 0.0, 1, rng)
    low, high = interval(pooled_mean(run, rng, effects).estimate(""))
    assert high / low > 1.1
    assert BetweenRunVariance.pooled([run]) is None


def test_what_was_measured_once_is_assumed_to_vary_as_windows_do(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(25)
    sets = [[runs_of(10.0, VARIES, 1, rng, 100)[0] for _ in range(2)] for _ in range(600)]

    def share(estimates: list[BootstrapEstimate]) -> float:
        return float(np.mean([each.estimate("").contains(1.0) for each in estimates]))

    assert share([pooled_mean([a], rng).ratio(pooled_mean([b], rng)) for a, b in sets]) > 0.93
    assert share([a.ratio(b) for a, b in sets]) < 0.40  # the blocks within a window say nothing of the next window
    assert share([measured_once(a.ratio(b), windows=2) for a, b in sets]) > 0.93
    monkeypatch.setattr("tidemark.analysis.aggregation.ONCE", (0.10**2, PRIOR_UNITS))
    assert share([measured_once(a.ratio(b), windows=2) for a, b in sets]) < 0.93, "what was assumed before"


def test_few_far_values_of_a_window_do_not_make_its_interval_narrow() -> None:
    """The far ones make up the variance of the median's draws, and lie outside the interval."""
    rng = np.random.default_rng(5)
    values = rng.permutation(np.concatenate([np.full(18, 0.12), np.full(7, 0.5)])) * np.exp(0.01 * rng.normal(size=25))
    inside = median(BlockSample.prepare(values, rng))
    for end in interval(measured_once(inside).estimate("")):
        assert abs(math.log(end / inside.value)) > 0.2, "12 %, with 8 degrees of freedom"


def test_value_without_an_interval_gives_none_to_a_ratio() -> None:
    (sampled,) = runs_of(10.0, 0.0, 1, np.random.default_rng(26))
    for found in (sampled.ratio(known(2.0)), known(2.0).ratio(sampled)):
        assert found.estimate("").low is None
    halved = sampled.ratio(literal(2.0)).estimate("")
    whole = sampled.estimate("")
    assert halved.low == pytest.approx((whole.low or 0) / 2) and (halved.n, halved.runs) == (whole.n, whole.runs)


def test_no_variance_is_assumed_of_counts_and_of_what_happened_once() -> None:
    for same in (counted(3), known(2.0), known(0.5, log=False)):
        assert measured_once(same) is same


def test_the_typical_run_is_the_geometric_mean() -> None:
    rng = np.random.default_rng(16)
    assert pooled_mean([known(10.0), known(40.0)], rng).value == pytest.approx(20.0)
    with pytest.raises(ValueError, match="no runs"):
        pooled_mean([], rng)


def test_a_value_seen_once_has_no_interval() -> None:
    estimate = known(2.5).estimate("s")
    assert (estimate.value, estimate.low, estimate.high, estimate.n) == (pytest.approx(2.5), None, None, 1)
    assert estimate.contains(2.5) is None
    assert not estimate.is_above(0)
    assert not estimate.is_below(9)


def test_a_count_is_its_own_interval_until_runs_differ() -> None:
    rng = np.random.default_rng(18)
    once = counted(50)
    for same in (once, once.linear(), once.scaled(1.0), mean([once, counted(50)], rng), pooled_mean([once], rng)):
        estimate = same.estimate("requests")
        assert (estimate.value, estimate.low, estimate.high) == (50, 50, 50)
    assert once.difference(counted(8)).estimate("requests").low == 42
    assert once.difference(known(8.0)).estimate("requests").low is None
    low, high = interval(pooled_mean([once, counted(48)], rng).estimate("requests"))
    assert low < 48 and high > 50


def test_samples_that_may_be_zero_stay_on_the_linear_scale() -> None:
    values = np.zeros(200)
    values[::4] = 3.0
    spread = interquartile_range(sample(values))
    assert not spread.log
    assert not median(sample(values)).log
    with pytest.raises(ValueError, match="ratio"):
        median(sample(values)).ratio(known(1.0))


def test_a_change_of_unit_changes_nothing_else() -> None:
    rng = np.random.default_rng(17)
    milliseconds = median(sample(np.exp(noise(500, 0.2, rng))))
    seconds = milliseconds.scaled(1e-3).estimate("s")
    assert interval(seconds) == pytest.approx([1e-3 * end for end in interval(milliseconds.estimate("ms"))])


@pytest.mark.parametrize(("log", "ends"), [(False, (0.0, 100.0)), (True, (50.0, 100.0))])
def test_bounds_of_a_share_hold_in_percent_as_well(log: bool, ends: tuple[float, float]) -> None:
    """Two repeats that differ widely would give an interval wider than the range of possible values."""
    share = 0.6
    spread = generator("a share").normal(0.0, 2.0, 1000)
    centre = math.log(share) if log else share
    found = BootstrapEstimate(centre, centre + spread, 20, 2, 1.0, log, (0.5 if log else 0.0, 1.0))
    for each in (found, found.linear()):
        percent = each.scaled(100).estimate("%")
        assert (percent.value, percent.low, percent.high) == (pytest.approx(60), *map(pytest.approx, ends))


def test_the_same_names_give_the_same_numbers() -> None:
    values = np.exp(np.random.default_rng(18).normal(size=300))
    twice = [median(BlockSample.prepare(values, generator("run-1", "write_ns"))).estimate("ms") for _ in range(2)]
    assert twice[0] == twice[1]
    assert generator("a", "bc").random() != generator("ab", "c").random()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(1e-6, 1e6), min_size=8, max_size=80), st.floats(0.0, 1.0))
def test_any_samples_have_an_interval_around_their_quantile(values: list[float], probability: float) -> None:
    estimate = quantile(sample(np.array(values)), probability).estimate("")
    low, high = interval(estimate)
    assert low <= estimate.value <= high
    assert estimate.value == pytest.approx(np.quantile(values, probability))


def test_few_samples_have_a_median_but_no_interval() -> None:
    few = median(sample(np.array([3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0]))).estimate("ms")
    assert (few.value, few.low, few.n) == (pytest.approx(4.0), None, 7)
    rate = ratio_of_sums(np.ones(3), np.full(3, 2.0), np.random.default_rng(0)).estimate("events/s")
    assert (rate.value, rate.high) == (pytest.approx(0.5), None)


def test_every_replicate_has_as_many_cells_as_the_run() -> None:
    for cells, length in pairwise([1, 2, 7, 64, 256]):
        weights = draw_cells(length, cells, np.random.default_rng(0))
        assert weights.shape == (1000, length)
        assert (weights.sum(axis=1) >= length).all()
        assert (weights >= 0).all()


def test_upper_bound_of_a_failure_rate() -> None:
    assert at_most(0, 100) == pytest.approx(3 / 100, rel=0.02)  # the rule of three
    for bad, tried in ((0, 3), (1, 20), (7, 20)):
        interval = stats.binomtest(bad, tried).proportion_ci(0.90, "exact")  # two-sided: 5 % above its upper end
        assert at_most(bad, tried) == pytest.approx(interval.high)
    assert at_most(0, 0) == at_most(4, 4) == 1.0
