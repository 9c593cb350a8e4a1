"""Named quantities of runs and series, each with its interval: what tables, figures and claims are made from.

    measures = Measures(RunSet.load(results))
    ducklake, iceberg = run_set.find("ducklake", "single"), run_set.find("iceberg-duckdb", "single")
    measures.of_run(Metric.WRITE_MEDIAN, ducklake.runs[1])          one run: blocks within it
    measures.hot(Metric.WRITE_MEDIAN, ducklake)                     the typical hot run: blocks, and runs or repeats
    measures.hot(Metric.HARNESS_RATE, ducklake).ratio(measures.hot(Metric.HARNESS_RATE, iceberg)).estimate("")

All of them return `Replicates`; `.estimate(unit)` gives the number with its 95 % interval. Cold and hot runs are
never put together: `cold_effect` sets one beside the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from tidemark.analysis import resampled
from tidemark.analysis.blocks import BlockSample, bin_edges
from tidemark.analysis.metrics import OTHERS, QUANTILES, RANGES, SECONDS, UNITS, Absent, Metric
from tidemark.analysis.run import Run
from tidemark.analysis.runs import Repeat, RunSet, Series
from tidemark.analysis.statistics import (
    Estimate,
    Replicates,
    cliffs_delta,
    generator,
    interquartile_range,
    quantile,
)
from tidemark.analysis.units import Effects, mean, typical

__all__ = ["UNITS", "Absent", "Measures", "Metric", "estimate"]

type OfRun = Callable[[Run], Replicates]


class Measures:
    """Quantities of the runs in `run_set`, each computed once; those of a run not even that, where it was kept."""

    def __init__(self, run_set: RunSet) -> None:
        self.run_set = run_set
        self._distributions: dict[tuple[str, str], dict[Metric, Replicates]] = {}
        self._seconds: dict[tuple[str, str], BlockSample] = {}
        self._runs = resampled.read(run_set)
        self._hot: dict[tuple[Metric, str], Replicates] = {}
        self._effects: dict[tuple[str, str], Effects | None] = {}

    # One run

    def of_run(self, metric: Metric, run: Run | None) -> Replicates:
        """`metric` of one run, in its unit; its interval covers that run only. Absent where it cannot be had."""
        if run is None:
            raise Absent("there is no such run")
        key = (metric, run.label)
        if key not in self._runs:
            self._runs[key] = self._compute(metric, run)
        return self._runs[key]

    def all_of(self, run: Run) -> dict[tuple[Metric, str], Replicates]:
        """Every metric that `run` has, as `resampled` keeps them."""
        for metric in Metric:
            with suppress(Absent):
                self.of_run(metric, run)
        return {key: found for key, found in self._runs.items() if key[1] == run.label}

    def _compute(self, metric: Metric, run: Run) -> Replicates:
        if metric in QUANTILES:
            name, probability = QUANTILES[metric]
            least = round(1 / (1 - probability))
            if run.manifest.operations < least:
                raise Absent(f"needs {least:,} operations, the run has {run.manifest.operations:,}")
            return self._distribution(run, name)[metric]
        if metric in RANGES:
            return self._distribution(run, RANGES[metric])[metric]
        if metric is Metric.RELATIVE_GROWTH:
            slope = self.of_run(Metric.GROWTH, run)
            return slope.scaled(1 / self.of_run(Metric.WRITE_MEDIAN, run).value)
        if metric in SECONDS:
            name, summary, factor = SECONDS[metric]
            return summary(self.second_sample(run, name)).scaled(factor)
        return OTHERS[metric](run)

    def _distribution(self, run: Run, name: str) -> dict[Metric, Replicates]:
        """All quantiles of one of OPERATION_COLUMNS at once, in ms: the samples themselves, which may be many
        millions, are not kept."""
        key = (run.label, name)
        if key not in self._distributions:
            sample = BlockSample.prepare(run.column(name), generator(*key))
            found = {metric: quantile(sample, share) for metric, (column, share) in QUANTILES.items() if column == name}
            found |= {metric: interquartile_range(sample) for metric, column in RANGES.items() if column == name}
            self._distributions[key] = {metric: each.scaled(1e-6) for metric, each in found.items()}
        return self._distributions[key]

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

    def hot(self, metric: Metric, series: Series | None) -> Replicates:
        """The typical hot run of `series` (mean over its hot runs; geometric for positive quantities)."""
        if series is None:
            raise Absent("there is no such series")
        key = (metric, series.id)
        if key not in self._hot:
            self._hot[key] = self.typical(metric, partial(self.of_run, metric), series)
        return self._hot[key]

    def typical(self, name: str, of_run: OfRun, series: Series) -> Replicates:
        """As `hot`, of any quantity that runs have: `of_run` gives it, or raises Absent; `name` is its own.

        How far hot runs differ is learnt from all series of the same study, stack and mode; where these were
        repeated, how far repeats differ.
        """
        units = self._units(name, of_run, series)
        return typical(units, generator(name, series.id), self._effects_for(name, of_run, series, units))

    def first_hot(self, metric: Metric, series: Series) -> Replicates:
        """The run that the thesis shows: the first hot one."""
        return self.of_run(metric, _one(series, 1))

    def cold(self, metric: Metric, series: Series) -> Replicates:
        """Run 0. One alone cannot tell how it might have come out otherwise: then it may be as far off as hot runs."""
        units = self._cold_units(metric, series)
        if self._is_repeated(series):
            effects = self._pooled(f"cold {metric}", partial(self._cold_units, metric), series)
        else:
            effects = self._effects_for(metric, partial(self.of_run, metric), series, units)
        return typical(units, generator(metric, series.id, "cold"), effects)

    def cold_effect(self, metric: Metric, series: Series) -> Replicates:
        """Cold over hot: 1 means no effect. Repeats are compared each with itself."""
        if not self._is_repeated(series):
            cold, hot = self.cold(metric, series), self.hot(metric, series)
            if not (cold.log and hot.log):
                raise Absent("a quantity that may be zero has no ratio")
            return cold.ratio(hot)
        units = self._cold_ratios(metric, series)
        effects = self._pooled(f"cold effect {metric}", partial(self._cold_ratios, metric), series)
        return typical(units, generator(metric, series.id, "cold effect"), effects)

    def first_write(self, series: Series) -> Replicates:
        """The first write of run 0 over the median first write of the hot runs: what a cold start adds to it."""
        units = self._first_writes(series)
        if not units:
            raise Absent(series.missing(1 if series.cold_runs else 0))
        if self._is_repeated(series):
            effects = self._pooled("cold start: first write", self._first_writes, series)
        else:
            of_run = partial(self.of_run, Metric.FIRST_WRITE)
            effects = self._effects_for(Metric.FIRST_WRITE, of_run, series, units)
        return typical(units, generator("cold start: first write", series.id), effects)

    def _first_writes(self, series: Series) -> list[Replicates]:
        return [ratio for repeat in series.repeats if (ratio := self._first_write(repeat)) is not None]

    def _first_write(self, repeat: Repeat) -> Replicates | None:
        if repeat.cold_run is None or not repeat.hot_runs:
            return None
        hot = [self.of_run(Metric.FIRST_WRITE, run).value for run in repeat.hot_runs]
        return self.of_run(Metric.FIRST_WRITE, repeat.cold_run).scaled(1 / float(np.median(hot)))

    def _cold_units(self, metric: Metric, series: Series) -> list[Replicates]:
        if not series.cold_runs:
            raise Absent(series.missing(0))
        return [self.of_run(metric, run) for run in series.cold_runs]

    def _cold_ratios(self, metric: Metric, series: Series) -> list[Replicates]:
        found = []
        for repeat in series.repeats:
            if repeat.cold_run is not None and repeat.hot_runs:
                cold = self.of_run(metric, repeat.cold_run)
                hot = mean(self._known(partial(self.of_run, metric), repeat.hot_runs), generator(metric, repeat.id))
                if not (cold.log and hot.log):
                    raise Absent("a quantity that may be zero has no ratio")
                found.append(cold.ratio(hot))
        if not found:
            raise Absent(series.missing(1 if series.cold_runs else 0))
        return found

    def ratio(self, metric: Metric, a: Series | None, b: Series | None) -> Replicates:
        """`metric` of `a` over that of `b`, hot runs: the ratio of medians, of throughputs, ..."""
        first, second = self.hot(metric, a), self.hot(metric, b)
        if not (first.log and second.log):
            raise Absent("a quantity that may be zero has no ratio")
        return first.ratio(second)

    def difference(self, metric: Metric, a: Series | None, b: Series | None) -> Replicates:
        """`metric` of `a` less that of `b`, hot runs, in its unit."""
        return self.hot(metric, a).difference(self.hot(metric, b))

    def dominance(self, a: Series, b: Series) -> Replicates:
        """Cliff's delta of the write times of `a` against `b`, from -1 to 1: the mean over pairs of hot runs."""
        if not a.hot_runs or not b.hot_runs:
            raise Absent((b if a.hot_runs else a).missing(1))
        units = []
        for x, y in zip(a.repeats, b.repeats, strict=False):
            pairs = [self._dominance(*pair) for pair in zip(x.hot_runs, y.hot_runs, strict=False)]
            units += [mean(pairs, generator("delta", x.id, y.id))] if pairs and self._is_repeated(a) else pairs
        if not units:
            raise Absent("they have no repeat with hot runs in common")
        return typical(units, generator("delta", a.id, b.id))

    @staticmethod
    def _dominance(first: Run, second: Run) -> Replicates:
        x, y = first.column("write_ns"), second.column("write_ns")
        edges = np.union1d(bin_edges(x), bin_edges(y))
        names = (first.label, second.label)
        return cliffs_delta(
            BlockSample.prepare(x, generator("delta", *names, 0), edges),
            BlockSample.prepare(y, generator("delta", *names, 1), edges),
        )

    # Units of a series

    def _is_repeated(self, series: Series) -> bool:
        """Whether repeats are the units of the mode that `series` belongs to, and not runs."""
        return any(sum(bool(repeat.runs) for repeat in each.repeats) > 1 for each in (series, *self._peers(series)))

    def _peers(self, series: Series) -> tuple[Series, ...]:
        return self.run_set.select(mode=series.mode, study=series.study, stack=series.stack, harness=False)

    def _units(self, name: str, of_run: OfRun, series: Series) -> list[Replicates]:
        """The quantity of each hot run, or of each repeat: the mean of its hot runs."""
        if not series.hot_runs:
            raise Absent(series.missing(1))
        if not self._is_repeated(series):
            return self._known(of_run, series.hot_runs)
        units, reason = [], ""
        for repeat in (each for each in series.repeats if each.hot_runs):
            try:
                units.append(mean(self._known(of_run, repeat.hot_runs), generator(name, repeat.id)))
            except Absent as absent:
                reason = str(absent)
        if not units:
            raise Absent(reason)
        return units

    @staticmethod
    def _known(of_run: OfRun, runs: Sequence[Run]) -> list[Replicates]:
        found, reason = [], ""
        for run in runs:
            try:
                found.append(of_run(run))
            except Absent as absent:
                reason = str(absent)
        if not found:
            raise Absent(reason)
        return found

    def _effects_for(self, name: str, of_run: OfRun, series: Series, units: Sequence[Replicates]) -> Effects | None:
        """How units of `series` may differ, as those of all systems do; None where systems do not compare.

        Relative differences of positive quantities do compare, and growth relative to the median write time; what
        else is on the linear scale does not.
        """
        if name == Metric.GROWTH:
            relative = Metric.RELATIVE_GROWTH
            effects = self._pooled(relative, partial(self._units, relative, partial(self.of_run, relative)), series)
            median = float(np.mean([self.of_run(Metric.WRITE_MEDIAN, run).value for run in series.runs]))
            return None if effects is None else effects.scaled(median)
        if name != Metric.RELATIVE_GROWTH and not all(unit.log for unit in units):
            return None
        return self._pooled(name, partial(self._units, name, of_run), series)

    def _pooled(self, name: str, units_of: Callable[[Series], list[Replicates]], series: Series) -> Effects | None:
        if series.is_harness:
            return None
        key = (name, f"{series.study} {series.stack} {series.mode}")
        if key not in self._effects:
            groups = []
            for peer in self._peers(series):
                with suppress(Absent):
                    groups.append(units_of(peer))
            scale = name != Metric.RELATIVE_GROWTH
            self._effects[key] = Effects.pooled([g for g in groups if all(unit.log is scale for unit in g)])
        return self._effects[key]


def _one(series: Series, number: int) -> Run:
    run = series.run(number)
    if run is None:
        raise Absent(series.missing(number))
    return run


def estimate(metric: Metric, replicates: Replicates) -> Estimate:
    """`replicates` of `metric` as a number with its interval and unit."""
    return replicates.estimate(UNITS[metric])
