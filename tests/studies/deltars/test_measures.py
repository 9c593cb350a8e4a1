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
