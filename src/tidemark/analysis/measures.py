"""Named quantities of runs and series, each with its interval: what tables, figures and claims are made from.

    measures = Measures(RunSet.load(results))
    ducklake, iceberg = run_set.find("ducklake", "single"), run_set.find("iceberg-duckdb", "single")
    measures.of_run(Metric.WRITE_MEDIAN, ducklake.runs[1])          one run: blocks within it
    measures.hot(Metric.WRITE_MEDIAN, ducklake)                     the typical hot run: blocks, and runs
    measures.hot(Metric.HARNESS_RATE, ducklake).ratio(measures.hot(Metric.HARNESS_RATE, iceberg)).estimate("")

All of them return `Replicates`; `.estimate(unit)` gives the number with its 95 % interval. Cold and hot runs are
never put together: `cold_effect` sets one beside the other.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from tidemark.analysis import resampled
from tidemark.analysis.blocks import BlockSample, bin_edges
from tidemark.analysis.metrics import OTHERS, QUANTILES, RANGES, SECONDS, UNITS, Absent, Metric
from tidemark.analysis.runs import Run, RunSet, Series
from tidemark.analysis.statistics import (
    Estimate,
    Replicates,
    RunEffects,
    cliffs_delta,
    generator,
    interquartile_range,
    over_runs,
    quantile,
)

__all__ = ["UNITS", "Absent", "Measures", "Metric", "estimate"]


class Measures:
    """Quantities of the runs in `run_set`, each computed once; those of a run not even that, where it was kept."""

    def __init__(self, run_set: RunSet) -> None:
        self.run_set = run_set
        self._distributions: dict[tuple[str, str], dict[Metric, Replicates]] = {}
        self._seconds: dict[tuple[str, str], BlockSample] = {}
        self._runs = resampled.read(run_set)
        self._hot: dict[tuple[Metric, str], Replicates] = {}
        self._effects: dict[tuple[Metric, str], RunEffects | None] = {}

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
                raise Absent(f"not measurable: {run.manifest.disk.reason or 'the machine does not tell'}")
            values = values[np.isfinite(values)]
            if len(values) == 0:
                raise Absent("the window has no whole second")
            self._seconds[key] = BlockSample.prepare(values, generator(*key))
        return self._seconds[key]

    # Series

    def hot(self, metric: Metric, series: Series | None) -> Replicates:
        """The typical hot run of `series` (mean over its hot runs; geometric for positive quantities).

        How far runs differ is learnt from the hot runs of all series of the same study, stack and mode.
        """
        if series is None:
            raise Absent("there is no such series")
        key = (metric, series.id)
        if key not in self._hot:
            runs = self._known(metric, series)
            self._hot[key] = over_runs(runs, generator(metric, series.id), self._pooled(metric, series, runs))
        return self._hot[key]

    def first_hot(self, metric: Metric, series: Series) -> Replicates:
        """The run that the thesis shows: the first hot one."""
        return self.of_run(metric, _one(series, 1))

    def cold(self, metric: Metric, series: Series) -> Replicates:
        """Run 0, in doubt as far as hot runs differ from one another: one cold run cannot tell."""
        if series.cold_run is None:
            raise Absent(series.missing(0))
        run = self.of_run(metric, series.cold_run)
        return over_runs([run], generator(metric, series.id, "cold"), self._pooled(metric, series, [run]))

    def cold_effect(self, metric: Metric, series: Series) -> Replicates:
        """Cold over hot: 1 means no effect."""
        cold, hot = self.cold(metric, series), self.hot(metric, series)
        if not (cold.log and hot.log):
            raise Absent("a quantity that may be zero has no ratio")
        return cold.ratio(hot)

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
        pairs = []
        for first, second in zip(a.hot_runs, b.hot_runs, strict=False):
            x, y = first.column("write_ns"), second.column("write_ns")
            edges = np.union1d(bin_edges(x), bin_edges(y))
            names = (first.label, second.label)
            pairs.append(
                cliffs_delta(
                    BlockSample.prepare(x, generator("delta", *names, 0), edges),
                    BlockSample.prepare(y, generator("delta", *names, 1), edges),
                )
            )
        return over_runs(pairs, generator("delta", a.id, b.id))

    def _known(self, metric: Metric, series: Series) -> list[Replicates]:
        if not series.hot_runs:
            raise Absent(series.missing(1))
        runs, reason = [], ""
        for run in series.hot_runs:
            try:
                runs.append(self.of_run(metric, run))
            except Absent as absent:
                reason = str(absent)
        if not runs:
            raise Absent(reason)
        return runs

    def _pooled(self, metric: Metric, series: Series, runs: list[Replicates]) -> RunEffects | None:
        """How runs of `series` may differ, as the runs of all systems do; None where systems do not compare.

        Relative differences of positive quantities do compare, and growth relative to the median write time; what
        else is on the linear scale does not.
        """
        if series.is_harness:
            return None
        if metric is Metric.GROWTH:
            effects = self._effects_of(Metric.RELATIVE_GROWTH, series)
            median = float(np.mean([self.of_run(Metric.WRITE_MEDIAN, run).value for run in series.runs]))
            return None if effects is None else effects.scaled(median)
        if metric is not Metric.RELATIVE_GROWTH and not all(run.log for run in runs):
            return None
        return self._effects_of(metric, series)

    def _effects_of(self, metric: Metric, series: Series) -> RunEffects | None:
        key = (metric, f"{series.study} {series.stack} {series.mode}")
        if key not in self._effects:
            groups = []
            for other in self.run_set.select(mode=series.mode, study=series.study, stack=series.stack, harness=False):
                with suppress(Absent):
                    groups.append(self._known(metric, other))
            scale = metric is not Metric.RELATIVE_GROWTH
            self._effects[key] = RunEffects.pooled([g for g in groups if all(run.log is scale for run in g)])
        return self._effects[key]


def _one(series: Series, number: int) -> Run:
    run = series.run(number)
    if run is None:
        raise Absent(series.missing(number))
    return run


def estimate(metric: Metric, replicates: Replicates) -> Estimate:
    """`replicates` of `metric` as a number with its interval and unit."""
    return replicates.estimate(UNITS[metric])
