"""Metrics of the study and its selections of series: the age of events when they become visible, and its cost.

A run whose table does not hold each event once has counts of the errors, but no ages: they are NotAvailable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, MetricSet, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, counted_share, generator, known, quantile
from tidemark.planner.cost_model import Age
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.freshness.capacity import CAPACITY, MILLION, NOT_ONCE, SECONDS, growth_of_age, why_no_cpu
from tidemark.studies.freshness.record import FreshnessRecord, UpkeepCall, UpkeepRecord, is_unfinished
from tidemark.studies.freshness.settings import FreshnessSettings

LATE = "it was stopped before all events were visible"
FEWEST_COMMITS = 5  # required to judge a slope
STRETCHES = 160  # of a window; the maximum lag of each is kept
RAISED = "its rate was raised step by step"


def sound(run: Run) -> Run:
    require(run.manifest.oracle.verdict, LATE if unfinished(run) else NOT_ONCE)
    require(run.record(FreshnessRecord).ramp is None, RAISED)
    return run


def unfinished(run: Run) -> bool:
    """Return True if the run was stopped before all events were visible, and nothing else is wrong."""
    record = run.record(FreshnessRecord)
    acknowledged = record.upkeep.acknowledged if record.upkeep else 0
    return is_unfinished(run.manifest.oracle, record.gave_up, acknowledged)


def _age(run: Run, column: str, probability: float) -> BootstrapEstimate:
    """Return a quantile of the events' ages, in seconds; samples are in the order of their due times."""
    ages = sound(run).column(column)
    least = round(1 / (1 - probability))
    require(len(ages) >= least, f"needs {least:,} events, the run has {len(ages):,}")
    return quantile(BlockSample.prepare(ages, generator(run.label, column)), probability).scaled(SECONDS)


def _oldest(run: Run) -> BootstrapEstimate:
    return known(float(sound(run).column("seen_ns").max()) * SECONDS)


def _rate(run: Run) -> BootstrapEstimate:
    """Return events per second, from the first event's due time until the last was seen."""
    ends = sound(run).column("start_ns") + run.column("seen_ns")
    return known(run.manifest.events / (float(ends.max()) * SECONDS))


@dataclass(frozen=True, slots=True)
class Lag:
    """Lag just before a reader saw more: the age of the oldest unseen event, and the number of unseen events."""

    at_s: NDArray[np.float64]  # after the first event was due
    oldest_s: NDArray[np.float64]
    events: NDArray[np.float64]


def lag(run: Run, stretches: int = STRETCHES) -> Lag:
    """Return the lag of `run` until all events were seen, the maximum of each stretch.

    Raises NotAvailable like its ages.
    """
    due = sound(run).column("start_ns")
    seen = due + run.column("seen_ns")
    moments = np.unique(seen)
    before = np.searchsorted(seen, moments)
    oldest = moments - due[before]
    waiting = np.searchsorted(due, moments, side="right") - before
    stretch = np.minimum(moments * stretches // max(int(moments[-1]), 1), stretches - 1)
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    return Lag(
        moments[first] * SECONDS,
        np.maximum.reduceat(oldest, first) * SECONDS,
        np.maximum.reduceat(waiting, first).astype(np.float64),
    )


def commits(run: Run) -> NDArray[np.int64]:
    """Return the events of each commit, in order, as int64[commits]."""
    counts: NDArray[np.int64] = np.unique(sound(run).column("commit"), return_counts=True)[1]
    return counts


def _commits_a_second(run: Run) -> BootstrapEstimate:
    """Return commits per second, from the first event's due time until the last commit."""
    ends = sound(run).column("start_ns") + run.column("elapsed_ns")
    return known(len(commits(run)) / (float(ends.max()) * SECONDS))


def _rows_a_commit(run: Run) -> BootstrapEstimate:
    return known(float(np.median(commits(run))))


def _slope(run: Run) -> BootstrapEstimate:
    """Return how much older a commit's youngest event is than the previous commit's, per second between the two.

    Seconds per second: above 0 the table falls behind. From commits while events arrive, with their mean interval.
    """
    require(not run.record(FreshnessRecord).kills, "it was killed")
    commit, ages = sound(run).column("commit"), run.column("elapsed_ns")
    last = np.flatnonzero(np.diff(commit, append=commit[-1] + 1))
    at = (run.column("start_ns") + ages)[last]
    inside = at <= int(run.column("start_ns")[-1])
    youngest, at = ages[last][inside], at[inside]
    if len(youngest) < FEWEST_COMMITS:
        raise NotAvailable(f"needs {FEWEST_COMMITS} commits while events arrive, the run has {len(youngest)}")
    return growth_of_age(at, youngest, run.label, "lag")


def _cpu(run: Run) -> BootstrapEstimate:
    """Return CPU seconds per million events, of the mover and the table's servers, until the last event was seen.

    Without what the servers spend on the reader's looks, where the run tells it.
    """
    why_not = why_no_cpu(run)
    if why_not:
        raise NotAvailable(why_not)
    record = run.record(FreshnessRecord)
    spent = sum(seconds for _, seconds in record.cpu_s) - record.looks * record.look_cpu_s
    if spent <= 0:
        raise NotAvailable("none was seen")
    return known(spent * MILLION / run.manifest.events)


def _upkeep(run: Run) -> UpkeepRecord:
    return require(sound(run).record(FreshnessRecord).upkeep, "its series has no policy of upkeep")


def _calls(run: Run) -> tuple[UpkeepCall, ...]:
    return require(_upkeep(run).calls, "there was no upkeep")


def _stall(run: Run) -> BootstrapEstimate:
    found = _upkeep(run)
    require(found.commits, "no commit began in the window")
    return known(found.longest_busy_s)


def _longest_call(run: Run) -> BootstrapEstimate:
    return known(max(call.seconds for call in _calls(run)))


def _peak(run: Run) -> BootstrapEstimate:
    return known(_upkeep(run).peak_bytes / MILLION)


def _peak_of_upkeep(run: Run) -> BootstrapEstimate:
    return known(max(call.peak_bytes for call in _calls(run)) / MILLION)


def _written(run: Run) -> BootstrapEstimate:
    """Return megabytes per million events that the consumer and the table's servers sent to a disk, now or later."""
    found = _upkeep(run)
    require(not run.record(FreshnessRecord).unseen, "a part of the table is on a server that is not ours")
    whole = sum(size for _, size in found.written_bytes)
    if whole <= 0:
        raise NotAvailable("nothing was seen to be written")
    return known(whole / run.manifest.events)  # bytes an event are megabytes a million events


def _cpu_of_upkeep(run: Run) -> BootstrapEstimate:
    """Return the percentage of the processor time that the process which does the upkeep spent in it."""
    calls, whole = _upkeep(run).calls, _cpu(run).value * run.manifest.events / MILLION
    return known(100 * sum(call.cpu_s for call in calls) / whole, log=False)


def _written_by_upkeep(run: Run) -> BootstrapEstimate:
    """Return the percentage of the written bytes that the process which does the upkeep wrote in it."""
    whole = _written(run).value * run.manifest.events
    return known(100 * sum(call.written_bytes for call in _upkeep(run).calls) / whole, log=False)


def _files(run: Run) -> BootstrapEstimate:
    """Return data and metadata files on disk per million events; both include the uncounted events."""
    footprint, oracle = run.footprint, run.manifest.oracle
    require(footprint.data_files, "no data file is kept")
    return known(footprint.files * MILLION / max(oracle.expected, 1))


def not_once(run: Run) -> BootstrapEstimate:
    """Return the share of events that are missing or present more than once, as counted in this run."""
    oracle = run.manifest.oracle
    require(oracle.applicable, "nothing is stored")
    require(not unfinished(run), LATE)
    return counted_share(oracle.missing + oracle.duplicated, oracle.expected)


def _ages(column: str, word: str, title: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(
            f"{word} {name}", "s", f"{title}: {said}", partial(_age, column=column, probability=probability), LOWER,
            f"{word} {name}", "Events", ("older", "younger"),
        )
        for name, said, probability in (("p50", "median", 0.5), ("p95", "p95", 0.95), ("p99", "p99", 0.99))
    )  # fmt: skip


SEEN_P50, SEEN_P95, SEEN_P99 = _ages("seen_ns", "seen", "Age when a reader sees it")
MADE_P50, MADE_P95, MADE_P99 = _ages("elapsed_ns", "committed", "Age at its commit")
SEEN_MAX = Metric("seen max", "s", "Age when a reader sees it: oldest", _oldest, LOWER)
RATE = Metric("events", "events/s", "Events", _rate, HIGHER)
COMMITS = Metric("commits a second", "commits/s", "Commits", _commits_a_second)
ROWS = Metric("rows a commit", "rows", "Rows a commit: median", _rows_a_commit)
SLOPE = Metric("lag slope", "s/s", "Growth of the lag", _slope, LOWER, signed=True)
CPU = Metric("CPU", "CPU-s", "CPU-seconds, a million events", _cpu, LOWER)
FILES = Metric("files", "files", "Files, a million events", _files, LOWER)
STALL = Metric("stall", "s", "Longest stall of the writer", _stall, LOWER)
LONGEST_CALL = Metric("longest call", "s", "Longest call of upkeep", _longest_call, LOWER)
PEAK = Metric("peak", "MB", "Peak memory of the writer", _peak, LOWER)
UPKEEP_PEAK = Metric("upkeep peak", "MB", "Peak memory in upkeep", _peak_of_upkeep, LOWER)
WRITTEN = Metric("written", "MB", "MB written, a million events", _written, LOWER)
UPKEEP_CPU = Metric("upkeep CPU", "%", "CPU in upkeep, of it", _cpu_of_upkeep, LOWER, signed=True)
UPKEEP_WRITTEN = Metric("upkeep written", "%", "Written in upkeep, of it", _written_by_upkeep, LOWER, signed=True)
WRONG = Metric("not once", "", "Share of events that are not there once", not_once, LOWER, signed=True)

QUANTITIES = MetricSet(
    all=(
        SEEN_P50, SEEN_P95, SEEN_P99, SEEN_MAX, MADE_P50, MADE_P95, MADE_P99, RATE, COMMITS, ROWS, SLOPE, CPU, FILES,
        WRONG, CAPACITY, STALL, LONGEST_CALL, PEAK, UPKEEP_PEAK, WRITTEN, UPKEEP_CPU, UPKEEP_WRITTEN,
    ),
    headline=(SEEN_P50, SEEN_P99, RATE),
    code=("studies/freshness/metrics.py", "studies/freshness/capacity.py", "studies/freshness/record.py"),
)  # fmt: skip


def steady(run_set: RunSet) -> list[Series]:
    """Return the series with one rate, no kills and no upkeep, by system, rate and commit policy."""
    return sorted((each for each in run_set.select() if FreshnessSettings.of(each).is_steady), key=place_of)


def killed(run_set: RunSet, stack: str | None = None) -> list[Series]:
    """Return the series of a stack, by default the first, whose consumer or pipeline was killed."""
    return [each for each in run_set.select(stack=stack) if FreshnessSettings.of(each).kills]


def climbed(run_set: RunSet) -> list[Series]:
    """Return the series whose rate was raised step by step."""
    return [each for each in run_set.select() if FreshnessSettings.of(each).steps]


def alike(series: Sequence[Series]) -> list[Series]:
    """Return those of `series` with the most common rate and commit interval.

    Raises NotAvailable if none has an interval.
    """
    timed = [each for each in series if FreshnessSettings.of(each).rules.interval_ms is not None]
    shapes = [(settings.policy, settings.rate) for settings in map(FreshnessSettings.of, timed)]
    require(shapes, "no system commits by the clock")
    common = max(sorted(set(shapes)), key=lambda shape: (shapes.count(shape), shape[1]))
    return [each for each, shape in zip(timed, shapes, strict=True) if shape == common]


def policy_of(series: Series) -> str:
    """Return the commit policy in words."""
    return FreshnessSettings.of(series).rules.words


def place_of(series: Series) -> tuple[str, int, float, int]:
    """Return the place of a series among others: by system, rate and commit policy."""
    settings = FreshnessSettings.of(series)
    return series.system, settings.rate, float(settings.rules.interval_ms or 0), settings.rules.rows or 0


def costs(measures: Measures) -> Iterator[Age]:
    """Yield the ages of series with one rate and no kills whose tables hold each event once."""
    for series in measures.run_set.series:
        settings = FreshnessSettings.of(series)
        if not settings.is_steady or not series.runs or series.is_null_baseline:
            continue
        with suppress(NotAvailable):
            rows, age = measures.value(ROWS, series).value, measures.value(MADE_P50, series).value
            yield Age(series.system, series.stack, settings.rate, rows, age)
