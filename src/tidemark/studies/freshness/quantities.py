"""The quantities of the study: how old events are when they can be seen, at what rate, and what that costs.

A run whose table does not hold each event once has counts of what is wrong, and no ages: they are Absent.
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
FEWEST_COMMITS = 5  # by which a slope is judged
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
    """Whether it was stopped before all events had come, and nothing else is wrong."""
    return is_unfinished(run.manifest.oracle, found(run)["gave_up"])


def was_killed(run: Run) -> bool:
    return bool(found(run)["kills"])


def _age(run: Run, column: str, probability: float) -> Replicates:
    """Of events, in seconds, in the order in which they were due."""
    ages = sound(run).column(column)
    least = round(1 / (1 - probability))
    if len(ages) < least:
        raise Absent(f"needs {least:,} events, the run has {len(ages):,}")
    return quantile(BlockSample.prepare(ages, generator(run.label, column)), probability).scaled(SECONDS)


def _oldest(run: Run) -> Replicates:
    return known(float(sound(run).column("seen_ns").max()) * SECONDS)


def _rate(run: Run) -> Replicates:
    """Events by the time from the first one's moment until the last was seen."""
    ends = sound(run).column("start_ns") + run.column("seen_ns")
    return known(run.manifest.events / (float(ends.max()) * SECONDS))


def commits(run: Run) -> NDArray[np.int64]:
    """int64[commits]: events of each, in their order."""
    counts: NDArray[np.int64] = np.unique(sound(run).column("commit"), return_counts=True)[1]
    return counts


def _commits_a_second(run: Run) -> Replicates:
    """Commits by the time from the first event's moment until the last commit."""
    ends = sound(run).column("start_ns") + run.column("elapsed_ns")
    return known(len(commits(run)) / (float(ends.max()) * SECONDS))


def _rows_a_commit(run: Run) -> Replicates:
    return known(float(np.median(commits(run))))


def _slope(run: Run) -> Replicates:
    """By how much a commit's youngest event is older than that of the commit before, over the time between the two.

    Seconds a second: above 0 the table falls behind. Of commits while events arrive; in the mean over them.
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
    """Processor seconds of who moves events and of the servers of its table, until the last event was seen."""
    why_not = climbs.why_no_cpu(run)
    if why_not:
        raise Absent(why_not)
    spent = sum(found(run)["cpu_s"].values())
    if spent <= 0:
        raise Absent("none was seen")
    return known(spent * MILLION / run.manifest.events)


def _files(run: Run) -> Replicates:
    """All files that the table has on the disk, data and metadata; those of the uncounted events are among both."""
    footprint, oracle = run.footprint, run.manifest.oracle
    if not footprint.data_files:
        raise Absent("no data file is kept")
    return known((footprint.data_files + footprint.metadata_files) * MILLION / max(oracle.expected, 1))


def not_once(run: Run) -> Replicates:
    """The share of events that are not in the table, or more than once (with an interval after Jeffreys)."""
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
