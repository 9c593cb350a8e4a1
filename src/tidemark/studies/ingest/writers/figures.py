"""Figures of the study: commits a second, and the share of commits that is refused, against the number of writers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from tidemark.analysis.measures import Absent
from tidemark.analysis.quantities import Quantity
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.ingest.part import of_part
from tidemark.studies.ingest.quantities import COMMITS, CONFLICTS
from tidemark.studies.ingest.writers.settings import ONE, OWN, WRITERS, mode_of

LINE = 0.105  # of the picture's height: a line of the legend
APART = 0.03  # of a doubling of writers, from one system to the next
COMMITS_TITLE, CONFLICTS_TITLE = "Commits a second to one table", "Share of commits tried that are refused"
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def sketches() -> Iterator[Sketch]:
    yield Sketch("ingest-commits", COMMITS_TITLE, commits)
    yield Sketch("ingest-conflicts", CONFLICTS_TITLE, conflicts)


def commits(studio: Studio) -> Drawn:
    """Of one table (lines) and of a table each (hollow), both axes logarithmic."""
    notes = [
        "Hot runs, closed loop; lines: all writers append to one table; hollow: a table each, which tells contention "
        "for the table from a busy machine. Bars: 95 % intervals. What the load generator can do is in the table "
        "ingest-writers."
    ]
    return _lines(studio, COMMITS, COMMITS_TITLE, "commits/s, log scale", notes, log=True)


def conflicts(studio: Studio) -> Drawn:
    """Of one table, as far as catalog, client or caller tell."""
    notes = [
        "Hot runs; of all commits that were tried on one table, those that were refused because another one came "
        "first. For DuckLake its catalog counts them, for PyIceberg the client; for the others it is what the client's "
        "own retries did not resolve: see the table ingest-outcomes. Bars: 95 % intervals."
    ]
    return _lines(studio, CONFLICTS, CONFLICTS_TITLE, "refused (%)", notes, log=False)


def _lines(studio: Studio, quantity: Quantity, title: str, what: str, notes: list[str], *, log: bool) -> Drawn:
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(0.55, 2.35)
    runs: list[Run] = []
    counts: set[int] = set()
    without: dict[str, list[str]] = {}
    factor = 1.0 if log else 100.0
    systems = _by_system(studio)
    for place, series in enumerate(systems):
        colour, mark = studio.colour(series[0]), MARKS[place % len(MARKS)]
        beside = 2 ** (APART * (place - (len(systems) - 1) / 2))  # so that intervals do not hide one another
        for tables in (ONE, OWN) if log else (ONE,):
            points = []
            for each in series:
                if mode_of(each.mode)[0] != tables:
                    continue
                writers = mode_of(each.mode)[1]
                value = attempt("", partial(studio.measures.hot, quantity, each))
                if isinstance(value, Estimate):
                    points.append((writers, value))
                    runs += list(each.hot_runs)
                else:
                    without.setdefault(str(value.reason), []).append(f"{each.title} {each.mode}")
            if not points:
                continue
            counts.update(writers for writers, _ in points)
            values = [factor * value.value for _, value in points]
            axes.plot([beside * writers for writers, _ in points], values, mark if tables == OWN else f"{mark}-",
                      color=colour, linewidth=1.1, markersize=4,
                      markerfacecolor="white" if tables == OWN else colour)  # fmt: skip
            for writers, value in points:
                if value.low is not None and value.high is not None:
                    ends = [factor * value.low, factor * value.high]
                    axes.plot([beside * writers] * 2, ends, color=colour, linewidth=0.9)
        axes.plot(1.04, 0.97 - LINE * place, mark, transform=axes.transAxes, color=colour, markersize=4,
                  clip_on=False)  # fmt: skip
        axes.text(1.07, 0.97 - LINE * place, series[0].title, transform=axes.transAxes, fontsize=style.SMALL,
                  color=style.ink(colour), va="center")  # fmt: skip
    if not runs:
        raise Absent("there is no hot run")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(sorted(counts)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(plots.plain_ticks())
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.grid()
    axes.set_xlabel("writers, log scale")
    axes.set_ylabel(what)
    missing = [f"Not drawn: {', '.join(which)} ({reason})." for reason, which in without.items()]
    return studio.finish(made, title, [*notes, *missing, studio.run_set.coverage], runs)


def _by_system(studio: Studio) -> list[list[Series]]:
    found: dict[str, list[Series]] = {}
    for series in of_part(studio.run_set, WRITERS).select(harness=False):
        found.setdefault(series.system, []).append(series)
    if not found:
        raise Absent("no system was measured")
    return [sorted(each, key=lambda series: mode_of(series.mode)[1]) for each in found.values()]
