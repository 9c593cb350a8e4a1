"""Ratios within rounds: their intervals hold the truth as often as they say, by simulation, and stop looking at it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.special import stdtrit

from tidemark.analysis.formatting import MARGIN, comparison
from tidemark.analysis.rounds import InRounds, RoundVariance, rounds_needed
from tidemark.analysis.statistics import BootstrapEstimate

TRUTH = np.log1p([0, 0, 0.03, 0.05, 0.08, 0.2, 3.0])  # of seven systems, of which the first two are equal
UNLIKE = np.linspace(0.4, 1.6, len(TRUTH))  # their standard deviations, over the mean
ALIKE = np.ones(len(TRUTH))


@dataclass(frozen=True)
class Design:
    rounds: int
    block: int = 1  # rounds on one start of all servers
    deviation: float = 0.086  # of one value, without what its round has in common
    common: float = 0.1  # standard deviation of what a round has in common
    restart: float = 0.0  # standard deviation that a start of the servers adds to each system by itself


def values(design: Design, spread: np.ndarray, rng: np.random.Generator) -> dict[str, dict[int, float]]:
    shape = len(TRUTH), design.rounds
    found = TRUTH[:, None] + rng.normal(size=shape) * (design.deviation * spread)[:, None]
    found += design.common * rng.normal(size=design.rounds)
    starts = rng.normal(size=(len(TRUTH), -(-design.rounds // design.block))) * design.restart
    found += np.repeat(starts, design.block, axis=1)[:, : design.rounds]
    return {str(place): dict(enumerate(row)) for place, row in enumerate(found)}


def in_rounds(given: dict[str, dict[int, float]], block: int) -> tuple[list[InRounds], RoundVariance]:
    between = RoundVariance.of(given, {number: number // block for number in given["0"]})
    assert between is not None
    rest = (between.own, between.degrees, between.inflation, between.block_degrees)
    return [InRounds(each, *rest) for each in given.values()], between


def half(variance: float, degrees: float) -> float:
    return float(stdtrit(degrees, 0.975)) * math.sqrt(variance)


def coverage(design: Design, spread: np.ndarray, sets: int) -> tuple[float, float, float, float]:
    """Return shares: ratios' intervals that hold the truth, equal pairs that differ; the width; and that of means."""
    rng = np.random.default_rng(11)
    held, apart, widths, means = [], [], [], []
    for _ in range(sets):
        given = values(design, spread, rng)
        found, between = in_rounds(given, design.block)
        for (i, one), (j, other) in itertools.combinations(enumerate(found), 2):
            difference = one.less(other)
            width = half(*difference.of_mean())
            held.append(abs(difference.mean - (TRUTH[i] - TRUTH[j])) <= width)
            widths.append(width)
            if (i, j) == (0, 1):
                apart.append(abs(difference.mean) > width)
        means += [
            abs(one.mean - TRUTH[place]) <= half(*between.of_mean(given[str(place)])) for place, one in enumerate(found)
        ]
    return float(np.mean(held)), float(np.mean(apart)), float(np.mean(widths)), float(np.mean(means))


@pytest.mark.parametrize(
    ("design", "sets"),
    [
        (Design(2), 300),
        (Design(5), 300),
        (Design(12, 4), 150),
        (Design(16, 4, restart=0.03), 150),
        (Design(40, 4, restart=0.03), 100),
    ],
)
def test_intervals_of_ratios_hold_the_truth(design: Design, sets: int) -> None:
    for spread in (ALIKE, UNLIKE):
        held, apart, _, _ = coverage(design, spread, sets)
        # The limits of 2,000 sets, in the test below, with what chance adds to fewer.
        assert 0.92 <= held <= 0.985 and apart <= 0.07 + 3 * math.sqrt(0.05 / sets)


@pytest.mark.long(reason="2,000 data sets of each design; the default tier has some hundred of each")
@pytest.mark.parametrize("restart", [0.0, 0.03])
@pytest.mark.parametrize("rounds", [12, 16, 40])
def test_intervals_of_ratios_hold_the_truth_in_2000_data_sets(rounds: int, restart: float) -> None:
    for spread in (ALIKE, UNLIKE):
        held, apart, _, means = coverage(Design(rounds, 4, restart=restart), spread, 2_000)
        assert 0.93 <= held <= 0.975 and apart <= 0.07 and means >= 0.93


@pytest.mark.parametrize("spread", [np.ones(9), np.linspace(0.4, 1.6, 9)], ids=["alike", "unlike"])
def test_few_repeats_take_their_variance_from_all_modes_of_a_part(spread: np.ndarray) -> None:
    """Three systems in three modes, measured twice: ratios of two systems, of two modes, and of both."""
    rng = np.random.default_rng(7)
    held, widths, of_mode = [], [], []
    for _ in range(300):
        found = rng.normal(size=(3, 3, 2)) * 0.086 * spread.reshape(3, 3, 1) + 0.1 * rng.normal(size=2)
        given = [{f"{mode} {name}": dict(enumerate(row)) for name, row in enumerate(found[mode])} for mode in range(3)]
        part = RoundVariance.of({name: each for one in given for name, each in one.items()})
        cells: list[InRounds] = []
        for one in given:
            alone = RoundVariance.of(one)
            assert part is not None and part.degrees == 8 and alone is not None and alone.degrees == 2
            shrunk = alone.beside(part)
            assert (shrunk.degrees, shrunk.effects) == (8, alone.effects)
            cells += [InRounds(each, shrunk.own, shrunk.degrees) for each in one.values()]
            first, other, _ = (InRounds(each, alone.own, alone.degrees) for each in one.values())
            of_mode.append(half(*first.less(other).of_mean()))
        for first, other in itertools.combinations(cells, 2):
            difference = first.less(other)
            widths.append(half(*difference.of_mean()))
            held.append(abs(difference.mean) <= widths[-1])
    assert 0.92 <= np.mean(held) <= 0.985 and np.mean(widths) < 0.7 * np.mean(of_mode)


def test_many_rounds_of_a_mode_say_enough_by_themselves() -> None:
    rng = np.random.default_rng(8)
    own, part = (in_rounds(values(Design(5, deviation=deviation), ALIKE, rng), 1)[1] for deviation in (0.05, 0.5))
    assert own.degrees == 24 and own.beside(part) == own


def test_common_drift_does_not_widen_ratios() -> None:
    quiet, noisy = (coverage(Design(5, common=common), ALIKE, 200) for common in (0.0, 0.2))
    assert noisy[2] == pytest.approx(quiet[2], rel=0.02)
    assert 0.92 <= noisy[0] <= 0.985 and noisy[3] >= 0.91, "and the intervals of single systems cover it"


def test_estimates_of_the_same_rounds_are_compared_within_them() -> None:
    drift = [0.0, 0.3, -0.2, 0.5]
    given = {name: {r: level + drift[r] for r in range(4)} for name, level in (("a", 1.0), ("b", 0.4), ("c", 0.1))}
    given["a"][2] += 0.01
    found = {name: BootstrapEstimate(float(np.mean(list(each.values()))), None, 4) for name, each in given.items()}
    between = RoundVariance.of(given)
    assert between is not None
    one, other = (
        BootstrapEstimate(found[name].centre, None, 4, rounds=InRounds(given[name], between.own, between.degrees))
        for name in "ab"
    )
    apart = one.ratio(other).estimate("")
    assert apart.low is not None and apart.high is not None
    assert apart.value == pytest.approx(math.exp(0.6025)) and apart.high / apart.low < 1.05
    unpaired = found["a"].ratio(found["b"]).estimate("")
    assert unpaired.value == pytest.approx(apart.value)
    # A ratio of ratios, a difference and another unit keep the rounds.
    assert one.ratio(other).ratio(one.ratio(other)).value == pytest.approx(1.0)
    assert one.scaled(1e3).ratio(other).value == pytest.approx(1e3 * apart.value)
    less = one.difference(other)
    assert less.rounds is not None and less.value == pytest.approx(
        np.mean([math.exp(given["a"][r]) - math.exp(given["b"][r]) for r in range(4)])
    )


def test_missing_values_drop_out_of_their_pairs_alone() -> None:
    rng = np.random.default_rng(3)
    given = values(Design(8), ALIKE, rng)
    del given["0"][5], given["3"][2]
    found, between = in_rounds(given, 1)
    assert between.degrees == (7 - 1) * (8 - 1) - 2
    assert set(found[0].less(found[3]).values) == {0, 1, 3, 4, 6, 7}
    assert set(found[1].less(found[2]).values) == set(range(8))


def test_one_system_or_one_round_shows_no_variance_between_rounds() -> None:
    assert RoundVariance.of({"a": {1: 0.1, 2: 0.2}}) is None
    assert RoundVariance.of({"a": {1: 0.1}, "b": {1: 0.2}}) is None
    two = RoundVariance.of({"a": {1: 0.0, 2: 0.2}, "b": {1: 0.0, 2: 0.0}})
    assert two is not None and two.degrees == 1
    variance, degrees = (
        InRounds({1: 0.0, 2: 0.2}, two.own, two.degrees)
        .less(InRounds({1: 0.0, 2: 0.0}, two.own, two.degrees))
        .of_mean()
    )
    assert (variance, degrees) == (pytest.approx(0.02 / 2), 1), "with two systems, that of their pair alone"


def test_a_restart_that_moves_one_system_widens_its_block() -> None:
    rng = np.random.default_rng(5)
    calm = in_rounds(values(Design(16, 4), ALIKE, rng), 4)[1]
    moved = in_rounds(values(Design(16, 4, restart=0.3), ALIKE, rng), 4)[1]
    assert calm.inflation < 2 < moved.inflation and moved.block_degrees == 3 * 6


def test_rounds_that_decide_follow_from_the_variance_and_the_margin() -> None:
    assert rounds_needed(2 * 0.0074, 0.05) == 54 and rounds_needed(2 * 0.0074, 0.10) == 14


def ratio_of(centre: float, deviation: float, rounds: int) -> BootstrapEstimate:
    """Return a ratio formed within rounds, each of which deviates by `deviation` up or down."""
    values = {number: centre + deviation * (-1) ** number for number in range(rounds)}
    one = BootstrapEstimate(centre, None, 4, rounds=InRounds(values, deviation**2 / 2, 60.0))
    return one.ratio(
        BootstrapEstimate(0.0, None, 4, rounds=InRounds(dict.fromkeys(values, 0.0), deviation**2 / 2, 60.0))
    )


@pytest.mark.parametrize(
    ("times", "deviation", "verdict"),
    [
        (2.0, 0.05, "slower by at least 9"),
        (0.5, 0.05, "faster by at least 4"),
        (1.05, 0.02, "slower by less than 10 %"),
        (1.0, 0.04, "the same within 10 %"),
        (1.0, 0.3, "not distinguishable (90 rounds would decide)"),
        (20.0, 0.05, "slower by at least a factor of 1"),
    ],
)
def test_verdict_states_what_the_interval_supports(times: float, deviation: float, verdict: str) -> None:
    assert str(comparison(lambda: ratio_of(math.log(times), deviation, 12))).startswith(verdict)


def test_systems_that_differ_by_the_margin_are_rarely_found_the_same() -> None:
    """Two systems that differ by exactly 10 % are found the same within 10 % in at most 6 % of data sets."""
    rng, same = np.random.default_rng(2), 0
    for _ in range(400):
        draws = {str(s): dict(enumerate((s == 0) * math.log1p(MARGIN) + 0.03 * rng.normal(size=12))) for s in range(7)}
        between = RoundVariance.of(draws)
        assert between is not None
        one, other = (
            BootstrapEstimate(float(np.mean(list(draws[name].values()))), None, 1,
                              rounds=InRounds(draws[name], between.own, between.degrees))
            for name in "01"
        )  # fmt: skip
        same += str(comparison(partial(one.ratio, other))).startswith("the same")
    assert same <= 0.06 * 400
