"""Metrics of runs and series with confidence intervals, as used by tables, figures and claims.

    measures = Measures(RunSet.load(results), quantities)           the quantities of the plan's studies
    ducklake, iceberg = run_set.find("ducklake", mode), run_set.find("iceberg-duckdb", mode)
    measures.of_run(quantity, ducklake.runs[1])                     one run: blocks within it
    measures.hot(quantity, ducklake)                                the typical hot run: blocks, and runs or repeats
    measures.hot(quantity, ducklake).ratio(measures.hot(quantity, iceberg)).estimate("")

All of them return `BootstrapEstimate`; `.estimate(unit)` gives the number with its 95 % confidence interval. Cold and
hot runs are never pooled: `cold_effect` compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from tidemark.analysis import metrics, resampled
from tidemark.analysis.aggregation import BetweenRunVariance, deltas, mean, mean_of_rounds, measured_once, pooled_mean
from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.metrics import Metric, MetricSet, NotAvailable, checked_ratio, enough, require
from tidemark.analysis.rounds import PRIOR, RoundVariance
from tidemark.analysis.statistics import BootstrapEstimate, generator, known
from tidemark.runs.run import Run
from tidemark.runs.runset import Repeat, RunSet, Series
from tidemark.runs.views import twins

__all__ = ["Measures", "NotAvailable"]


class Measures:
    """Metrics of the runs in `run_set`, each computed at most once; stored resampled results are reused.

    Any quantity may be requested. When one of `quantities` is needed, the others on its column are computed with it.
    """

    def __init__(self, run_set: RunSet, quantities: MetricSet) -> None:
        self.run_set = run_set
        self.quantities = quantities
        self._seconds: dict[tuple[str, str], BlockSample] = {}
        self._runs = resampled.read(run_set, quantities)
        self._absent: dict[tuple[str, str], NotAvailable] = {}  # why runs lack quantities, by the same keys
        self._hot: dict[tuple[str, str], BootstrapEstimate] = {}
        self._effects: dict[tuple[str, str], BetweenRunVariance | None] = {}
        self._rounds: dict[tuple[str, str], RoundVariance | None] = {}
        self._deltas: dict[tuple[str, str, str], list[BootstrapEstimate]] = {}

    # One run

    def of_run(self, quantity: Metric, run: Run | None) -> BootstrapEstimate:
        """Return `quantity` of one run, in its unit; the interval covers that run only.

        Raise NotAvailable if there is no run, or it does not have the quantity.
        """
        run = require(run, "there is no such run")
        key = (quantity.name, run.label)
        if key in self._absent:
            raise self._absent[key].with_traceback(None)
        if key not in self._runs:
            try:
                self._runs[key] = self._compute(quantity, run)
            except NotAvailable as absent:
                self._absent[key] = absent
                raise
        return self._runs[key]

    def all_of(self, run: Run) -> resampled.Resampled:
        """Return all `quantities` that `run` has, in the form that `resampled` stores."""
        found = {}
        for quantity in self.quantities:
            with suppress(NotAvailable):
                found[quantity.name, run.label] = self.of_run(quantity, run)
        return found

    def _compute(self, quantity: Metric, run: Run) -> BootstrapEstimate:
        how = quantity.how
        if isinstance(how, metrics.Quantile | metrics.InterquartileRange):
            if (why := how.why_not(run)) is not None:
                raise NotAvailable(why)
            return self._of_column(quantity, how.column, run)
        if isinstance(how, metrics.PooledQuantile):
            raise NotAvailable("is of all hot runs together")
        if isinstance(how, metrics.PerSecond):
            return how.summary(self.second_sample(run, how.source)).scaled(how.factor)
        if isinstance(how, metrics.Share):
            whole = how.quantity
            if whole.scale is None:
                raise ValueError(f"'{whole.name}' has no scale to be a share of")
            return self.of_run(whole, run).scaled(1 / self.of_run(whole.scale, run).value)
        return how(run)

    def _of_column(self, quantity: Metric, column: str, run: Run) -> BootstrapEstimate:
        """Compute all quantities of the column at once, because its samples, possibly many millions, are not kept."""
        sample = BlockSample.prepare(run.column(column), generator(run.label, column))
        for each in (*self.quantities, quantity):
            how, key = each.how, (each.name, run.label)
            if key in self._runs or not isinstance(how, metrics.Quantile | metrics.InterquartileRange):
                continue
            if how.column == column and how.why_not(run) is None:
                self._runs[key] = how.of(sample)
        return self._runs[quantity.name, run.label]

    def second_sample(self, run: Run, name: str) -> BlockSample:
        """Return the sampler's "disk" (bytes/s) or "cpu" (%) per full second of a run.

        Raise NotAvailable if it has none.
        """
        key = (run.label, name)
        if key not in self._seconds:
            seconds = run.seconds()
            values = seconds.cpu_percent if name == "cpu" else seconds.disk_bytes_per_s
            if values is None:
                raise NotAvailable(f"not measurable: {run.manifest.disk.why_no_seconds or 'the machine does not tell'}")
            values = values[np.isfinite(values)]
            require(len(values), "the window has no whole second")
            self._seconds[key] = BlockSample.prepare(values, generator(*key))
        return self._seconds[key]

    # Series

    def hot(self, quantity: Metric, series: Series | None) -> BootstrapEstimate:
        """Return the typical hot run of `series`: the mean over its hot runs (geometric for positive quantities).

        The between-run variance is estimated from all series of the same sweep, stack and mode. If these were
        repeated, repeats are rounds: the variance is that between rounds, and ratios are formed within them.
        """
        series = require(series, "there is no such series")
        key = (quantity.name, series.id)
        if key not in self._hot:
            rng = generator(quantity.name, series.id)
            self._check_reached(quantity, series)
            if isinstance(quantity.how, metrics.PooledQuantile):
                require(series.hot_runs, series.missing(1))
                self._hot[key] = quantity.how.of(series.hot_runs, rng)
            elif self._is_repeated(series):
                units = self._by_round(quantity, series)
                self._hot[key] = mean_of_rounds(units, rng, self._round_variance(quantity, series, units))
            else:
                runs = self._units(quantity, series)
                self._hot[key] = pooled_mean(runs, rng, self._effects_for(quantity, series, runs))
        return self._hot[key]

    def first_hot(self, quantity: Metric, series: Series) -> BootstrapEstimate:
        """Return `quantity` of the first hot run only."""
        return self.of_run(quantity, require(series.run(1), series.missing(1)))

    def cold(self, quantity: Metric, series: Series) -> BootstrapEstimate:
        """Return `quantity` of run 0. A single cold run shows no variance, so that of the hot runs is assumed."""
        rng = generator(quantity.name, series.id, "cold")
        units = self._cold_by_round(quantity, series)
        if self._is_repeated(series):
            between = self._of_rounds(f"cold {quantity.name}", partial(self._cold_by_round, quantity), series)
            return mean_of_rounds(units, rng, between or self._hot_variance(quantity, series))
        runs = list(units.values())
        return pooled_mean(runs, rng, self._effects_for(quantity, series, runs))

    def value(self, quantity: Metric, series: Series) -> BootstrapEstimate:
        """Return `quantity` of the hot runs of `series` or, if it has none, of its cold ones."""
        return self.hot(quantity, series) if series.hot_runs else self.cold(quantity, series)

    def cold_effect(self, quantity: Metric, series: Series) -> BootstrapEstimate:
        """Return cold over hot: 1 means no effect. The cold run of a repeat is compared with its own hot runs."""
        if not self._is_repeated(series):
            return checked_ratio(self.cold(quantity, series), self.hot(quantity, series))
        units = self._cold_ratios(quantity, series)
        name = f"cold effect {quantity.name}"
        return self._typical_ratio(name, quantity, series, units, partial(self._cold_ratios, quantity))

    def cold_cost(self, quantity: Metric, series: Series) -> BootstrapEstimate:
        """Return `quantity` of run 0 minus that of the hot runs, in its unit."""
        return self.cold(quantity, series).difference(self.hot(quantity, series))

    def cold_start(self, quantity: Metric, series: Series) -> BootstrapEstimate:
        """Return the cold-start factor of something a run does once: its value in run 0 over the hot runs' median."""
        units = require(self._cold_starts(quantity, series), series.missing(1 if series.cold_runs else 0))
        name = f"cold start: {quantity.name}"
        if self._is_repeated(series):
            return self._typical_ratio(name, quantity, series, units, partial(self._cold_starts, quantity))
        return pooled_mean(units, generator(name, series.id), self._effects_for(quantity, series, units))

    def _typical_ratio(
        self,
        name: str,
        quantity: Metric,
        series: Series,
        units: list[BootstrapEstimate],
        units_of: Callable[[Series], list[BootstrapEstimate]],
    ) -> BootstrapEstimate:
        """Return the typical one of `units`, ratios of a cold run to hot ones, one a repeat.

        Where no series has two, both runs vary as hot ones do between rounds, or else as `measured_once` says.
        """
        between = self._pooled(name, units_of, series)
        one = units[0]
        if between is not None or len(units) > 1 or not one.log:
            return pooled_mean(units, generator(name, series.id), between)
        if (rounds := self._hot_variance(quantity, series)) is None:
            return measured_once(one, windows=2)
        return one if 2 * rounds.own <= one.variance else one.with_variance(2 * rounds.own, rounds.degrees)

    def _hot_variance(self, quantity: Metric, series: Series) -> RoundVariance | None:
        try:
            return self._round_variance(quantity, series, self._by_round(quantity, series))
        except NotAvailable:
            return None

    def _cold_starts(self, quantity: Metric, series: Series) -> list[BootstrapEstimate]:
        found = []
        for repeat in series.repeats:
            if repeat.cold_run is not None and repeat.hot_runs:
                hot = [self.of_run(quantity, run).value for run in repeat.hot_runs]
                found.append(self.of_run(quantity, repeat.cold_run).scaled(1 / float(np.median(hot))))
        return found

    def _cold_by_round(self, quantity: Metric, series: Series) -> dict[int, BootstrapEstimate]:
        require(series.cold_runs, series.missing(0))
        return {run.repeat: self.of_run(quantity, run) for run in series.cold_runs}

    def _cold_ratios(self, quantity: Metric, series: Series) -> list[BootstrapEstimate]:
        found = []
        for repeat in series.repeats:
            if repeat.cold_run is not None and repeat.hot_runs:
                cold = self.of_run(quantity, repeat.cold_run)
                found.append(checked_ratio(cold, self._hot_mean(quantity, repeat)))
        return require(found, series.missing(1 if series.cold_runs else 0))

    def ratio(self, quantity: Metric, a: Series | None, b: Series | None) -> BootstrapEstimate:
        """Return `quantity` of `a` over that of `b`, hot runs: the ratio of medians, of throughputs, ..."""
        return checked_ratio(self.hot(quantity, a), self.hot(quantity, b))

    def counted_ratio(self, quantity: Metric, a: Series, b: Series) -> BootstrapEstimate:
        """Return `quantity` of `a` over that of `b`: of hot runs if both have them, else of run 0."""
        if a.hot_runs and b.hot_runs:
            return self.ratio(quantity, a, b)
        return checked_ratio(self.cold(quantity, a), self.cold(quantity, b))

    def noise_floor(self, quantity: Metric, mode: str) -> BootstrapEstimate:
        """Return how far apart one system under two names may be in `quantity`, in per cent of the smaller: A/A.

        It is the farther end of the 95 % interval of their ratio, the largest one of several pairs and stacks. Raises
        NotAvailable if no system was measured under two names.
        """
        pairs = [
            pair
            for stack in self.run_set.stacks
            for pair in twins(self.run_set.select(mode=mode, stack=stack, harness=False))
        ]
        return self.farthest_apart(quantity, require(pairs, "no system was measured under two names"))

    def farthest_apart(self, quantity: Metric, pairs: Iterable[tuple[Series, Series]]) -> BootstrapEstimate:
        """Return the farthest end of the 95 % interval of any pair's ratio from 1, in per cent of the smaller.

        Each of the `pairs` is the same thing, measured twice. Raises NotAvailable if there is no interval.
        """
        found = [self.counted_ratio(quantity, a, b).estimate("") for a, b in pairs]
        ends = [end for each in found for end in (each.low, each.high) if end]
        require(ends, "the ratio of one system under two names has no interval")
        return known(100 * (max(max(end, 1 / end) for end in ends) - 1))

    def difference(self, quantity: Metric, a: Series | None, b: Series | None) -> BootstrapEstimate:
        """Return `quantity` of `a` minus that of `b`, hot runs, in its unit."""
        return self.hot(quantity, a).difference(self.hot(quantity, b))

    def dominance(self, column: str, a: Series, b: Series) -> BootstrapEstimate:
        """Return Cliff's delta of `column`, `a` against `b`, from -1 to 1: the mean over pairs of hot runs."""
        if not a.hot_runs or not b.hot_runs:
            raise NotAvailable((b if a.hot_runs else a).missing(1))
        key = (column, a.id, b.id)
        if key not in self._deltas:  # all pairs of a mode in one pass, or else this pair only
            self._deltas |= deltas(column, self._peers(a), self._is_repeated(a))
        if key not in self._deltas:
            self._deltas |= deltas(column, (a, b), self._is_repeated(a))
        require(self._deltas[key], "they have no repeat with hot runs in common")
        return pooled_mean(self._deltas[key], generator("delta", a.id, b.id))

    # Units of a series

    def _is_repeated(self, series: Series) -> bool:
        """Return True if the units of the mode of `series` are repeats, not runs."""
        return any(sum(bool(repeat.runs) for repeat in each.repeats) > 1 for each in (series, *self._peers(series)))

    def _peers(self, series: Series) -> tuple[Series, ...]:
        """Return the series that share the rounds of `series` and vary as it does.

        They are those of its stack; where each stack has one system, as in a comparison of releases, those of all.
        """

        def of(stack: str) -> tuple[Series, ...]:
            return self.run_set.select(mode=series.mode, sweep=series.sweep, stack=stack, harness=False)

        own = of(series.stack)
        if len(own) > 1:
            return own
        of_stacks = [of(stack) for stack in self.run_set.stacks]
        return tuple(one for each in of_stacks for one in each) if all(len(each) < 2 for each in of_stacks) else own

    def _of_part(self, series: Series) -> tuple[Series, ...]:
        """Return its peers in all modes of its part; a study without parts is one."""
        every = self.run_set.select(sweep=series.sweep, stack=series.stack, harness=False)
        part = dict(series.settings).get("part")
        return tuple(each for each in every if dict(each.settings).get("part") == part)

    def _units(self, quantity: Metric, series: Series) -> list[BootstrapEstimate]:
        """Return the quantity of each hot run."""
        require(series.hot_runs, series.missing(1))
        return self._known(quantity, series.hot_runs)

    def _check_reached(self, quantity: Metric, series: Series) -> None:
        """Raise NotReached if only some hot runs, and too few, reached the commits that `quantity` is about."""
        too_short = 0
        for run in series.hot_runs:
            try:
                self.of_run(quantity, run)
            except metrics.NotReached:
                too_short += 1
            except NotAvailable:
                pass
        runs = len(series.hot_runs)
        if 0 < too_short < runs and not enough(runs - too_short, runs):
            raise metrics.NotReached(f"{too_short} of {runs} hot runs ended before it; the others are the faster ones")

    def _by_round(self, quantity: Metric, series: Series) -> dict[int, BootstrapEstimate]:
        """Return the mean over the hot runs of each repeat that has the quantity, by the number of the repeat.

        A merge, which rounds leave out, is that of the run after them.
        """
        require(series.hot_runs, series.missing(1))
        found, reason = {}, ""
        for repeat in series.repeats:
            try:
                if repeat.hot_runs:
                    found[repeat.number] = self._hot_mean(quantity, repeat)
            except NotAvailable as absent:
                reason = str(absent)
        counted = {repeat.number: found[repeat.number] for repeat in series.hot_repeats if repeat.number in found}
        return require(counted or found, reason)

    def _hot_mean(self, quantity: Metric, repeat: Repeat) -> BootstrapEstimate:
        return mean(self._known(quantity, repeat.hot_runs), generator(quantity.name, repeat.id))

    def _known(self, quantity: Metric, runs: Sequence[Run]) -> list[BootstrapEstimate]:
        """Return the quantity of the runs that have it; raise NotAvailable, with the last reason, if none has."""
        found, reason = [], ""
        for run in runs:
            try:
                found.append(self.of_run(quantity, run))
            except NotAvailable as absent:
                reason = str(absent)
        return require(found, reason)

    def _effects_for(
        self, quantity: Metric, series: Series, units: Sequence[BootstrapEstimate]
    ) -> BetweenRunVariance | None:
        """Return the variation between units, pooled over all systems; None if systems are not comparable."""
        if (found := self._comparable(quantity, series, units)) is None:
            return None
        shown, factor, log = found
        between_runs = self._pooled(shown.name, partial(self._units, shown), series, log=log)
        return None if between_runs is None else between_runs.scaled(factor)

    def _round_variance(
        self, quantity: Metric, series: Series, units: Mapping[int, BootstrapEstimate]
    ) -> RoundVariance | None:
        """Return the variation between rounds, from all systems; None if systems are not comparable."""
        if (found := self._comparable(quantity, series, units.values())) is None:
            return None
        shown, factor, log = found
        between = self._of_rounds(shown.name, partial(self._by_round, shown), series, log=log)
        return None if between is None else between.scaled(factor)

    def _comparable(
        self, quantity: Metric, series: Series, units: Iterable[BootstrapEstimate]
    ) -> tuple[Metric, float, bool] | None:
        """Return the quantity whose variation systems share, the factor from it to `quantity`, and whether it is a log.

        Relative differences of positive quantities are comparable, and so are shares of a scale. Other quantities on
        the linear scale are not: None.
        """
        share = self.quantities.relative(quantity)
        if quantity.scale is not None and share != quantity:
            return share, float(np.mean([self.of_run(quantity.scale, run).value for run in series.runs])), False
        if isinstance(quantity.how, metrics.Share):
            return quantity, 1.0, False
        return (quantity, 1.0, True) if all(unit.log for unit in units) else None

    def _of_rounds(
        self,
        name: str,
        units_of: Callable[[Series], Mapping[int, BootstrapEstimate]],
        series: Series,
        *,
        log: bool = True,
    ) -> RoundVariance | None:
        if series.is_null_baseline:
            return None
        key = (name, f"{series.sweep} {series.stack} {series.mode}")
        if key not in self._rounds:
            found = _between(self._peers(series), units_of, log)
            if log and (found is None or found.degrees < PRIOR):  # the modes of a part are measured in the same rounds
                part = _between(self._of_part(series), units_of, log)
                found = found.beside(part) if found and part else part
            self._rounds[key] = found
        return self._rounds[key]

    def _pooled(
        self, name: str, units_of: Callable[[Series], list[BootstrapEstimate]], series: Series, *, log: bool = True
    ) -> BetweenRunVariance | None:
        if series.is_null_baseline:
            return None
        key = (name, f"{series.sweep} {series.stack} {series.mode}")
        if key not in self._effects:
            groups = []
            for peer in self._peers(series):
                with suppress(NotAvailable):
                    groups.append(units_of(peer))
            self._effects[key] = BetweenRunVariance.pooled([g for g in groups if all(unit.log is log for unit in g)])
        return self._effects[key]


def _between(
    peers: Iterable[Series], units_of: Callable[[Series], Mapping[int, BootstrapEstimate]], log: bool
) -> RoundVariance | None:
    """Return the variation between rounds that the units of `peers` show; None if it takes more of them."""
    values: dict[str, dict[int, float]] = {}
    blocks: dict[int, int] = {}
    for peer in peers:
        blocks |= {repeat.number: repeat.block or -repeat.number for repeat in peer.repeats if repeat.runs}
        with suppress(NotAvailable):
            units = units_of(peer)
            if all(unit.log is log for unit in units.values()):
                values[peer.id] = {number: unit.centre for number, unit in units.items()}
    return RoundVariance.of(values, blocks)
