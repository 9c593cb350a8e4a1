"""Quantities of runs and series, each with its interval: what tables, figures and claims are made from.

    measures = Measures(RunSet.load(results), quantities)           of the studies that the plan is of
    ducklake, iceberg = run_set.find("ducklake", mode), run_set.find("iceberg-duckdb", mode)
    measures.of_run(quantity, ducklake.runs[1])                     one run: blocks within it
    measures.hot(quantity, ducklake)                                the typical hot run: blocks, and runs or repeats
    measures.hot(quantity, ducklake).ratio(measures.hot(quantity, iceberg)).estimate("")

All of them return `Replicates`; `.estimate(unit)` gives the number with its 95 % interval. Cold and hot runs are
never put together: `cold_effect` sets one beside the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from tidemark.analysis import resampled
from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.quantities import Absent, OfSeconds, Quantile, Quantities, Quantity, Range, Relative
from tidemark.analysis.statistics import Replicates, generator
from tidemark.analysis.units import Effects, deltas, mean, typical
from tidemark.runs.run import Run
from tidemark.runs.runset import Repeat, RunSet, Series

__all__ = ["Absent", "Measures"]


class Measures:
    """Quantities of the runs in `run_set`, each computed once; those of a run not even that, where it was kept.

    Any quantity may be asked for; `quantities` are those that are made together where one of them is needed.
    """

    def __init__(self, run_set: RunSet, quantities: Quantities) -> None:
        self.run_set = run_set
        self.quantities = quantities
        self._seconds: dict[tuple[str, str], BlockSample] = {}
        self._runs = resampled.read(run_set, quantities)
        self._hot: dict[tuple[str, str], Replicates] = {}
        self._effects: dict[tuple[str, str], Effects | None] = {}
        self._deltas: dict[tuple[str, str, str], list[Replicates]] = {}

    # One run

    def of_run(self, quantity: Quantity, run: Run | None) -> Replicates:
        """`quantity` of one run, in its unit; its interval covers that run only. Absent where it cannot be had."""
        if run is None:
            raise Absent("there is no such run")
        key = (quantity.name, run.label)
        if key not in self._runs:
            self._runs[key] = self._compute(quantity, run)
        return self._runs[key]

    def all_of(self, run: Run) -> resampled.Resampled:
        """Every one of `quantities` that `run` has, as `resampled` keeps them."""
        for quantity in self.quantities:
            with suppress(Absent):
                self.of_run(quantity, run)
        return {key: found for key, found in self._runs.items() if key[1] == run.label}

    def _compute(self, quantity: Quantity, run: Run) -> Replicates:
        how = quantity.how
        if isinstance(how, Quantile | Range):
            if (why := how.why_not(run)) is not None:
                raise Absent(why)
            return self._of_column(quantity, how.column, run)
        if isinstance(how, OfSeconds):
            return how.summary(self.second_sample(run, how.source)).scaled(how.factor)
        if isinstance(how, Relative):
            whole = how.quantity
            if whole.scale is None:
                raise ValueError(f"'{whole.name}' has no scale to be a share of")
            return self.of_run(whole, run).scaled(1 / self.of_run(whole.scale, run).value)
        return how(run)

    def _of_column(self, quantity: Quantity, column: str, run: Run) -> Replicates:
        """With it, all other quantities of the column: the samples, which may be many millions, are not kept."""
        sample = BlockSample.prepare(run.column(column), generator(run.label, column))
        for each in (*self.quantities, quantity):
            how, key = each.how, (each.name, run.label)
            if key in self._runs or not isinstance(how, Quantile | Range):
                continue
            if how.column == column and how.why_not(run) is None:
                self._runs[key] = how.of(sample)
        return self._runs[quantity.name, run.label]

    def second_sample(self, run: Run, name: str) -> BlockSample:
        """The sampler's "disk" (bytes/s) or "cpu" (%) in the whole seconds of a run; Absent where it saw none."""
        key = (run.label, name)
        if key not in self._seconds:
            seconds = run.seconds()
            values = seconds.cpu_percent if name == "cpu" else seconds.disk_bytes_per_s
            if values is None:
                raise Absent(f"not measurable: {run.manifest.disk.why_no_seconds or 'the machine does not tell'}")
            values = values[np.isfinite(values)]
            if len(values) == 0:
                raise Absent("the window has no whole second")
            self._seconds[key] = BlockSample.prepare(values, generator(*key))
        return self._seconds[key]

    # Series

    def hot(self, quantity: Quantity, series: Series | None) -> Replicates:
        """The typical hot run of `series` (mean over its hot runs; geometric for positive quantities).

        How far hot runs differ is learnt from all series of the same sweep, stack and mode; where these were
        repeated, how far repeats differ.
        """
        if series is None:
            raise Absent("there is no such series")
        key = (quantity.name, series.id)
        if key not in self._hot:
            units = self._units(quantity, series)
            effects = self._effects_for(quantity, series, units)
            self._hot[key] = typical(units, generator(quantity.name, series.id), effects)
        return self._hot[key]

    def first_hot(self, quantity: Quantity, series: Series) -> Replicates:
        """Of the first hot run alone."""
        return self.of_run(quantity, _one(series, 1))

    def cold(self, quantity: Quantity, series: Series) -> Replicates:
        """Run 0. One alone cannot tell how it might have come out otherwise: then it may be as far off as hot runs."""
        units = self._cold_units(quantity, series)
        if self._is_repeated(series):
            effects = self._pooled(f"cold {quantity.name}", partial(self._cold_units, quantity), series)
        else:
            effects = self._effects_for(quantity, series, units)
        return typical(units, generator(quantity.name, series.id, "cold"), effects)

    def cold_effect(self, quantity: Quantity, series: Series) -> Replicates:
        """Cold over hot: 1 means no effect. Repeats are compared each with itself."""
        if not self._is_repeated(series):
            cold, hot = self.cold(quantity, series), self.hot(quantity, series)
            if not (cold.log and hot.log):
                raise Absent("a quantity that may be zero has no ratio")
            return cold.ratio(hot)
        units = self._cold_ratios(quantity, series)
        effects = self._pooled(f"cold effect {quantity.name}", partial(self._cold_ratios, quantity), series)
        return typical(units, generator(quantity.name, series.id, "cold effect"), effects)

    def cold_start(self, quantity: Quantity, series: Series) -> Replicates:
        """What a cold start adds to something that a run does once: that of run 0 over the hot runs' median."""
        units = self._cold_starts(quantity, series)
        if not units:
            raise Absent(series.missing(1 if series.cold_runs else 0))
        name = f"cold start: {quantity.name}"
        if self._is_repeated(series):
            effects = self._pooled(name, partial(self._cold_starts, quantity), series)
        else:
            effects = self._effects_for(quantity, series, units)
        return typical(units, generator(name, series.id), effects)

    def _cold_starts(self, quantity: Quantity, series: Series) -> list[Replicates]:
        found = (self._cold_start(quantity, repeat) for repeat in series.repeats)
        return [ratio for ratio in found if ratio is not None]

    def _cold_start(self, quantity: Quantity, repeat: Repeat) -> Replicates | None:
        if repeat.cold_run is None or not repeat.hot_runs:
            return None
        hot = [self.of_run(quantity, run).value for run in repeat.hot_runs]
        return self.of_run(quantity, repeat.cold_run).scaled(1 / float(np.median(hot)))

    def _cold_units(self, quantity: Quantity, series: Series) -> list[Replicates]:
        if not series.cold_runs:
            raise Absent(series.missing(0))
        return [self.of_run(quantity, run) for run in series.cold_runs]

    def _cold_ratios(self, quantity: Quantity, series: Series) -> list[Replicates]:
        found = []
        for repeat in series.repeats:
            if repeat.cold_run is not None and repeat.hot_runs:
                cold = self.of_run(quantity, repeat.cold_run)
                hot = mean(self._known(quantity, repeat.hot_runs), generator(quantity.name, repeat.id))
                if not (cold.log and hot.log):
                    raise Absent("a quantity that may be zero has no ratio")
                found.append(cold.ratio(hot))
        if not found:
            raise Absent(series.missing(1 if series.cold_runs else 0))
        return found

    def ratio(self, quantity: Quantity, a: Series | None, b: Series | None) -> Replicates:
        """`quantity` of `a` over that of `b`, hot runs: the ratio of medians, of throughputs, ..."""
        first, second = self.hot(quantity, a), self.hot(quantity, b)
        if not (first.log and second.log):
            raise Absent("a quantity that may be zero has no ratio")
        return first.ratio(second)

    def difference(self, quantity: Quantity, a: Series | None, b: Series | None) -> Replicates:
        """`quantity` of `a` less that of `b`, hot runs, in its unit."""
        return self.hot(quantity, a).difference(self.hot(quantity, b))

    def dominance(self, column: str, a: Series, b: Series) -> Replicates:
        """Cliff's delta of a column of `a` against that of `b`, from -1 to 1: the mean over pairs of hot runs."""
        if not a.hot_runs or not b.hot_runs:
            raise Absent((b if a.hot_runs else a).missing(1))
        key = (column, a.id, b.id)
        if key not in self._deltas:  # all pairs of a mode at once, or these two alone
            self._deltas |= deltas(column, self._peers(a), self._is_repeated(a))
        if key not in self._deltas:
            self._deltas |= deltas(column, (a, b), self._is_repeated(a))
        if not self._deltas[key]:
            raise Absent("they have no repeat with hot runs in common")
        return typical(self._deltas[key], generator("delta", a.id, b.id))

    # Units of a series

    def _is_repeated(self, series: Series) -> bool:
        """Whether repeats are the units of the mode that `series` belongs to, and not runs."""
        return any(sum(bool(repeat.runs) for repeat in each.repeats) > 1 for each in (series, *self._peers(series)))

    def _peers(self, series: Series) -> tuple[Series, ...]:
        return self.run_set.select(mode=series.mode, sweep=series.sweep, stack=series.stack, harness=False)

    def _units(self, quantity: Quantity, series: Series) -> list[Replicates]:
        """The quantity of each hot run, or of each repeat: the mean of its hot runs."""
        if not series.hot_runs:
            raise Absent(series.missing(1))
        if not self._is_repeated(series):
            return self._known(quantity, series.hot_runs)
        units, reason = [], ""
        for repeat in (each for each in series.repeats if each.hot_runs):
            try:
                units.append(mean(self._known(quantity, repeat.hot_runs), generator(quantity.name, repeat.id)))
            except Absent as absent:
                reason = str(absent)
        if not units:
            raise Absent(reason)
        return units

    def _known(self, quantity: Quantity, runs: Sequence[Run]) -> list[Replicates]:
        found, reason = [], ""
        for run in runs:
            try:
                found.append(self.of_run(quantity, run))
            except Absent as absent:
                reason = str(absent)
        if not found:
            raise Absent(reason)
        return found

    def _effects_for(self, quantity: Quantity, series: Series, units: Sequence[Replicates]) -> Effects | None:
        """How units of `series` may differ, as those of all systems do; None where systems do not compare.

        Relative differences of positive quantities do compare, and shares of a scale; what else is on the linear
        scale does not.
        """
        share = self.quantities.relative(quantity)
        if quantity.scale is not None and share != quantity:
            effects = self._pooled(share.name, partial(self._units, share), series, log=False)
            scale = float(np.mean([self.of_run(quantity.scale, run).value for run in series.runs]))
            return None if effects is None else effects.scaled(scale)
        is_share = isinstance(quantity.how, Relative)
        if not is_share and not all(unit.log for unit in units):
            return None
        return self._pooled(quantity.name, partial(self._units, quantity), series, log=not is_share)

    def _pooled(
        self, name: str, units_of: Callable[[Series], list[Replicates]], series: Series, *, log: bool = True
    ) -> Effects | None:
        if series.is_harness:
            return None
        key = (name, f"{series.sweep} {series.stack} {series.mode}")
        if key not in self._effects:
            groups = []
            for peer in self._peers(series):
                with suppress(Absent):
                    groups.append(units_of(peer))
            self._effects[key] = Effects.pooled([g for g in groups if all(unit.log is log for unit in g)])
        return self._effects[key]


def _one(series: Series, number: int) -> Run:
    run = series.run(number)
    if run is None:
        raise Absent(series.missing(number))
    return run
