"""Figures of the study: response times by catalog, their tails, and rates by number of users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.text_blocks import valued
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.tables.table import notes_of
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import all_hot_runs, by_system
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


def _by_system(context: FigureContext) -> list[list[Series]]:
    return by_system(require(context.run_set.select(), "no catalog was measured"), users_of)


def response(context: FigureContext, sort: Sort) -> DrawnFigure:
    """Draw the medians with one user (filled) and with the most users (hollow)."""
    rows = []
    runs = []
    for found in _by_system(context):
        ends = (found[0], found[-1]) if len(found) > 1 else found
        median = partial(context.measures.hot, sort.median)
        points = [plots.point(median, each, filled=each is found[0], where=f"{each.mode}: ") for each in ends]
        runs += all_hot_runs(ends)
        rows.append((found[0].title, points))
    require(runs, "there is no hot run")
    made = plots.dots(context, rows, "median response (ms)", log=True)
    modes = sorted({users_of(series) for series in context.run_set.select()})
    notes = [*NOTES("catalog-response", few=modes[0], many=modes[-1]), context.run_set.coverage]
    return context.finish(made, f"{sort.title}: median response", notes, runs)


def tail(context: FigureContext, sort: Sort) -> DrawnFigure:
    """Draw the share of responses that took longer than a given time, with the most users; both axes logarithmic."""
    made, axes = style.single(style.COLUMN, 2.1, 0.5, 1.1)
    runs: list[Run] = []
    samples = {}
    for found in _by_system(context):
        series, times = found[-1], []
        for run in series.hot_runs:
            with suppress(NotAvailable):
                times.append(response_ms(run, sort))
        if sum(map(len, times)) >= FEWEST:
            samples[series.title] = np.concatenate(times)
            runs += series.hot_runs
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
    made, axes = style.single(style.COLUMN, 2.1, 0.5, 1.1)
    every = [series for found in _by_system(context) for series in found]
    drawn = valued(partial(context.measures.hot, CREATE_TABLE.rate), every)
    runs = require(all_hot_runs(series for series, _ in drawn), "there is no hot run")
    points = [row for each, rate in drawn for row in plots.rows_of(rate, system=each.title, users=users_of(each))]
    plots.lines(axes, points, "users", "value", context.look, legend=True)
    plots.legend_beside(axes)
    users = {users_of(series) for series in context.run_set.select()}
    plots.log_axes(axes, "users, log scale", "tables a second, log scale", users)
    notes = [*NOTES("catalog-rates"), context.run_set.coverage]
    return context.finish(made, "Tables created in a second, by users", notes, runs)
