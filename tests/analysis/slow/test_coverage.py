"""With the repeat as the unit, intervals reach their coverage although repeats differ more than runs do."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.analysis.samples import runs_of

from tidemark.analysis.aggregation import BetweenRunVariance, mean, pooled_mean


@pytest.mark.parametrize(
    "systems", [2, pytest.param(7, marks=pytest.mark.long(reason="it takes four times as long as two"))]
)
def test_equal_systems_that_drift_between_repeats_show_no_difference(systems: int) -> None:
    """With the repeat as the unit, intervals reach their nominal coverage although repeats differ more than runs."""
    rng = np.random.default_rng(20)
    contained = {"repeats": 0, "runs": 0}
    for _ in range(60):
        repeats = [
            [runs_of(10.0 * math.exp(0.1 * rng.normal()), 0.05, 2, rng) for _ in range(2)] for _ in range(systems)
        ]
        for unit, groups in (
            ("repeats", [[mean(runs, rng) for runs in each] for each in repeats]),
            ("runs", [each[0] for each in repeats]),
        ):
            effects = BetweenRunVariance.pooled(groups)
            a, b = (pooled_mean(group, rng, effects) for group in groups[:2])
            contained[unit] += bool(a.ratio(b).estimate("").contains(1.0))
    assert contained["repeats"] >= 53
    assert contained["runs"] < 48, "one series of each does not know of the drift"
