"""Figures of the study: response times by catalog, their tails, and rates by number of users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from tidemark.analysis.formatting import MissingCell, attempt
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.statistics import Estimate
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.tables.table import notes_of
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.catalogs.metrics import CREATE_TABLE, CREATING, MIXES, READ, UPDATE, Sort, response_ms
from tidemark.studies.catalogs.record import users_of

NOTES = notes_of(__file__)
SHOWN = (*CREATING, READ, UPDATE)
TAILS = MIXES[:2]  # half reads, half writes, in an open loop
FEWEST = 20  # responses required to draw a distribution


def figure_specs() -> Iterator[FigureSpec]:
    for sort in SHOWN:
        name = f"catalog-{sort.name.replace(' ', '-')}"
        yield FigureSpec(name, f"{sort.title}: median response", partial(response, sort=sort))
    yield FigureSpec("catalog-rates", "Tables created in a second, by users", rates)
    for sort in TAILS:
        yield FigureSpec(f"catalog-tail-{sort.name.split()[-1]}s", f"{sort.title}: responses", partial(tail, sort=sort))


def _by_system(context: FigureContext) -> dict[str, list[Series]]:
    found: dict[str, list[Series]] = {}
    for series in context.run_set.select():
        found.setdefault(series.system, []).append(series)
    require(found, "no catalog was measured")
    return {name: sorted(each, key=users_of) for name, each in found.items()}


def response(context: FigureContext, sort: Sort) -> DrawnFigure:
    """Draw the medians with one user (filled) and with the most users (hollow)."""
    rows = []
    runs = []
    for found in _by_system(context).values():
        points: list[plots.Point] = []
        for series in (found[0], found[-1]) if len(found) > 1 else found:
            value = attempt("ms", partial(context.measures.hot, sort.median, series))
            text = f"{series.mode}: {value.reason}" if isinstance(value, MissingCell) else value
            points.append((text, series, series is found[0]))
            runs += list(series.hot_runs)
        rows.append((found[0].title, points))
    require(runs, "there is no hot run")
    made = plots.dots(context, rows, "median response (ms)", log=True)
    modes = sorted({users_of(series) for series in context.run_set.select()})
    notes = [*NOTES("catalog-response", few=modes[0], many=modes[-1]), context.run_set.coverage]
    return context.finish(made, f"{sort.title}: median response", notes, runs)


def tail(context: FigureContext, sort: Sort) -> DrawnFigure:
    """Draw the share of responses that took longer than a given time, with the most users; both axes logarithmic."""
    made = style.frame(style.COLUMN, 2.1)
    axes = made.axes(0.5, 1.1)
    runs: list[Run] = []
    samples = {}
    for found in _by_system(context).values():
        series, times = found[-1], []
        for run in series.hot_runs:
            with suppress(NotAvailable):
                times.append(response_ms(run, sort))
        if sum(map(len, times)) < FEWEST:
            continue
        samples[series.title] = np.concatenate(times)
        runs += list(series.hot_runs)
    require(runs, f"no catalog answered {FEWEST} such requests")
    plots.tails(axes, samples, context.look, legend=True)
    plots.legend_beside(axes)
    axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.grid()
    axes.set(xlabel="response (ms), log scale", ylabel="share that took longer, log scale")
    users = max(users_of(series) for series in context.run_set.select())
    notes = [*NOTES("catalog-tail", users=users), context.run_set.coverage]
    return context.finish(made, f"{sort.title}: responses", notes, runs)


def rates(context: FigureContext) -> DrawnFigure:
    """Draw requests per second by number of users; both axes logarithmic."""
    made = style.frame(style.COLUMN, 2.1)
    axes = made.axes(0.5, 1.1)
    runs: list[Run] = []
    points: list[dict[str, object]] = []
    for found in _by_system(context).values():
        for series in found:
            value = attempt("", partial(context.measures.hot, CREATE_TABLE.rate, series))
            if isinstance(value, Estimate):
                points += plots.rows_of(value, system=series.title, users=users_of(series))
                runs += list(series.hot_runs)
    require(runs, "there is no hot run")
    plots.lines(axes, points, "users", "value", context.look, legend=True)
    plots.legend_beside(axes)
    plots.log_axis(axes, ticks={users_of(series) for series in context.run_set.select()})
    plots.log_axis(axes, "y")
    axes.grid()
    axes.set(xlabel="users, log scale", ylabel="tables a second, log scale")
    notes = [*NOTES("catalog-rates"), context.run_set.coverage]
    return context.finish(made, "Tables created in a second, by users", notes, runs)
