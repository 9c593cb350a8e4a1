"""Quantities of the study: the age of events when they become visible, at which rate, and at what cost.

A run whose table does not hold each event once has counts of the errors, but no ages: they are Absent.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import REPLICATES, BlockSample
from tidemark.analysis.quantities import HIGHER, LOWER, Absent, Quantities, Quantity
from tidemark.analysis.statistics import Replicates, generator, known, quantile, theil_sen
from tidemark.runs.run import Run
from tidemark.studies.freshness import climbs
from tidemark.studies.freshness.climbs import MILLION, NOT_ONCE, SECONDS
from tidemark.studies.freshness.window.samples import is_unfinished

LATE = "it was stopped before all events were visible"
FEWEST_COMMITS = 5  # required to judge a slope
RAISED = "its rate was raised step by step"


def sound(run: Run) -> Run:
    if not run.manifest.oracle.verdict:
        raise Absent(LATE if unfinished(run) else NOT_ONCE)
    if found(run).get("ramp") is not None:
        raise Absent(RAISED)
    return run


def found(run: Run) -> dict[str, Any]:
    return dict(run.manifest.found)


def unfinished(run: Run) -> bool:
    """Return True if the run was stopped before all events were visible, and nothing else is wrong."""
    return is_unfinished(run.manifest.oracle, found(run)["gave_up"])


def was_killed(run: Run) -> bool:
    return bool(found(run)["kills"])


def _age(run: Run, column: str, probability: float) -> Replicates:
    """Return a quantile of the events' ages, in seconds; samples are in the order of their due times."""
    ages = sound(run).column(column)
    least = round(1 / (1 - probability))
    if len(ages) < least:
        raise Absent(f"needs {least:,} events, the run has {len(ages):,}")
    return quantile(BlockSample.prepare(ages, generator(run.label, column)), probability).scaled(SECONDS)


def _oldest(run: Run) -> Replicates:
    return known(float(sound(run).column("seen_ns").max()) * SECONDS)


def _rate(run: Run) -> Replicates:
    """Return events per second, from the first event's due time until the last was seen."""
    ends = sound(run).column("start_ns") + run.column("seen_ns")
    return known(run.manifest.events / (float(ends.max()) * SECONDS))


def commits(run: Run) -> NDArray[np.int64]:
    """Return the events of each commit, in order, as int64[commits]."""
    counts: NDArray[np.int64] = np.unique(sound(run).column("commit"), return_counts=True)[1]
    return counts


def _commits_a_second(run: Run) -> Replicates:
    """Return commits per second, from the first event's due time until the last commit."""
    ends = sound(run).column("start_ns") + run.column("elapsed_ns")
    return known(len(commits(run)) / (float(ends.max()) * SECONDS))


def _rows_a_commit(run: Run) -> Replicates:
    return known(float(np.median(commits(run))))


def _slope(run: Run) -> Replicates:
    """Return how much older a commit's youngest event is than the previous commit's, per second between the two.

    Seconds per second: above 0 the table falls behind. From commits while events arrive, with their mean interval.
    """
    if was_killed(run):
        raise Absent("it was killed")
    commit, ages = sound(run).column("commit"), run.column("elapsed_ns")
    last = np.flatnonzero(np.diff(commit, append=commit[-1] + 1))
    at = (run.column("start_ns") + ages)[last]
    inside = at <= int(run.column("start_ns")[-1])
    youngest, at = ages[last][inside], at[inside]
    if len(youngest) < FEWEST_COMMITS:
        raise Absent(f"needs {FEWEST_COMMITS} commits while events arrive, the run has {len(youngest)}")
    apart = float(at[-1] - at[0]) / (len(at) - 1)
    return theil_sen(youngest, generator(run.label, "lag")).scaled(1 / (1000 * apart))


def _cpu(run: Run) -> Replicates:
    """Return CPU seconds per million events, of the mover and the table's servers, until the last event was seen."""
    why_not = climbs.why_no_cpu(run)
    if why_not:
        raise Absent(why_not)
    spent = sum(found(run)["cpu_s"].values())
    if spent <= 0:
        raise Absent("none was seen")
    return known(spent * MILLION / run.manifest.events)


def _files(run: Run) -> Replicates:
    """Return data and metadata files on disk per million events; both include the uncounted events."""
    footprint, oracle = run.footprint, run.manifest.oracle
    if not footprint.data_files:
        raise Absent("no data file is kept")
    return known((footprint.data_files + footprint.metadata_files) * MILLION / max(oracle.expected, 1))


def not_once(run: Run) -> Replicates:
    """Return the share of events that are missing or present more than once, with a Jeffreys interval."""
    oracle = run.manifest.oracle
    if not oracle.applicable:
        raise Absent("nothing is stored")
    if unfinished(run):
        raise Absent(LATE)
    wrong, whole = oracle.missing + oracle.duplicated, oracle.expected
    draws = generator(run.label, "not once").beta(wrong + 0.5, whole - wrong + 0.5, REPLICATES)
    return Replicates(wrong / whole, draws, whole, log=False, bounds=(0.0, 1.0))


def _ages(column: str, word: str, title: str) -> tuple[Quantity, ...]:
    return tuple(
        Quantity(
            f"{word} {name}", "s", f"{title}: {said}", partial(_age, column=column, probability=probability), LOWER,
            f"{word} {name}", "Events", ("older", "younger"),
        )
        for name, said, probability in (("p50", "median", 0.5), ("p95", "p95", 0.95), ("p99", "p99", 0.99))
    )  # fmt: skip


SEEN_P50, SEEN_P95, SEEN_P99 = _ages("seen_ns", "seen", "Age when a reader sees it")
MADE_P50, MADE_P95, MADE_P99 = _ages("elapsed_ns", "committed", "Age at its commit")
SEEN_MAX = Quantity("seen max", "s", "Age when a reader sees it: oldest", _oldest, LOWER)
RATE = Quantity("events", "events/s", "Events", _rate, HIGHER)
COMMITS = Quantity("commits a second", "commits/s", "Commits", _commits_a_second)
ROWS = Quantity("rows a commit", "rows", "Rows a commit: median", _rows_a_commit)
SLOPE = Quantity("lag slope", "s/s", "Growth of the lag", _slope, LOWER, signed=True)
CPU = Quantity("CPU", "CPU-s", "CPU-seconds, a million events", _cpu, LOWER)
FILES = Quantity("files", "files", "Files, a million events", _files, LOWER)
WRONG = Quantity("not once", "", "Share of events that are not there once", not_once, LOWER, signed=True)

QUANTITIES = Quantities(
    all=(
        SEEN_P50, SEEN_P95, SEEN_P99, SEEN_MAX, MADE_P50, MADE_P95, MADE_P99, RATE, COMMITS, ROWS, SLOPE, CPU, FILES,
        WRONG, climbs.CAPACITY,
    ),
    headline=(SEEN_P50, SEEN_P99, RATE),
    code=(
        "studies/freshness/quantities.py", "studies/freshness/climbs.py", "studies/freshness/window/samples.py",
    ),
)  # fmt: skip
