"""Selections of series by their mode, and the results of a series: its hot runs, or run 0 if it has none."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.freshness.settings import Policy, shape_of


def of(measures: Measures, quantity: Quantity, series: Series) -> Replicates:
    """Return `quantity` of `series`. Raises Absent if its runs do not have it."""
    return measures.hot(quantity, series) if series.hot_runs else measures.cold(quantity, series)


def runs_of(series: Series) -> tuple[Run, ...]:
    """Return the runs that `of` uses."""
    return series.hot_runs or series.cold_runs


def undisturbed(run_set: RunSet) -> list[Series]:
    """Return the series with one rate and no kills, by system, rate and commit policy."""
    found = [each for each in run_set.select() if shape_of(each.mode).is_steady]
    return sorted(found, key=_place)


def alike(series: Sequence[Series]) -> list[Series]:
    """Return those of `series` with the most common rate and commit interval. Raises Absent if none has an interval."""
    timed = [each for each in series if Policy.parse(shape_of(each.mode).policy).interval_ms is not None]
    shapes = [shape_of(each.mode)[:2] for each in timed]
    if not shapes:
        raise Absent("no system commits by the clock")
    common = max(sorted(set(shapes)), key=lambda shape: (shapes.count(shape), shape[1]))
    return [each for each, shape in zip(timed, shapes, strict=True) if shape == common]


def killed(run_set: RunSet) -> list[Series]:
    return [each for each in run_set.select() if shape_of(each.mode).kills]


def climbed(run_set: RunSet) -> list[Series]:
    """Return the series whose rate was raised step by step."""
    return [each for each in run_set.select() if shape_of(each.mode).steps]


def policy_of(series: Series) -> str:
    """Return the commit policy in words."""
    return Policy.parse(shape_of(series.mode).policy).words


def _place(series: Series) -> tuple[str, int, float, int]:
    shape = shape_of(series.mode)
    rules = Policy.parse(shape.policy)
    return series.system, shape.rate, float(rules.interval_ms or 0), rules.rows or 0
