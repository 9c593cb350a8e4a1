"""Evidence for judging claims: the runs of one stack, with a record of those that were used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from tidemark.analysis.aggregation import BetweenRunVariance, pooled_mean
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Floats, generator
from tidemark.runs.run import COLD, Run
from tidemark.runs.runset import Series
from tidemark.runs.spec import MAIN


class ClaimData:
    """Input of the measures of claims: the runs of one stack. It records the runs that were used.

    If a study's runs are comparable with the published ones only under some condition, a subclass checks it: `series`
    and `speaking` raise NotAvailable, with the reason, for runs that are not comparable.
    """

    # True if runs whose table lost rows are evidence of that; their speeds are NotAvailable anyway.
    losses_count: ClassVar[bool] = False

    def __init__(self, measures: Measures, stack: str | None = None) -> None:
        self.measures = measures
        self.stack = stack or measures.run_set.stack
        self.runs: list[Run] = []

    def series(self, system: str, mode: str, sweep: str = MAIN) -> Series:
        """Return the series of a system; raise NotAvailable, with the reason, if it has no usable runs."""
        return self.require_runs(self.of_sweep(system, mode, sweep), f"{system} in {mode} mode")

    def comparable_series(self, _quantity: Metric, system: str, mode: str) -> Series:
        """Return the series comparable with the published runs for a quantity: that of the main sweep."""
        return self.series(system, mode)

    def of_sweep(self, system: str, mode: str, sweep: str) -> list[Series]:
        """Return the series of a system in one sweep, including those without runs."""
        found = self.measures.run_set.select(mode=mode, sweep=sweep, stack=self.stack)
        return [series for series in found if series.system == system]

    def require_runs(self, found: Sequence[Series], which: str) -> Series:
        """Return the first of `found` and record its runs.

        Raise NotAvailable if there is none or its runs are invalid.
        """
        require(found, f"{which} is not in this run set")
        series = found[0]
        require(series.runs, f"{series.title}: {series.missing()}")
        for run in series.runs:
            if run.manifest.oracle.is_wrong and not self.losses_count:
                raise NotAvailable(f"{run.label}: the table does not hold what was acknowledged")
        self.runs += series.runs
        return series

    def hot(self, quantity: Metric, system: str, mode: str) -> BootstrapEstimate:
        """Return `quantity` of the typical hot run, with the variance between runs of all systems in the mode."""
        series = self.comparable_series(quantity, system, mode)
        if not series.hot_runs and series.sweep != MAIN:
            return self.cold_only_estimate(quantity, series, "alone")
        return self.measures.hot(quantity, series)

    def cold_only_estimate(self, quantity: Metric, series: Series, why: str) -> BootstrapEstimate:
        """Estimate a sweep that has only cold runs: of one, with the main sweep's between-run variance."""
        if len(series.cold_runs) > 1:
            return self.measures.cold(quantity, series)  # repeats, which are compared within rounds
        units = [self.measures.of_run(quantity, run) for run in series.cold_runs]
        groups = [
            [self.measures.of_run(quantity, each) for each in other.hot_runs]
            for other in self.measures.run_set.select(mode=series.mode, stack=self.stack, harness=False)
        ]
        return pooled_mean(units, generator(quantity.name, series.id, why), BetweenRunVariance.pooled(groups))

    def cold_effect(self, quantity: Metric, system: str, mode: str) -> BootstrapEstimate:
        """Return run 0 over the typical hot run; raise NotAvailable unless run 0 is a proven cold start.

        A cold start means: restart the machine, start servers, fill topics, measure. Files need not still be out of
        the page cache when the window opens.
        """
        series = self.series(system, mode)
        for run in series.cold_runs:
            if run.manifest.cold_proof.verdict != COLD:
                verdict = run.manifest.cold_proof.verdict
                raise NotAvailable(f"{series.title}: run 0 was no cold start but {verdict} before the servers started")
        return self.measures.cold_effect(quantity, series)


class LossClaimData(ClaimData):
    """Evidence of losses: a run that lost rows counts as evidence of that; its speeds are NotAvailable."""

    losses_count = True


def positive(replicates: BootstrapEstimate) -> BootstrapEstimate:
    """Return `replicates` on the log scale.

    Raise NotAvailable if the quantity may be zero or less (it has no ratio).
    """
    if replicates.log:
        return replicates
    draws = replicates.draws
    if replicates.centre <= 0 or (draws is not None and bool((draws <= 0).any())):
        raise NotAvailable("a quantity that may be zero has no ratio")
    logarithms = None if draws is None else np.log(draws)
    n, runs, is_exact = replicates.n, replicates.runs, replicates.is_exact
    rounds = replicates.rounds and replicates.rounds.logarithmic(replicates.centre)
    centre = math.log(replicates.centre)
    return BootstrapEstimate(centre, logarithms, n, runs, replicates.degrees, is_exact=is_exact, rounds=rounds)


def extreme(parts: Sequence[BootstrapEstimate], largest: bool) -> BootstrapEstimate:
    """Return the largest (or smallest) of several quantities that were resampled independently."""
    pick = np.max if largest else np.min
    if len({part.log for part in parts}) > 1:
        parts = [part.linear() for part in parts]
    draws: Floats | None = None
    if any(part.draws is not None for part in parts):
        draws = pick(np.stack([part.replicates for part in parts]), axis=0)
    return _joined(float(pick([part.centre for part in parts])), draws, parts)


def mean(parts: Sequence[BootstrapEstimate]) -> BootstrapEstimate:
    """Return the geometric mean of positive quantities that were resampled independently."""
    parts = [positive(part) for part in parts]
    draws: Floats | None = None
    if all(part.draws is not None for part in parts):
        draws = np.mean(np.stack([part.draws for part in parts if part.draws is not None]), axis=0)
    return _joined(float(np.mean([part.centre for part in parts])), draws, parts)


def _joined(centre: float, draws: Floats | None, parts: Sequence[BootstrapEstimate]) -> BootstrapEstimate:
    n, runs = sum(part.n for part in parts), min(part.runs for part in parts)
    degrees, is_exact = min(part.degrees for part in parts), all(part.is_exact for part in parts)
    return BootstrapEstimate(centre, draws, n, runs, degrees, parts[0].log, is_exact=is_exact)
