"""Tables of climbs: the rate that each table still keeps up with, and every step up to it and beyond."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.quantities import Absent
from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.runset import Series
from tidemark.studies.freshness.climbs import (
    AGE_P50,
    AGE_P95,
    CAPACITY,
    MILLION,
    STEP_CPU,
    STEP_FILES,
    UNKNOWN,
    Capacity,
    Step,
    capacity,
    steps,
    why_no_cpu,
)
from tidemark.studies.freshness.parts import climbed, of, policy_of, runs_of
from tidemark.studies.freshness.settings import shape_of

HEAD = (SYSTEM, Column("policy", "Commits"), Column("encoding", "Encoding"))
OF_STEP = {"seen_p50": AGE_P50, "seen_p95": AGE_P95, "cpu": STEP_CPU, "files": STEP_FILES}
WHOLE = (
    *HEAD, Column("capacity", CAPACITY.title, CAPACITY.unit),
    *(Column(key, each.title, each.unit, interval=True) for key, each in OF_STEP.items()),
    Column("bound", "It is"), Column("ended", "The next step"),
)  # fmt: skip
STEPS = (
    *HEAD, Column("rate", "Events due", "events/s"), Column("events", "Events"), Column("verdict", "Lag"),
    Column("slope", "Growth of the lag", "s/s", interval=True), Column("lag", "Lag at its end", "s"),
    Column("late", "Sent late, worst", "s"), Column("cpu", "CPU-seconds, a million events", "CPU-s"),
    Column("files", "Files, a million events", "files"),
)  # fmt: skip
LEAST, EXACT = "a lower bound", "within a factor of 2"
NOTES = (
    "Events are due at a rate that is doubled step by step, without a pause; ages are counted from the schedule. "
    "Capacity: the highest rate whose lag does not grow, before the first step in which it does (the interval of its "
    "slope lies above 0, or the oldest unseen event is older than a commit's interval and half of the "
    "step). A step with too few commits to judge is no capacity and ends no climb. Growth of the lag: of commits that "
    "lie in the step. Of a series that was measured again, capacity is what all repeats keep up with.",
    "Ages, processor time and files are those of that step. Where the producer was late, or there was no further step, "
    "the table may keep up with more. Producer and broker share the machine's processors with consumers or pipeline.",
)


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield tables freshness-capacity and freshness-steps."""
    series = climbed(workshop.run_set)
    runs = [run for each in series for run in runs_of(each)]
    rows = [[*_head(each), *_whole(workshop, each)] for each in series]
    yield workshop.table("freshness-capacity", "At which rate the lag does not grow", WHOLE, rows, runs, NOTES)
    lines = [[*_head(each), *line] for each in series for line in _lines(each)]
    yield workshop.table("freshness-steps", "The lag at each rate of a climb", STEPS, lines, runs, NOTES)


def _head(series: Series) -> list[Cell]:
    return [series.title, policy_of(series), shape_of(series.mode).encoding]


def _whole(workshop: Workshop, series: Series) -> list[Cell]:
    if not series.runs:
        return [Missing(series.missing())] * (len(WHOLE) - len(HEAD))
    try:
        most = capacity(runs_of(series))
    except Absent as absent:
        return [Missing(str(absent))] * (len(WHOLE) - len(HEAD))
    quantities = [each.at(most.rate) for each in OF_STEP.values()]
    values = [attempt(each.unit, partial(of, workshop.measures, each, series)) for each in quantities]
    return [most.rate, *values, *ending(most)]


def ending(most: Capacity) -> list[Cell]:
    """Return whether the capacity is a lower bound, and the verdict on the next step."""
    following = most.following
    if following is None:
        return [LEAST, "there was none"]
    return [LEAST if most.is_least else EXACT, f"{following.rate:,} events/s: {following.verdict}"]


def _lines(series: Series) -> Iterator[list[Cell]]:
    if not series.runs:
        yield [Missing(series.missing())] * (len(STEPS) - len(HEAD))
    for run in runs_of(series):
        try:
            for step in steps(run):
                yield line(step, why_no_cpu(run))
        except Absent as absent:
            yield [Missing(str(absent))] * (len(STEPS) - len(HEAD))


def line(step: Step, unseen: str | None) -> list[Cell]:
    """Return the cells from the rate on."""
    scale = MILLION / step.events
    return [
        step.rate,
        step.events,
        step.verdict,
        step.growth or Missing(UNKNOWN),
        step.lag_s,
        step.latest_s,
        step.cpu_s * scale if step.cpu_s > 0 and not unseen else Missing(unseen or "none was seen"),
        step.files * scale if step.files > 0 else Missing("no file was counted"),
    ]
