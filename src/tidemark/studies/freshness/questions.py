"""Columns of the report's first table: which system suits fresh tables."""

from __future__ import annotations

from tidemark.analysis.quantities import HIGHER, Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.results.report.summary_table import Answering, Asked, Question
from tidemark.runs.runset import Series
from tidemark.studies.freshness.climbs import capacity
from tidemark.studies.freshness.parts import of, policy_of, runs_of
from tidemark.studies.freshness.quantities import CPU, SEEN_P50, SEEN_P99, WRONG
from tidemark.studies.freshness.settings import Policy, shape_of

PERCENT = 100.0
ALIKE_MS = 1000  # commit interval that all systems are measured with


def _alike(asked: Asked) -> Series:
    """Return the series with commits every second at the middle one of its rates, which is the most usual."""
    own = [each for each in asked.series if shape_of(each.mode).is_steady]
    timed = [each for each in own if Policy.parse(shape_of(each.mode).policy).interval_ms == ALIKE_MS]
    ran = sorted((each for each in timed if each.runs), key=lambda each: shape_of(each.mode).rate)
    if not ran:
        raise Absent(own[0].missing() if own else "not measured")
    return ran[len(ran) // 2]


def _answer(quantity: Quantity) -> Answering:
    return lambda asked, _mode: of(asked.measures, quantity, _alike(asked))


def _note(asked: Asked, _mode: str | None) -> str:
    series = _alike(asked)
    return f"{shape_of(series.mode).rate:,} events/s, commits {policy_of(series)}"


def _climbed(asked: Asked) -> Series:
    own = [each for each in asked.series if shape_of(each.mode).steps]
    if not own or not own[0].runs:
        raise Absent(own[0].missing() if own else "its rate was not raised")
    return own[0]


def _capacity(asked: Asked, _mode: str | None) -> Replicates:
    return capacity(runs_of(_climbed(asked))).replicates


def _bound(asked: Asked, _mode: str | None) -> str:
    series = _climbed(asked)
    return f"{'at least; ' if capacity(runs_of(series)).is_least else ''}commits {policy_of(series)}"


def _killed(asked: Asked) -> Series:
    own = [each for each in asked.series if shape_of(each.mode).kills]
    if not own or not own[0].runs:
        raise Absent(own[0].missing() if own else "nothing was killed")
    return own[0]


def _wrong(asked: Asked, _mode: str | None) -> Replicates:
    return of(asked.measures, WRONG, _killed(asked)).scaled(PERCENT)


def _kills(asked: Asked, _mode: str | None) -> str:
    return f"{shape_of(_killed(asked).mode).kills} kills"


QUESTIONS = (
    Question(
        "age-median", "Age when seen", "s", _answer(SEEN_P50), note=_note,
        hint="Median age of an event when a reader that polls the table first counts it, with commits every "
        "second, at the middle one of the rates that were measured.",
        asks="Freshest table, commits every second",
    ),
    Question(
        "age-p99", "Age when seen, p99", "s", _answer(SEEN_P99), note=_note,
        hint="99 of 100 events are younger when they are first seen, in the same series.",
    ),
    Question(
        "age-cpu", "CPU-s, a million events", "CPU-s", _answer(CPU), note=_note,
        hint="Processor time of consumers or pipeline and of the table's servers, in the same series.",
    ),
    Question(
        "capacity", "Events/s it keeps up with", "events/s", _capacity, note=_bound, better=HIGHER,
        hint="The highest rate, doubled step by step, at which the lag does not grow; of several repeats, the lowest.",
        asks="Highest rate that a table keeps up with",
    ),
    Question(
        "once-killed", "Not there once, after kills", "%", _wrong, signed=True, note=_kills,
        hint="Share of events that are not in the table, or more than once, after consumers or pipeline were killed "
        "(SIGKILL) while they arrived.",
        asks="Is each event there once after a kill?", extreme="worst",
        none="No kill of a consumer or a pipeline lost or doubled an event",
    ),
)  # fmt: skip
