"""Write times by the age of the table, which is the number of commits that it has: they do not depend on the window.

A median or a rate over a whole window of a table whose commits get slower says how long the window was. These
functions look at a fixed number of commits from the window's start, and exist only if the window reached it. They take
`write_ns`, int64[commits], the time of each commit of one window in order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.metrics import NotReached, enough
from tidemark.analysis.statistics import BootstrapEstimate, known, median, ratio_of_sums
from tidemark.runs.run import Run

Numbers = NDArray[Any]
YOUNG = 10  # the first age
AGES = (YOUNG, 100, 1_000, 10_000)
DECADES = 7  # of ages in a figure
MOST = 10**DECADES


def of_age(write_ns: Numbers, age: int) -> Numbers:
    """Return the times of the commits at `age`: (0.8 age, age], and 6 to 15 at the age of 10.

    Raise NotReached if the window did not reach them.
    """
    first, last = (5, 15) if age == YOUNG else (round(0.8 * age), age)
    _reached(write_ns, last)
    return write_ns[first:last]


def at_age(write_ns: Numbers, age: int, rng: np.random.Generator) -> BootstrapEstimate:
    """Return the median time in ms of a commit at `age`; raise NotReached if the window did not reach it."""
    return median(BlockSample.prepare(np.maximum(of_age(write_ns, age), 1), rng)).scaled(1e-6)


def growth(write_ns: Numbers, age: int, rng: np.random.Generator) -> BootstrapEstimate:
    """Return the time of a commit at `age` over that at the age of 10, both of this window."""
    return at_age(write_ns, age, rng).ratio(at_age(write_ns, YOUNG, rng))


def rate(rows: Numbers, write_ns: Numbers, commits: int, rng: np.random.Generator) -> BootstrapEstimate:
    """Return the rows of the first `commits` per second inside `write`; `rows`: int[commits], those of each commit."""
    _reached(write_ns, commits)
    return ratio_of_sums(rows[:commits].astype(np.int64) * 1_000_000_000, np.maximum(write_ns[:commits], 1), rng)


def total(write_ns: Numbers, commits: int) -> BootstrapEstimate:
    """Return the seconds inside `write` of the first `commits`; raise NotReached if the window did not have them."""
    _reached(write_ns, commits)
    return known(max(float(write_ns[:commits].sum()), 1.0) / 1e9)


def by_age(write_ns: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ages, ten a decade and equal for all windows, and the median time in ms of the commits since the last."""
    ends = np.unique(np.round(np.geomspace(1, MOST, 10 * DECADES + 1)).astype(int))
    ends = ends[ends <= len(write_ns)]
    starts = np.concatenate([[0], ends[:-1]])
    times = [float(np.median(write_ns[start:end])) / 1e6 for start, end in zip(starts, ends, strict=True)]
    return ends.astype(np.float64), np.array(times)


def typical_by_age(runs: Iterable[Run]) -> list[tuple[float, float]]:
    """Return each age that enough of `runs` reached, with the geometric mean over these of the time in ms there.

    Runs of workloads that record no `write_ns` have no ages.
    """
    found: dict[float, list[float]] = {}
    writing = [run for run in runs if run.has("write_ns")]
    for run in writing:
        for age, time in zip(*by_age(run.column("write_ns")), strict=True):
            found.setdefault(float(age), []).append(max(float(time), 1e-6))
    typical = {age: float(np.exp(np.mean(np.log(times)))) for age, times in found.items()}
    return [(age, time) for age, time in typical.items() if enough(len(found[age]), len(writing))]


def _reached(write_ns: Numbers, commits: int) -> None:
    if len(write_ns) < commits:
        raise NotReached(f"needs {commits:,} commits, the run has {len(write_ns):,}")
