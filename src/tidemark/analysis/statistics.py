"""Estimates with 95 % confidence intervals from raw samples: blocks of a run, runs of a series, repeats of a series.

Intervals take three facts into account:

- *Samples of one run are autocorrelated.* They are resampled in blocks
  (Künsch 1989), whose length comes from the autocorrelation (Politis and White 2004, with the correction of
  Patton, Politis and White 2009). A block is drawn from near the position that it fills (the local block bootstrap
  of Paparoditis and Politis 2002), because the write times of some systems grow throughout a run: growth is a
  separate result, not noise of the median.
- *Runs vary*, and so do *repeats of a series*, by more than the blocks of one run: see `aggregation`. Repeats are
  rounds: what is compared is compared within them (`rounds`).
- *Few runs make narrow bootstrap intervals*, so deviations from the estimate are multiplied by Student's t over
  the normal quantile, with Welch-Satterthwaite degrees of freedom (after Hesterberg 2015).

Metrics that are compared by ratio (times, throughputs, sizes) are resampled as logarithms, so that the
interval of a/b is the inverse of that of b/a. All randomness comes from the generators passed in.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri, stdtrit

from tidemark.analysis.blocks import REPLICATES, BlockSample, Numbers, Ranks, resample, resampled_residuals
from tidemark.analysis.rounds import InRounds

Floats = NDArray[np.float64]
FEWEST = 8  # samples of one run; resampling fewer is meaningless
NORMAL = np.random.default_rng(0).permutation(ndtri((np.arange(REPLICATES) + 0.5) / REPLICATES))


def generator(*names: object) -> np.random.Generator:
    """Return a generator seeded by `names` alone, so that no result depends on the order of computation."""
    digest = hashlib.sha256("\0".join(map(str, names)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "little"))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % confidence interval.

    `low` and `high` are None if no valid interval exists (a maximum; a time that was measured once), and equal the
    value if it was counted. `n` is the number of samples behind the value, `runs` the number of runs.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    unit: str
    runs: int = 1

    @property
    def half_width_percent(self) -> float:
        """Half of the interval's width, in per cent of the value; infinite if there is no interval."""
        if self.low is None or self.high is None:
            return math.inf
        return 50 * (self.high - self.low) / self.value

    def contains(self, value: float) -> bool | None:
        """Return whether the interval contains `value`; None if there is no interval."""
        return None if self.low is None or self.high is None else self.low <= value <= self.high

    def is_above(self, value: float) -> bool:
        """Return True if the entire interval lies above `value`."""
        return self.low is not None and self.low > value

    def is_below(self, value: float) -> bool:
        """Return True if the entire interval lies below `value`."""
        return self.high is not None and self.high < value


@dataclass(frozen=True, slots=True)
class BootstrapEstimate:
    """A quantity with its bootstrap replicates, from which estimates, ratios and differences are computed.

    `centre` and `draws` are logarithms if `log`. `draws` is None for a quantity with a single known value.
    `degrees` are the degrees of freedom of its variance estimate.
    """

    centre: float
    draws: Floats | None
    n: int
    runs: int = 1
    degrees: float = math.inf
    log: bool = True
    bounds: tuple[float, float] | None = None  # limits that an interval cannot exceed
    is_exact: bool = False  # counted, not measured: without draws, the interval is the value itself
    rounds: InRounds | None = None  # its value in each round, by which it is compared with others of the same rounds

    @property
    def value(self) -> float:
        return math.exp(self.centre) if self.log else self.centre

    @property
    def replicates(self) -> Floats:
        """Its draws as float64[REPLICATES]; those of a single known value are that value."""
        return np.full(REPLICATES, self.centre) if self.draws is None else self.draws

    @property
    def variance(self) -> float:
        return 0.0 if self.draws is None else float(np.var(self.draws))

    @property
    def is_constant(self) -> bool:
        """True if it varies neither within a run nor between rounds, such as the 1 in 1 - share."""
        return self.is_exact and self.draws is None and self.rounds is None

    def estimate(self, unit: str, level: float = 0.95) -> Estimate:
        """Return the number with its interval, in the quantity's own unit; `level` is the confidence level."""
        if self.draws is None or not math.isfinite(self.centre):
            end = self.value if self.is_exact else None
            return Estimate(self.value, end, end, self.n, unit, self.runs)
        tail = (1 - level) / 2
        low, high = np.quantile(self.draws, [tail, 1 - tail])
        stretch = float(stdtrit(self.degrees, 1 - tail) / ndtri(1 - tail)) if math.isfinite(self.degrees) else 1.0
        ends = [self.centre + stretch * (float(end) - self.centre) for end in (low, high)]
        ends = [min(ends[0], self.centre), max(ends[1], self.centre)]
        if self.log:
            ends = [math.exp(min(end, 700.0)) for end in ends]
        if self.bounds is not None:
            ends = [max(ends[0], self.bounds[0]), min(ends[1], self.bounds[1])]
        return Estimate(self.value, ends[0], ends[1], self.n, unit, self.runs)

    def scaled(self, factor: float) -> BootstrapEstimate:
        """Return the quantity times `factor` > 0: in another unit, or as a share of 1 / `factor`."""
        bounds = None if self.bounds is None else (self.bounds[0] * factor, self.bounds[1] * factor)
        if self.log:
            by = math.log(factor)
            draws = None if self.draws is None else self.draws + by
            rounds = self.rounds and self.rounds.moved(by)
            return replace(self, centre=self.centre + by, draws=draws, bounds=bounds, rounds=rounds)
        draws = None if self.draws is None else self.draws * factor
        rounds = self.rounds and self.rounds.scaled(factor)
        return replace(self, centre=self.centre * factor, draws=draws, bounds=bounds, rounds=rounds)

    def ratio(self, other: BootstrapEstimate) -> BootstrapEstimate:
        """Return this quantity over `other`; raise ValueError unless both are resampled as logarithms."""
        if not (self.log and other.log):
            raise ValueError("a ratio needs two quantities that are resampled as logarithms")
        return _difference(self, other)

    def difference(self, other: BootstrapEstimate) -> BootstrapEstimate:
        """Return this quantity minus `other`, in their unit."""
        return _difference(self.linear(), other.linear())

    def linear(self) -> BootstrapEstimate:
        """Return the same quantity, resampled on the linear instead of the logarithmic scale."""
        if not self.log:
            return self
        draws = None if self.draws is None else np.exp(self.draws)
        rounds = self.rounds and self.rounds.exponential(self.value)
        return replace(self, centre=self.value, draws=draws, log=False, rounds=rounds)

    def with_variance(self, variance: float, degrees: float) -> BootstrapEstimate:
        """Return the same quantity with normal draws of this variance, in the order of its own draws if it has any.

        The shape of its own draws is that of one window: a few far ones would take up the variance.
        """
        draws = NORMAL if self.draws is None else np.sort(NORMAL)[np.argsort(np.argsort(self.draws, kind="stable"))]
        return replace(self, draws=self.centre + math.sqrt(variance) * draws, degrees=max(degrees, 1.0))


def _difference(a: BootstrapEstimate, b: BootstrapEstimate) -> BootstrapEstimate:
    draws = None
    # What was measured once, and has no interval, gives none to a comparison either.
    if all(each.draws is not None or each.is_exact for each in (a, b)) and not (a.is_exact and b.is_exact):
        draws = a.replicates - b.replicates
    # Both estimate unit variance from the same systems, so their errors may be correlated: no degree counts twice.
    degrees = _together([(a.variance, a.degrees), (b.variance, b.degrees)])
    n, is_exact = a.n + b.n, a.is_exact and b.is_exact
    runs = min((each.runs for each in (a, b) if each.n), default=1)
    found = BootstrapEstimate(a.centre - b.centre, draws, n, runs, degrees, a.log, is_exact=is_exact)
    if a.rounds is not None and b.is_constant:
        return replace(found, rounds=a.rounds.moved(-b.centre))
    if b.rounds is not None and a.is_constant:
        return replace(found, rounds=b.rounds.scaled(-1.0).moved(a.centre))
    rounds = a.rounds.less(b.rounds) if a.rounds is not None and b.rounds is not None else None
    if rounds is None or len(rounds.values) < 2:
        return found
    return replace(found, centre=rounds.mean, rounds=rounds).with_variance(*rounds.of_mean())


def _together(parts: Sequence[tuple[float, float]]) -> float:
    """Return the effective degrees of freedom of a sum of correlated variance estimates; equal degrees are kept."""
    total = sum(variance for variance, _ in parts)
    spread = sum(variance / math.sqrt(degrees) for variance, degrees in parts if variance > 0)
    return (total / spread) ** 2 if spread > 0 else math.inf


def known(value: float, *, log: bool = True) -> BootstrapEstimate:
    """Return a quantity that a run has once, such as its flush time. `log` needs `value` > 0."""
    return BootstrapEstimate(math.log(value) if log else value, None, 1, log=log)


def literal(value: float, *, log: bool = True) -> BootstrapEstimate:
    """Return a number that no run has, such as the 1 in 1 - share."""
    return replace(known(value, log=log), n=0, is_exact=True)


def counted(value: float) -> BootstrapEstimate:
    """Return a count of a run. Unlike a time, it is exact, because the run counted all occurrences.

    It applies to that run only. Over several runs, the uncertainty is the variance between their counts.
    """
    return replace(known(value, log=False), is_exact=True)


# Within one run


def quantile(sample: BlockSample, probability: float) -> BootstrapEstimate:
    """Return a quantile of positive samples, e.g. 0.5 for the median."""
    centre, draws = sample.quantile(probability)
    return _positive(centre, draws, sample.n, sample.degrees)


def quantile_of_windows(windows: Numbers, probability: float, rng: np.random.Generator) -> BootstrapEstimate:
    """Return a quantile of all positive samples of `windows`, of shape (windows, samples); two windows or more.

    The interval is Woodruff's (1952): the share of samples below the quantile varies between windows, and the ends are
    the quantiles at the ends of that share's interval.
    """
    count = len(windows)
    value = float(np.quantile(windows, probability))
    error = float((windows <= value).mean(axis=1).std(ddof=1)) / math.sqrt(count)
    steps = stdtrit(count - 1, (np.arange(REPLICATES) + 0.5) / REPLICATES)
    draws = np.quantile(windows, np.clip(probability + error * rng.permutation(steps), 0.0, 1.0))
    return replace(_positive(value, draws, windows.size, math.inf), runs=count)


def median(sample: BlockSample) -> BootstrapEstimate:
    return quantile(sample, 0.5)


def interquartile_range(sample: BlockSample) -> BootstrapEstimate:
    """Return the third minus the first quartile."""
    low, low_draws = sample.quantile(0.25)
    high, high_draws = sample.quantile(0.75)
    return _positive(high - low, np.maximum(high_draws - low_draws, 0.0), sample.n, sample.degrees)


def _positive(centre: float, draws: Floats, n: int, degrees: float) -> BootstrapEstimate:
    """Return log-scale replicates if all values are positive, else (bytes of idle seconds) linear-scale ones."""
    if n < FEWEST:
        return replace(known(centre, log=centre > 0), n=n)
    if centre > 0 and bool((draws > 0).all()):
        return BootstrapEstimate(math.log(centre), np.log(draws), n, 1, degrees)
    return BootstrapEstimate(centre, draws, n, 1, degrees, log=False, bounds=(0.0, math.inf))


def ratio_of_sums(numerators: Numbers, denominators: Numbers, rng: np.random.Generator) -> BootstrapEstimate:
    """Return sum over sum, resampled in blocks: e.g. events per second from events and time of each operation."""
    upper, lower, degrees = resample(numerators, denominators, rng)
    centre = float(np.sum(numerators, dtype=np.float64)) / float(np.sum(denominators, dtype=np.float64))
    return _positive(centre, upper / lower, len(numerators), degrees)


def theil_sen(samples: Numbers, rng: np.random.Generator) -> BootstrapEstimate:
    """Return the slope of `samples` per 1,000 samples (Theil 1950, Sen 1968), in their unit.

    The median of all pairwise slopes costs the square of the number of points. Samples are therefore first
    reduced to medians of at most 64 stretches of equal length: this removes outliers but keeps a trend.
    The interval comes from moving blocks of the residuals, added back to the fitted line.
    """
    n = len(samples)
    cells = min(64, n)
    if cells < 3:  # too few points for a trend
        return BootstrapEstimate(math.nan, None, n, log=False)
    bounds = (np.arange(cells + 1) * n) // cells
    x = (bounds[:-1] + bounds[1:] - 1) / 2000.0
    y = np.array([np.median(samples[a:b]) for a, b in itertools.pairwise(bounds)])
    first, second = np.triu_indices(cells, 1)
    run = x[second] - x[first]
    slope = float(np.median((y[second] - y[first]) / run))
    fitted = slope * x + np.median(y - slope * x)
    redrawn = fitted + resampled_residuals(y - fitted, rng)
    slopes = (redrawn[:, second] - redrawn[:, first]) / run
    slopes.sort(axis=1)  # for their medians: faster than np.median, with the same result
    draws = (slopes[:, (len(run) - 1) // 2] + slopes[:, len(run) // 2]) / 2
    return BootstrapEstimate(slope, draws, n, log=False)


def cliffs_delta(a: Ranks, b: Ranks) -> BootstrapEstimate:
    """Return P(a > b) - P(a < b) for one sample of each (Cliff 1993): 1 if every `a` is larger, 0 if neither is."""
    centre, draws = a.dominance(b)
    return BootstrapEstimate(centre, draws, a.n + b.n, 1, min(a.degrees, b.degrees), log=False, bounds=(-1.0, 1.0))


def share(part: int, whole: int, rng: np.random.Generator) -> BootstrapEstimate:
    """Return `part` / `whole`, a share of independent events, with a Jeffreys interval."""
    draws = rng.beta(part + 0.5, max(whole - part, 0) + 0.5, REPLICATES)
    return BootstrapEstimate(part / whole, draws, whole, log=False, bounds=(0.0, 1.0))


def counted_share(part: int, whole: int) -> BootstrapEstimate:
    """Return `part` / `whole` as a run counted it: of rows, which a commit writes or loses together.

    It has no sampling interval, as such rows are not independent events; the value is exact, and of that run only.
    """
    return replace(counted(part / whole), n=whole)


def at_most(bad: int, tried: int, confidence: float = 0.95) -> float:
    """Return the one-sided upper bound of a probability after `bad` of `tried` trials (Clopper and Pearson 1934).

    If `bad` is 0, it is about 3 / tried (the rule of three); if `tried` is 0, it is 1.
    """
    return 1.0 if bad >= tried else float(betaincinv(bad + 1, tried - bad, confidence))


def exact_share(part: int, whole: int, confidence: float = 0.95) -> Estimate:
    """Return `part` / `whole`, a share of independent events, with a two-sided interval (Clopper and Pearson 1934)."""
    side = (1 + confidence) / 2
    low, high = 1 - at_most(whole - part, whole, side), at_most(part, whole, side)
    return Estimate(part / whole, low, high, whole, "")


def product(a: Estimate, b: Estimate) -> Estimate:
    """Return the product of two positive numbers; its interval contains that of all pairs from their intervals."""
    low = None if a.low is None or b.low is None else a.low * b.low
    high = None if a.high is None or b.high is None else a.high * b.high
    return Estimate(a.value * b.value, low, high, min(a.n, b.n), a.unit)


def slope_of(points: Sequence[tuple[float, BootstrapEstimate]]) -> BootstrapEstimate:
    """Return the median slope of all pairs (Theil 1950, Sen 1968), in the quantity's unit per unit of the setting.

    `points`: two or more, each the setting and the quantity on the linear scale. The result has no interval if one of
    the quantities has none.
    """
    pairs = list(itertools.combinations(range(len(points)), 2))

    def slope(values: Sequence[Floats]) -> Floats:
        slopes = [(values[b] - values[a]) / (points[b][0] - points[a][0]) for a, b in pairs]
        return np.asarray(np.median(np.stack(slopes), axis=0))

    quantities = [each for _, each in points]
    centre = float(slope([np.asarray(each.centre) for each in quantities]))
    drawn = _in_the_same_rounds(quantities)
    n, runs = sum(each.n for each in quantities), min(each.runs for each in quantities)
    degrees = min(each.degrees for each in quantities)
    return BootstrapEstimate(centre, slope(drawn) if len(drawn) == len(points) else None, n, runs, degrees, log=False)


def _in_the_same_rounds(parts: Sequence[BootstrapEstimate]) -> list[Floats]:
    """Return the draws of those of `parts` that have any; what their rounds have in common moves all by the same draws.

    The variance that a part's rounds show beyond its own is common to them.
    """
    found = []
    for part in parts:
        own = part.rounds.prior / len(part.rounds.values) if part.rounds and part.rounds.prior is not None else math.inf
        if part.draws is not None and part.variance > own:
            common = math.sqrt(part.variance - own) * NORMAL
            found.append(part.with_variance(own, part.degrees).replicates + common)
        elif part.draws is not None:
            found.append(part.draws)
    return found


def intercept_of(points: Sequence[tuple[float, BootstrapEstimate]], slope: float) -> float:
    """Return the intercept of the line with `slope` through the points: the median of their residuals."""
    return float(np.median([each.centre - slope * setting for setting, each in points]))
