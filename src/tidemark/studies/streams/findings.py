"""Findings on the paper's first page: one sentence each, computed from the hot runs and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise

from tidemark.analysis.formatting import listed, number
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.runs.spec import MODES, SINGLE
from tidemark.studies.streams.metrics import FILES_PER_COMMIT, FIRST_WRITE, WRITE_MEDIAN
from tidemark.studies.streams.sentences import WAY, Known, Writer

INSIDE = {mode: f"{way[:1].lower()}{way[1:]}" for mode, way in WAY.items()}


def findings(measures: Measures) -> list[str]:
    """Return the known findings: fastest system per mode, largest slowdown, most files, and cold-start effect."""
    writer = Writer(measures)
    return [found for write in _writers(writer) if (found := _or_nothing(write))]


def _writers(writer: Writer) -> Iterator[Callable[[], str]]:
    for mode in MODES:
        yield partial(_fastest, writer, mode)
    yield partial(_growth_and_files, writer)
    yield partial(_cold, writer)


def _or_nothing(write: Callable[[], str]) -> str:
    try:
        return write()
    except NotAvailable:
        return ""


def _fastest(writer: Writer, mode: str) -> str:
    ranked = writer.ranked(mode)
    first, last = ranked[0], ranked[-1]
    extremes = writer.slower(last, first)
    if not extremes.is_above(1):
        return f"{WAY[mode]}, the slowest system is not distinguishable from the fastest, {first.title}."
    alike = [f"{a.title} and {b.title}" for a, b in pairwise(ranked) if not writer.slower(b, a).is_above(1)]
    neighbours = "every system is distinguishable from the next"
    if alike:
        neighbours = f"{alike[0]} are not distinguishable"
    if len(alike) > 1:
        neighbours = f"these neighbours are not distinguishable: {'; '.join(alike)}"
    return (
        f"{WAY[mode]}, {first.title} has the shortest median write, {first.text}, and {last.title} the longest, "
        f"{number(extremes.value, 3)} times that; {neighbours}."
    )


def _growth_and_files(writer: Writer) -> str:
    grown: list[tuple[Known, str]] = []
    for mode in MODES:
        with suppress(NotAvailable):
            grown += [(known, mode) for known in writer.relative_growth(mode) if known.value.is_above(0)]
    slows = "No system slows down distinguishably as commits add up"
    if grown:
        known, mode = max(grown, key=lambda pair: pair[0].value.value)
        rate = f"its write time grows by {number(known.value.value, 3)} % of the median per 1,000 commits"
        slows = f"{known.title} slows down most: {INSIDE[mode]}, {rate}"
    try:
        most = max(writer.hot(SINGLE, FILES_PER_COMMIT), key=lambda known: known.value.value)
    except NotAvailable:
        return f"{slows}."
    return f"{slows}; {most.title} leaves the most files, {number(most.value.value, 3)} per commit."


def _cold(writer: Writer) -> str:
    longer: list[str] = []
    first: list[Known] = []
    known = False
    for mode in MODES:
        with suppress(NotAvailable):
            effects = writer.known(mode, partial(writer.measures.cold_effect, WRITE_MEDIAN), "x")
            longer += [f"{each.title} {INSIDE[mode]}" for each in effects if each.value.is_above(1)]
            known = True
        with suppress(NotAvailable):
            first += writer.known(mode, partial(writer.measures.cold_start, FIRST_WRITE), "x")
    if not known:
        raise NotAvailable("no series has both a run 0 and a hot run")
    states = " or ".join(sorted({run.state for each in first for run in each.series.cold_runs}))
    median = f"the median write is longer than in hot runs for {listed(longer)}"
    if not longer:
        median = "no median write is distinguishably longer than in hot runs"
    if not first:
        return f"In run 0, {median}."
    most = max(first, key=lambda each: each.value.value)
    return (
        f"In run 0 ({states}), {median}; the first write takes up to {number(most.value.value, 3)} times as long, for "
        f"{most.title}."
    )
