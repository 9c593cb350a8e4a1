"""Comparison of systems within rounds, in each of which every system was measured once.

What a round has in common (the machine's speed at that time) is in each of its values and drops out of a ratio that is
formed within it. With y[s, r] the value of system s in round r, a logarithm for what is compared by ratio:

    d[r] = y[a, r] - y[b, r]                      over the rounds that have both; the ratio is exp(mean of d)
    e[s, r] = y[s, r] - y[s, .] - y[., r] + y[., .]
    V = sum of e^2 / ((S - 1) (R - 1))            the variance of one value, from all systems
    v = (8 * 2 V + (R - 1) * var(d)) / (8 + R - 1)    that of d: shrunk, since few rounds tell little of one pair
    L = max(1, variance of the block means of e, times their length, over V)    for three or more blocks of rounds
    half-width = t(degrees) * sqrt(L v / R)       degrees: 8 + R - 1, at most (S - 1) (R - 1)

With two systems V is var(d) / 2 and tells nothing more: v = var(d), with R - 1 degrees. With fewer than 8 degrees, V is
shrunk to that of all modes of a part, which are measured in the same rounds. The shrinkage is that of Smyth (2004).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

PRIOR = 8.0  # degrees that the variance of all systems counts for, beside a pair's own
FEWEST_BLOCKS = 3
STEPS = 50  # of the fit of rows and columns where values are missing; exact after one if none is

type Values = Mapping[int, float]  # of one system, by round


@dataclass(frozen=True, slots=True)
class RoundVariance:
    """Variation of values between rounds under the same conditions, estimated from all systems of a mode.

    `own`: the variance V of one value when what its round has in common is removed, with `degrees`. `common`: that of
    the rounds' means over `systems`, with one degree less than there are rounds. `effects`: those means, centred.
    `inflation`: the factor L of blocks; its degrees are `block_degrees`.
    """

    own: float
    degrees: float
    common: float
    systems: int
    effects: Mapping[int, float]
    inflation: float = 1.0
    block_degrees: float = math.inf

    @classmethod
    def of(cls, values: Mapping[str, Values], blocks: Mapping[int, int] | None = None) -> RoundVariance | None:
        """Return the variances, or None if fewer than two systems have two rounds.

        `values`: those of each system. `blocks`: the block of each round; without it, each round is one.
        """
        chosen = {name: each for name, each in values.items() if len(each) > 1}
        rounds = sorted({number for each in chosen.values() for number in each})
        table = np.array([[each.get(number, math.nan) for number in rounds] for each in chosen.values()])
        degrees = float(np.isfinite(table).sum() - len(chosen) - len(rounds) + 1) if len(chosen) > 1 else 0.0
        if degrees < 1:
            return None
        rest, effects = _residuals(table)
        own = float(np.nansum(rest**2)) / degrees
        inflation, block_degrees = _of_blocks(rest, [(blocks or {}).get(number, number) for number in rounds], own)
        common = float(np.var(effects, ddof=1))
        by_round = dict(zip(rounds, map(float, effects), strict=True))
        return cls(own, degrees, common, len(chosen), by_round, inflation, block_degrees)

    def beside(self, part: RoundVariance) -> RoundVariance:
        """Return the same variances; with few degrees, V is shrunk to that of all modes of the `part`."""
        if self.degrees >= PRIOR:
            return self
        weight = PRIOR + self.degrees
        own = (PRIOR * part.own + self.degrees * self.own) / weight
        return replace(self, own=own, degrees=max(self.degrees, min(weight, part.degrees)))

    def scaled(self, factor: float) -> RoundVariance:
        """Return the same variances in another unit, for quantities on the linear scale."""
        effects = {number: effect * factor for number, effect in self.effects.items()}
        square = factor**2
        return replace(self, own=self.own * square, common=self.common * square, effects=effects)

    def of_mean(self, values: Values) -> tuple[float, float]:
        """Return the variance of the mean of one system's `values`, and its degrees of freedom.

        It contains what rounds have in common, of which they are few: one drift moves all systems together.
        """
        centred = np.array([value - self.effects.get(number, 0.0) for number, value in values.items()])
        share = 1 - 1 / self.systems  # of V: the rest is in the rounds' means
        own, degrees = self.own, self.degrees
        if len(values) > 1:
            residual = float(np.var(centred, ddof=1)) / share
            own, degrees = _shrunk(self.own, self.degrees, residual, len(values))
        own *= share * self.inflation
        total, spread = self.common + own, self.common**2 / (len(self.effects) - 1) + own**2 / degrees
        return total / len(values), total**2 / spread if spread else math.inf


@dataclass(frozen=True, slots=True)
class InRounds:
    """Values of one quantity by round, and the variance of one value that other systems' rounds show (`prior`).

    `prior` is None if nothing else is known; `degrees`, `inflation` and `block_degrees` are as in `RoundVariance`.
    """

    values: Values
    prior: float | None = None
    degrees: float = math.inf
    inflation: float = 1.0
    block_degrees: float = math.inf

    def less(self, other: InRounds) -> InRounds:
        """Return the differences within the rounds that both have."""
        values = {
            number: value - other.values[number] for number, value in self.values.items() if number in other.values
        }
        prior = None if self.prior is None or other.prior is None else self.prior + other.prior
        worse = max(self, other, key=lambda each: each.inflation)
        return InRounds(values, prior, min(self.degrees, other.degrees), worse.inflation, worse.block_degrees)

    def scaled(self, factor: float) -> InRounds:
        values = {number: value * factor for number, value in self.values.items()}
        prior = None if self.prior is None else self.prior * factor**2
        return replace(self, values=values, prior=prior)

    def moved(self, by: float) -> InRounds:
        return replace(self, values={number: value + by for number, value in self.values.items()})

    def logarithmic(self, value: float) -> InRounds | None:
        """Return the logarithms of these values; `value`: the typical one. None if one is zero or less."""
        if min(self.values.values()) <= 0:
            return None
        values = {number: math.log(each) for number, each in self.values.items()}
        prior = None if self.prior is None else self.prior / value**2
        return replace(self, values=values, prior=prior)

    def exponential(self, value: float) -> InRounds:
        """Return the values that these are the logarithms of; `value`: the typical one, by which variances grow."""
        values = {number: math.exp(each) for number, each in self.values.items()}
        prior = None if self.prior is None else self.prior * value**2
        return replace(self, values=values, prior=prior)

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    def of_mean(self) -> tuple[float, float]:
        """Return the variance of the mean of values that were formed within rounds, and its degrees of freedom."""
        count = len(self.values)
        own = float(np.var(list(self.values.values()), ddof=1))
        if self.prior is None:
            return own / count, count - 1.0
        variance, degrees = _shrunk(self.prior, self.degrees, own, count)
        if self.inflation > 1:
            degrees = min(degrees, self.block_degrees)
        return self.inflation * variance / count, degrees


def rounds_needed(variance: float, margin: float) -> int:
    """Return the rounds after which two systems that are equal are usually found the same within a `margin`.

    `variance`: of one difference within a round, on the logarithmic scale. `margin`: 0.1 for 10 %. Usually: with a
    probability of 80 %, for two one-sided tests at 5 %.
    """
    return math.ceil(8.57 * variance / math.log1p(margin) ** 2)


def _shrunk(prior: float, degrees: float, own: float, count: int) -> tuple[float, float]:
    weight = PRIOR + count - 1
    return (PRIOR * prior + (count - 1) * own) / weight, min(weight, degrees)


def _residuals(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return float64[systems, rounds] without the means of rows and columns, and the effects of the columns."""
    rest, effects = table.copy(), np.zeros(table.shape[1])
    for _ in range(STEPS):
        rest -= np.nanmean(rest, axis=1, keepdims=True)
        more = np.nanmean(rest, axis=0)
        rest -= more
        effects += more
        if float(np.abs(more).max()) < 1e-12:
            break
    return rest, effects - effects.mean()


def _of_blocks(rest: np.ndarray, blocks: list[int], own: float) -> tuple[float, float]:
    """Return the factor by which block means vary more than independent rounds would, and its degrees of freedom."""
    names = sorted(set(blocks))
    degrees = (len(names) - 1) * (len(rest) - 1)
    if len(names) < FEWEST_BLOCKS or len(names) == len(blocks) or own == 0:
        return 1.0, math.inf
    sums = 0.0
    for name in names:
        inside = rest[:, [place for place, each in enumerate(blocks) if each == name]]
        counts = np.isfinite(inside).sum(axis=1)
        there = counts > 0
        sums += float((np.nansum(inside[there], axis=1) ** 2 / counts[there]).sum())
    return max(1.0, sums / degrees / own), float(degrees)
