"""Figures of the part `writers`: commits per second, and the share of refused commits, against number of writers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.formatting import MissingCell, attempt
from tidemark.analysis.measures import NotAvailable
from tidemark.analysis.metrics import Metric
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.ingest.metrics import COMMITS, CONFLICTS
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.settings import ONE, OWN, WRITERS, WritersSettings

APART = 0.03  # offset from one system to the next, in doublings of writers
COMMITS_TITLE, CONFLICTS_TITLE = "Commits a second to one table", "Share of commits tried that are refused"


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-commits", COMMITS_TITLE, commits)
    yield FigureSpec("ingest-conflicts", CONFLICTS_TITLE, conflicts)


def commits(context: FigureContext) -> DrawnFigure:
    """Draw commits/s of one table (lines) and of a table per writer (hollow), both axes logarithmic."""
    notes = [
        "Hot runs, closed loop; lines: all writers append to one table; hollow: a table each, which tells contention "
        "for the table from a busy machine. Bars: 95 % intervals. What the load generator can do is in the table "
        "ingest-writers."
    ]
    return _lines(context, COMMITS, COMMITS_TITLE, "commits/s, log scale", notes, log=True)


def conflicts(context: FigureContext) -> DrawnFigure:
    """Draw the share of refused commits to one table, as far as catalog, client or caller report it."""
    notes = [
        "Hot runs; of all commits that were tried on one table, those that were refused because another one came "
        "first. For DuckLake its catalog counts them, for PyIceberg the client; for the others it is what the client's "
        "own retries did not resolve: see the table ingest-outcomes. Bars: 95 % intervals."
    ]
    return _lines(context, CONFLICTS, CONFLICTS_TITLE, "refused (%)", notes, log=False)


def _lines(
    context: FigureContext, quantity: Metric, title: str, what: str, notes: list[str], *, log: bool
) -> DrawnFigure:
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(0.55, 2.35)
    runs: list[Run] = []
    counts: set[int] = set()
    without: dict[str, list[str]] = {}
    factor = 1.0 if log else 100.0
    systems = _by_system(context)
    points: dict[str, list[dict[str, object]]] = {ONE: [], OWN: []}
    for place, series in enumerate(systems):
        beside = 2 ** (APART * (place - (len(systems) - 1) / 2))  # so that intervals do not hide one another
        for each in series:
            given = WritersSettings.of(each)
            tables, writers = given.tables, given.writers
            if tables == OWN and not log:
                continue
            value = attempt("", partial(context.measures.hot, quantity, each))
            if isinstance(value, MissingCell):
                without.setdefault(value.reason, []).append(f"{each.title} {each.mode}")
                continue
            runs += list(each.hot_runs)
            counts.add(writers)
            points[tables] += plots.rows_of(value, factor, system=each.title, writers=beside * writers)
    if not runs:
        raise NotAvailable("there is no hot run")
    for tables, found in points.items():
        if found:
            plots.lines(axes, found, "writers", "value", context.look, joined=tables == ONE, hollow=tables == OWN,
                        legend=tables == ONE or not points[ONE])  # fmt: skip
    plots.legend_beside(axes)
    plots.log_axis(axes, ticks=counts, base=2)
    if log:
        plots.log_axis(axes, "y")
    else:
        axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])  # shows a mark at zero completely
        axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.grid()
    axes.set_xlabel("writers, log scale")
    axes.set_ylabel(what)
    missing = [f"Not drawn: {', '.join(which)} ({reason})." for reason, which in without.items()]
    return context.finish(made, title, [*notes, *missing, context.run_set.coverage], runs)


def _by_system(context: FigureContext) -> list[list[Series]]:
    found: dict[str, list[Series]] = {}
    for series in of_part(context.run_set, WRITERS).select(harness=False):
        found.setdefault(series.system, []).append(series)
    if not found:
        raise NotAvailable("no system was measured")
    return [sorted(each, key=lambda series: WritersSettings.of(series).writers) for each in found.values()]
