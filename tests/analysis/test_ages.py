"""Numbers by the age of the table are the same whatever the length of the window that they come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.runs.runset import DUCKLAKE, write_run_set

from tidemark.analysis.ages import AGES, YOUNG, at_age, by_age, growth, of_age, rate, typical_by_age
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable, NotReached
from tidemark.analysis.statistics import Estimate, generator, quantile_of_windows
from tidemark.runs.runset import RunSet
from tidemark.studies.streams.metrics import ON_DISK, QUANTITIES, RATE_OF_FIRST, WRITE_TAIL

MS = 1e6


def law(commits: int) -> np.ndarray:
    """Return write times in ns of a table whose commits get slower: 5.3 ms + 0.134 ms a commit, 11 ms each tenth."""
    k = np.arange(1, commits + 1)
    noise = np.exp(0.06 * np.random.default_rng(7).normal(size=commits))
    times: np.ndarray = ((5.3 + 0.134 * k + 11 * (k % 10 == 0)) * noise * MS).astype(np.int64)
    return times


def cut(times: np.ndarray, seconds: float) -> np.ndarray:
    """Return the writes of the same run in a window of `seconds`."""
    return times[: int(np.searchsorted(np.cumsum(times), seconds * 1e9)) + 1]


def numbers(times: np.ndarray) -> dict[str, Estimate | str]:
    found: dict[str, Estimate | str] = {}
    for age in AGES:
        for name, compute in (("at", at_age), ("growth", growth)):
            try:
                found[f"{name} {age}"] = compute(times, age, generator(name, age)).estimate("")
            except NotAvailable as absent:
                found[f"{name} {age}"] = str(absent)
    found["rate"] = rate(np.ones(len(times)), times, 100, generator("rate")).estimate("")
    return found


def test_windows_of_8_60_and_300_seconds_give_the_same_numbers() -> None:
    whole = law(4_000)
    windows = [cut(whole, seconds) for seconds in (8, 60, 300)]
    assert [len(window) > 100 for window in windows] == [True] * 3 and len(windows[2]) > 1_000 > len(windows[1])
    short, long, longest = map(numbers, windows)
    shared = ["at 10", "at 100", "growth 10", "growth 100", "rate"]
    for name in shared:
        assert isinstance(short[name], Estimate) and short[name] == long[name] == longest[name], name
    medians = [float(np.median(window)) for window in windows]
    assert medians[2] > 4 * medians[0], "the median of a window is a property of its length"
    assert "needs 1,000 commits, the run has" in str(short["at 1000"]) and "needs 10,000" in str(longest["at 10000"])
    assert isinstance(longest["at 1000"], Estimate)


def test_values_follow_the_law_that_was_planted() -> None:
    times = law(2_000)
    assert at_age(times, 10, generator("a")).value == pytest.approx(5.3 + 0.134 * 10.5, rel=0.1)
    assert at_age(times, 100, generator("b")).value == pytest.approx(5.3 + 0.134 * 90.5, rel=0.05)
    assert at_age(times, 1_000, generator("c")).value == pytest.approx(5.3 + 0.134 * 900, rel=0.05)
    assert growth(times, 1_000, generator("d")).value == pytest.approx((5.3 + 0.134 * 900) / (5.3 + 1.4), rel=0.1)
    seconds = (5.3 * 100 + 0.134 * 100 * 101 / 2 + 11 * 10) / 1e3
    assert rate(np.full(2_000, 50), times, 100, generator("e")).value == pytest.approx(5_000 / seconds, rel=0.03)


def test_ages_are_the_commits_before_them() -> None:
    numbered = np.arange(1, 1_001)
    assert list(of_age(numbered, YOUNG)) == list(range(6, 16))
    assert list(of_age(numbered, 100)) == list(range(81, 101)) and len(of_age(numbered, 1_000)) == 200
    with pytest.raises(NotAvailable, match="needs 15 commits, the run has 14"):
        of_age(numbered[:14], YOUNG)
    ages, times = by_age((numbered * MS).astype(np.int64))
    assert ages[0] == 1 and ages[-1] == 1_000 and list(ages) == sorted(set(ages)) and times[0] == 1
    longer, _ = by_age(np.arange(1, 1_100))
    assert list(longer[: len(ages)]) == list(ages), "points are the same in a longer window"


def windows_of(slow: int, runs: int, root: Path) -> Measures:
    """Measure `runs` hot windows that fit 200 commits, of which the last `slow` fit only 50."""
    factors = (1.0,) * (runs + 1 - slow) + (4.0,) * slow
    model = replace(DUCKLAKE, median_ms=5.0, slope_ms=0.0, outliers=0.0, poll_ms=0.01, factors=factors)
    return Measures(RunSet.load(write_run_set(root, (model,), window_s=1.0)), QUANTITIES)


@pytest.mark.parametrize(("slow", "runs"), [(1, 10), (1, 9), (5, 10)])
def test_age_that_only_the_faster_runs_reached_is_left_out(tmp_path: Path, slow: int, runs: int) -> None:
    measures = windows_of(slow, runs, tmp_path)
    (series,) = measures.run_set.series
    reached = {age for age, _ in typical_by_age(series.hot_runs)}
    assert 40 in reached
    if 10 * slow <= runs:
        assert measures.hot(RATE_OF_FIRST, series).value > 0 and 100 in reached
    else:
        with pytest.raises(NotReached, match=f"^{slow} of {runs} hot runs ended before it"):
            measures.hot(RATE_OF_FIRST, series)
        assert 100 not in reached


def test_interval_of_a_share_ends_at_100_percent(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, (replace(DUCKLAKE, disk_mb_per_s=400.0),), window_s=3.0)
    path = next(results.rglob("run-2/run.json"))
    values = json.loads(path.read_text())
    values["disk"]["sync_bytes"] = values["disk"]["window_bytes"]  # half of it
    path.write_text(json.dumps(values))
    measures = Measures(RunSet.load(results), QUANTITIES)
    share = measures.hot(ON_DISK, measures.run_set.series[0]).estimate("%")
    assert share.low is not None and share.low < share.value < 99
    assert share.high == 100.0


def test_tails_are_of_commits_51_to_100_of_all_hot_runs_with_ten_beyond(tmp_path: Path) -> None:
    def measured(folder: str, window_s: float) -> Measures:
        model = replace(DUCKLAKE, factors=(1.0,) * 5)
        return Measures(RunSet.load(write_run_set(tmp_path / folder, [model], window_s=window_s)), QUANTITIES)

    measures = measured("long", 3)
    series = measures.run_set.find("ducklake", "single")
    assert series is not None
    windows = np.concatenate([run.column("write_ns")[50:100] for run in series.hot_runs])
    found = measures.hot(WRITE_TAIL[95], series).estimate("ms")
    assert found.value == pytest.approx(np.quantile(windows, 0.95) / MS) and (found.n, found.runs) == (200, 4)
    assert found.contains(found.value)
    with pytest.raises(NotAvailable, match="needs 1,000 operations, the hot runs have 200"):
        measures.hot(WRITE_TAIL[99], series)
    with pytest.raises(NotAvailable, match="of all hot runs together"):
        measures.of_run(WRITE_TAIL[95], series.hot_runs[0])
    short = measured("short", 0.7)
    with pytest.raises(NotReached, match="4 of 4 hot runs ended before operation 100"):
        short.hot(WRITE_TAIL[95], short.run_set.find("ducklake", "single"))


def test_interval_of_a_tail_covers_how_windows_differ() -> None:
    """Taking each sample as a window of its own is the planted fault: it covers far less."""
    rng, sets, windows, samples = np.random.default_rng(3), 200, 12, 50

    def drawn(count: int) -> np.ndarray:
        level = 0.08 * rng.normal(size=(count, 1))
        times: np.ndarray = np.exp(level + 0.1 * rng.normal(size=(count, samples)))
        return times

    true = float(np.quantile(drawn(20_000), 0.95))
    covered = {"windows": 0, "samples": 0}
    for number in range(sets):
        found = drawn(windows)
        for name, units in (("windows", found), ("samples", found.reshape(-1, 1))):
            interval = quantile_of_windows(units, 0.95, generator(name, number)).estimate("")
            covered[name] += bool(interval.contains(true))
    assert covered["windows"] >= 0.9 * sets and covered["samples"] < 0.8 * sets, covered
