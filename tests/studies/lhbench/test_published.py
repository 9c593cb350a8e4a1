"""Tests of the paper's numbers, and of its sentences against its own figures."""

from __future__ import annotations

from statistics import fmean

import pytest

from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.published import Reading, printed, reading


def explained(found: Reading) -> float:
    """Return the share of the variance of the times that the line explains."""
    mean = fmean(found.times_s)
    left = sum((time - fitted) ** 2 for time, fitted in zip(found.times_s, found.fitted_s, strict=True))
    return 1 - left / sum((time - mean) ** 2 for time in found.times_s)


def test_numbers_are_those_of_the_figures() -> None:
    assert len(published.numbers()) == 18 + 30 + 16 + 30
    assert printed(1, "load", "Hudi").value == pytest.approx(20_120)
    assert printed(4, "value startup", "Iceberg", 200_000).value == pytest.approx(4_120)
    assert published.along(3, "merge", published.COPY) == [(7_000, 60), (70_000, 213), (700_000, 646), (7_000_000, 665)]
    with pytest.raises(KeyError):
        printed(1, "load", "Paimon")


def test_printed_labels_touch_every_file_and_a_hundredth_explains_the_times() -> None:
    labelled, hundredth = reading(1), reading(100)
    assert min(labelled.shares) == pytest.approx(0.970, abs=1e-3)
    assert labelled.worst > 1 and explained(labelled) < 0.9
    assert hundredth.shares == pytest.approx((0.0344, 0.2954, 0.9699, 1.0), abs=1e-4)
    assert hundredth.fitted_s == pytest.approx((55, 220, 645, 664), abs=2)
    assert (hundredth.fixed_s, hundredth.whole_s) == pytest.approx((33, 631), abs=2)
    assert hundredth.worst < 0.1 and explained(hundredth) > 0.999


def test_printed_numbers_have_rounding_error_and_read_off_ones_reading_error() -> None:
    whole = printed(1, "q9", "Delta").estimate("s")
    assert whole.value == pytest.approx(35) and whole.low == pytest.approx(34.5, abs=0.1)
    by_eye = printed(3, "merge", published.COPY, 70_000).estimate("s")
    assert by_eye.low == pytest.approx(208, abs=0.5) and by_eye.high == pytest.approx(218, abs=0.5)
    bar = printed(4, "limit total", "Delta", 200_000).estimate("ms")
    assert bar.low == pytest.approx(747, abs=6)
