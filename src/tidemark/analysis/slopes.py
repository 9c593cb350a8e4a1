"""Slope of a quantity against a varied setting, from the same quantity of several series."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tidemark.analysis.statistics import Floats, Replicates


def slope_of(points: Sequence[tuple[float, Replicates]]) -> Replicates:
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
    drawn = [each.draws for each in quantities if each.draws is not None]
    n, runs = sum(each.n for each in quantities), min(each.runs for each in quantities)
    degrees = min(each.degrees for each in quantities)
    return Replicates(centre, slope(drawn) if len(drawn) == len(points) else None, n, runs, degrees, log=False)


def intercept_of(points: Sequence[tuple[float, Replicates]], slope: float) -> float:
    """Return the intercept of the line with `slope` through the points: the median of their residuals."""
    return float(np.median([each.centre - slope * setting for setting, each in points]))
