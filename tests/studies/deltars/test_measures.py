"""Tests of the study's own measures and means on numbers with known results."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, known
from tidemark.studies.deltars.claims import MEASURES
from tidemark.studies.deltars.metrics import UPLOAD, WRITE_MEAN, mean_of


class Told:
    """Evidence with given seconds per system and mode."""

    def __init__(self, seconds: dict[tuple[str, str], float]) -> None:
        self._seconds = seconds

    def hot(self, _quantity: Any, system: str, mode: str) -> BootstrapEstimate:
        return known(self._seconds[system, mode])


def measured(name: str, seconds: dict[tuple[str, str], float], *arguments: Any) -> tuple[float, str]:
    found, unit = MEASURES[name].compute(cast(Any, Told(seconds)), *arguments)
    return found.value, unit


def test_linear_growth_has_exponent_one() -> None:
    tables = ["supplier_sf10", "supplier_sf1000"]
    seconds = {("legacy", "supplier_sf10-1"): 2.0, ("legacy", "supplier_sf1000-1"): 200.0}
    assert measured("exponent", seconds, UPLOAD, "legacy", tables) == (pytest.approx(1.0), "")
    seconds["legacy", "supplier_sf1000-1"] = 20.0
    assert measured("exponent", seconds, UPLOAD, "legacy", tables) == (pytest.approx(0.5), "")


def test_gap_closed_by_another_path_is_a_share_of_the_total_gap() -> None:
    mode = "supplier_sf10-1"
    seconds = {("legacy", mode): 21.0, ("delta-rs-hdfs", mode): 1.0, ("spark-delta-hdfs", mode): 6.0}
    paths = ("legacy", "delta-rs-hdfs", "spark-delta-hdfs", mode)
    assert measured("gap-closed", seconds, WRITE_MEAN, *paths) == (pytest.approx(75.0), "%")
    seconds["spark-delta-hdfs", mode] = 22.0
    with pytest.raises(NotAvailable, match="has no ratio"):
        measured("gap-closed", seconds, WRITE_MEAN, *paths)


def test_interval_of_few_samples_follows_students_t() -> None:
    values = np.array([1.0, 1.1, 0.9, 1.05, 0.95, 1.0, 1.1, 0.9])
    many, few = mean_of(values, "many").estimate("s"), mean_of(values[:3], "few").estimate("s")
    assert many.low is not None and many.high is not None and few.low is not None and few.high is not None
    assert few.high - few.low > 2 * (many.high - many.low)
    # Student's t for three samples: 4.30 standard errors on either side.
    error = np.std(np.log(values[:3]), ddof=1) / np.sqrt(3)
    assert np.log(few.high / few.value) == pytest.approx(4.30 * error, rel=0.15)
    assert mean_of(values[:2], "two").estimate("s").low is None


@pytest.mark.parametrize(
    ("writes", "apart", "told"),
    [(20, 2.0, (0.0, 0.0)), (20, 1.0, (1.0, None)), (50, 1.0, (1.0, 1.0))],
    ids=["apart", "wide", "as many as in the thesis"],
)
def test_overlap_of_intervals_of_fewer_writes_decides_nothing(
    writes: int, apart: float, told: tuple[float, float | None]
) -> None:
    class Spread:
        def hot(self, _quantity: Any, system: str, _mode: str) -> BootstrapEstimate:
            values = np.linspace(0.9, 1.1, writes) * (apart if system == "local" else 1.0)
            return mean_of(values, system)

    found, _ = MEASURES["overlapping"].compute(cast(Any, Spread()), WRITE_MEAN, "hdfs", "local", ["a"])
    assert (found.value, found.estimate("").low) == told


def test_overlap_needs_intervals() -> None:
    with pytest.raises(NotAvailable, match="without an interval"):
        measured("overlapping", {("hdfs", "a"): 1.0, ("local", "a"): 2.0}, WRITE_MEAN, "hdfs", "local", ["a"])
