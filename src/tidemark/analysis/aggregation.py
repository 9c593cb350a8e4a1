"""From runs to a series: the typical run, with the variance between runs and between repeats of a series.

Runs of a series usually vary more than the blocks of one run, and repeats of a series more than its runs: servers are
restarted, and the machine drifts meanwhile. The variance is estimated from all series of one mode
(`BetweenRunVariance`), because two runs or repeats of a single series carry almost no information about it. If series
were repeated, the repeat is the unit, and a round of all systems (`RoundVariance`): treating its runs as independent
would ignore their common deviation and make the interval too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest

import numpy as np

from tidemark.analysis.blocks import REPLICATES, BlockSample, Ranks
from tidemark.analysis.rounds import InRounds, RoundVariance
from tidemark.analysis.statistics import BootstrapEstimate, Floats, cliffs_delta, generator
from tidemark.runs.runset import ONCE_SD, Series

PRIOR_UNITS = 8.0  # pooled effects weigh at most as much as eight differences between a series' own units
ONCE = (ONCE_SD**2, PRIOR_UNITS)  # variance of what was measured once, and its degrees of freedom


@dataclass(frozen=True, slots=True)
class BetweenRunVariance:
    """Variance between units under the same conditions (runs of a series, or its repeats), pooled over many series.

    It is that of one unit on the quantity's working scale.
    """

    variance: float
    degrees: float

    @classmethod
    def pooled(cls, groups: Sequence[Sequence[BootstrapEstimate]]) -> BetweenRunVariance | None:
        """Return the variance in groups of units, each measured under the same conditions; None if no group has two."""
        squares, degrees = 0.0, 0
        for group in groups:
            centres = np.array([unit.centre for unit in group if math.isfinite(unit.centre)])
            if len(centres) > 1:
                squares += float(np.sum((centres - centres.mean()) ** 2))
                degrees += len(centres) - 1
        return cls(squares / degrees, float(degrees)) if degrees else None

    def scaled(self, factor: float) -> BetweenRunVariance:
        """Return the same variance in another unit, for quantities on the linear scale."""
        return BetweenRunVariance(self.variance * factor**2, self.degrees)

    def with_own(self, own: BetweenRunVariance | None) -> BetweenRunVariance:
        """Return this variance, moderated by the `own` one of a series, whose units it includes.

        It is the mean of the other series' and the series' own, weighted by their degrees of freedom.
        """
        if own is None:
            return BetweenRunVariance(self.variance, min(self.degrees, PRIOR_UNITS))
        others = self.degrees - own.degrees
        if others <= 0 or self.variance == 0:
            return own
        theirs = max(self.variance * self.degrees - own.variance * own.degrees, 0.0) / others
        prior = min(others, PRIOR_UNITS)
        degrees = prior + own.degrees
        return BetweenRunVariance((prior * theirs + own.degrees * own.variance) / degrees, degrees)


def mean(runs: Sequence[BootstrapEstimate], rng: np.random.Generator) -> BootstrapEstimate:
    """Return the mean of exactly these runs (geometric if resampled as logarithms), with within-run variance only."""
    if not runs:
        raise ValueError("no runs")
    if len({run.log for run in runs}) > 1:
        runs = [run.linear() for run in runs]
    if len(runs) == 1:
        return runs[0]
    draws: Floats | None = None
    if any(run.draws is not None for run in runs):
        draws = np.full(REPLICATES, float(np.mean([run.centre for run in runs])))
        for run in runs:
            if run.draws is not None:
                draws += (run.draws - run.centre)[rng.integers(0, len(run.draws), REPLICATES)] / len(runs)
    degrees = _satterthwaite([(run.variance, run.degrees) for run in runs])
    centre = float(np.mean([run.centre for run in runs]))
    n, count = sum(run.n for run in runs), sum(run.runs for run in runs)
    is_exact = all(run.is_exact for run in runs)
    return BootstrapEstimate(centre, draws, n, count, max(degrees, 1.0), runs[0].log, runs[0].bounds, is_exact)


def pooled_mean(
    units: Sequence[BootstrapEstimate], rng: np.random.Generator, between_runs: BetweenRunVariance | None = None
) -> BootstrapEstimate:
    """Return the typical unit: the mean of `units`, which are runs or repeats (geometric for logarithms).

    The variance is that of units, from `between_runs` moderated by these units' own, or from these units alone. It
    contains that of the blocks within a unit, which is the least that it can be. A single unit without `between_runs`
    is taken to vary as `measured_once` says.
    """
    inside = mean(units, rng)
    own = BetweenRunVariance.pooled([[unit if unit.log == inside.log else unit.linear() for unit in units]])
    if between_runs is not None and all(unit.log == inside.log for unit in units):
        own = between_runs.with_own(own)
    if own is None:
        return measured_once(inside)
    return _widened(inside, own.variance / len(units), own.degrees, rng)


def mean_of_rounds(
    units: Mapping[int, BootstrapEstimate], rng: np.random.Generator, between: RoundVariance | None
) -> BootstrapEstimate:
    """Return the mean of `units`, one a round, with the variance between rounds; at least that within the units.

    `between`: the variance that the rounds of all systems show. It can be compared within these rounds.
    """
    inside = mean(list(units.values()), rng)
    values = {number: (unit if unit.log == inside.log else unit.linear()).centre for number, unit in units.items()}
    if between is not None:
        variance, degrees = between.of_mean(values)
        rounds = InRounds(values, between.own, between.degrees, between.inflation, between.block_degrees)
    elif len(values) > 1:
        rounds = InRounds(values)
        variance, degrees = rounds.of_mean()
    else:
        return measured_once(inside)
    return replace(_widened(inside, variance, degrees, rng), rounds=rounds)


def measured_once(unit: BootstrapEstimate, windows: float = 1) -> BootstrapEstimate:
    """Return `unit` with `windows` times the variance that a window is assumed to have if nothing shows how it varies.

    The blocks within a window say nothing of it. Counts, times that happened once and quantities on the linear scale
    are returned unchanged.
    """
    return _widened(unit, windows * ONCE[0], ONCE[1]) if unit.log and unit.draws is not None else unit


def _widened(
    inside: BootstrapEstimate, variance: float, degrees: float, rng: np.random.Generator | None = None
) -> BootstrapEstimate:
    """Return `inside` with the `variance` between units, which contains that within them: at least that.

    Each half of an interval is the wider one of a normal variable with that variance and of the draws within the units.
    These may have a few far draws that make up their variance, and lie outside the interval.
    What a window has once has no draws. It gets its own from `rng`: draws that several share would move them together.
    """
    beyond = max(variance - inside.variance, 0.0)
    if not beyond and not inside.log and inside.draws is not None:
        return inside  # the shape of a share near its limit is its own
    both = _satterthwaite([(inside.variance, inside.degrees), (beyond, degrees)])
    normal = inside.with_variance(variance, both)
    if inside.draws is None:
        return replace(normal, draws=normal.replicates if rng is None else rng.permutation(normal.replicates))
    own, order = np.sort(inside.draws), np.argsort(inside.draws, kind="stable")
    of_normal, half = np.sort(normal.replicates), len(own) // 2
    drawn = np.empty_like(own)
    drawn[order] = np.concatenate([np.minimum(own, of_normal)[:half], np.maximum(own, of_normal)[half:]])
    return replace(normal, draws=drawn)


def deltas(
    column: str, all_series: Sequence[Series], is_repeated: bool
) -> dict[tuple[str, str, str], list[BootstrapEstimate]]:
    """Return Cliff's delta of `column` for each pair of series, by (column, id, id) in their order: one per unit.

    A hot run is compared with the other series' run at the same position in the same repeat. Each run is prepared
    once, and only the runs of one position are in memory at a time.
    """
    units: dict[tuple[str, str, str], list[BootstrapEstimate]] = {
        (column, one.id, other.id): [] for one, other in combinations(all_series, 2)
    }
    for repeats in zip_longest(*(series.hot_repeats for series in all_series)):
        here = [(series.id, repeat) for series, repeat in zip(all_series, repeats, strict=True) if repeat is not None]
        pairs: dict[tuple[str, str, str], list[BootstrapEstimate]] = {}
        for place in range(max(len(repeat.hot_runs) for _, repeat in here)):
            prepared = [
                (name, Ranks.of(BlockSample.prepare(run.column(column), generator("delta", column, run.label))))
                for name, repeat in here
                for run in repeat.hot_runs[place : place + 1]
            ]
            for (one, x), (other, y) in combinations(prepared, 2):
                pairs.setdefault((column, one, other), []).append(cliffs_delta(x, y))
        for key, runs in pairs.items():
            units[key] += [mean(runs, generator("delta", *key, len(units[key])))] if is_repeated else runs
    return units


def _satterthwaite(parts: Sequence[tuple[float, float]]) -> float:
    """Return the effective degrees of freedom of a sum of independently estimated variances."""
    total = sum(variance for variance, _ in parts)
    spread = sum(variance**2 / degrees for variance, degrees in parts if variance > 0)
    return total**2 / spread if spread > 0 else math.inf
