"""Figures of the part `tail`: p99 against the offered rate, and all quantiles next to those of the closed loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns

from tidemark.analysis.formatting import MissingCell, attempt
from tidemark.analysis.measures import NotAvailable
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec, Look
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.ingest.load.schedule import POISSON
from tidemark.studies.ingest.open_loop.metrics import RESPONSE_P99, Times, closed, corrected, responses
from tidemark.studies.ingest.open_loop.results import in_order, overloaded
from tidemark.studies.ingest.settings import ONE, TailSettings

RATES_TITLE, QUANTILES_TITLE = "99th percentile of responses against the rate", "Times by quantile, three ways"
BESIDE = 0.5  # offset from one line to the next, in percent of the closed loop's rate
LEFT = 0.55  # inches
ACROSS = 3  # panels side by side
WAYS = {"by schedule": responses, "corrected": corrected, "closed loop": closed}
MOST_POINTS = 400  # per line


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-tail", RATES_TITLE, rates, optional=True)
    yield FigureSpec("ingest-quantiles", QUANTILES_TITLE, quantiles, optional=True)


def rates(context: FigureContext) -> DrawnFigure:
    """Draw a line per system and target; overloaded rates are hollow with an arrow, since they are lower bounds."""
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(LEFT, 2.35)
    runs: list[Run] = []
    without: dict[str, list[str]] = {}
    percents: set[int] = set()
    found = _lines(context)
    points: list[dict[str, object]] = []
    bounds: list[dict[str, object]] = []  # points that are lower bounds
    look, dashes = Look({}, {}), {}
    for place, line in enumerate(found):
        given = TailSettings.of(line[0])
        target, arrivals = given.target, given.arrivals
        more = [*([] if target == ONE else [target]), *([] if arrivals == POISSON else [arrivals])]
        name = ", ".join([line[0].title, *more])
        look.colours[name], look.shapes[name] = context.colour(line[0]), context.look.shapes[line[0].title]
        dashes[name] = "" if target == ONE else (3, 2)
        for series in line:
            value = attempt("ms", partial(context.measures.hot, RESPONSE_P99, series))
            if isinstance(value, MissingCell):
                without.setdefault(value.reason, []).append(f"{series.title} {series.mode}")
                continue
            percents.add(percent := TailSettings.of(series).percent)
            x = percent + BESIDE * (place - (len(found) - 1) / 2)  # so that intervals do not hide one another
            points += (rows := plots.rows_of(value, system=name, percent=x))
            runs += list(series.hot_runs)
            if overloaded(series):
                bounds += rows
                axes.annotate("", (x, 1.5 * value.value), (x, value.value),
                              arrowprops={"arrowstyle": "->", "color": style.ink(look.colours[name])})  # fmt: skip
    if not runs:
        raise NotAvailable("no hot run came by a schedule and was long enough for a p99")
    plots.lines(axes, points, "percent", "value", look, legend=True, dashes=dashes)
    plots.legend_beside(axes)
    if bounds:
        plots.lines(axes, bounds, "percent", "value", look, joined=False, hollow=True)
    axes.set_xticks(sorted(percents))
    plots.log_axis(axes, "y")
    axes.grid()
    axes.set_xlabel("offered rate, percent of the closed loop's")
    axes.set_ylabel("response p99 (ms), log scale")
    notes = [
        "Hot runs; from the intended start to the acknowledgement. Solid: one writer; dashed: a front that gathers. "
        "Hollow with an arrow: overloaded, a lower bound. Bars: 95 % intervals.",
        *(f"Not drawn: {', '.join(which)} ({reason})." for reason, which in without.items()),
    ]
    return context.finish(made, RATES_TITLE, [*notes, context.run_set.coverage], runs)


def _lines(context: FigureContext) -> list[list[Series]]:
    """Return a list of series, by rate, for each system, target and kind of arrivals."""
    found: dict[tuple[str, str, str], list[Series]] = {}
    for series in in_order(context.run_set):
        if not series.is_null_baseline:
            given = TailSettings.of(series)
            found.setdefault((series.system, given.target, given.arrivals), []).append(series)
    return list(found.values())


def quantiles(context: FigureContext) -> DrawnFigure:
    """Draw a panel per system and target, of the first hot run at the highest rate without overload."""
    shown = []
    for line in _lines(context):
        fit = [each for each in line if each.hot_runs and each.hot_runs[0].manifest.oracle.verdict]
        kept = [each for each in fit if not overloaded(each)] or fit
        if kept:
            shown.append(kept[-1])
    if not shown:
        raise NotAvailable("no hot run came by a schedule")
    columns = min(ACROSS, len(shown))
    frame = pd.concat([_curves(series, place) for place, series in enumerate(shown)])
    grid = sns.FacetGrid(frame, col="panel", col_wrap=columns, sharex=False, sharey=False, height=1)
    made = style.tiled(grid.figure, list(grid.axes.flat), columns, tall=1.45, gap=0.55, left=0.55)
    for place, (series, axes) in enumerate(zip(shown, grid.axes.flat, strict=True)):
        part, colour = frame[frame["panel"] == place], style.ink(context.colour(series))
        sns.lineplot(part, x="beyond", y="ms", hue="way", style="way", hue_order=list(WAYS), style_order=list(WAYS),
                     palette=[colour, colour, style.INK], dashes=["", (3, 2), (1, 1)], estimator=None, legend=False,
                     ax=axes)  # fmt: skip
        most = max(10.0, float(part["beyond"].max()))
        marks = [mark for mark in (2, 10, 100, 1_000, 10_000, 100_000) if mark <= most]
        plots.log_axis(axes, ticks=marks)
        axes.set_xlim(1, most)
        axes.set_xticks(marks, [f"{100 * (1 - 1 / mark):.6g} %" for mark in marks])
        plots.log_axis(axes, "y")
        axes.grid()
        axes.set(xlabel="", ylabel="" if place % columns else "ms, log scale", title="")
        given = TailSettings.of(series)
        name = series.title + ("" if given.target == ONE else f", {given.target}")
        axes.set_title(f"{name}, {given.percent} %", fontsize=style.SMALL, color=colour, loc="left", pad=3)
    notes = [
        "First hot run of each system, at the highest rate that was not overloaded (its share of the closed loop's "
        "next to the name); half of all times are below the value at 50 %. Solid: responses by schedule; dotted, dark: "
        "the raw times of the closed loop before it; dashed: these with what HdrHistogram's rule adds to them."
    ]
    return context.finish(
        made, QUANTILES_TITLE, [*notes, context.run_set.coverage], [each.hot_runs[0] for each in shown]
    )


def _curves(series: Series, panel: int) -> pd.DataFrame:
    """Return the times of a series' first hot run by quantile, measured in each of the ways."""
    found = {way: _by_quantile(times(series.hot_runs[0])) for way, times in WAYS.items()}
    each = [pd.DataFrame({"panel": panel, "way": way, "beyond": x, "ms": y}) for way, (x, y) in found.items()]
    return pd.concat(each, ignore_index=True)


def _by_quantile(times: Times) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / (1 - q) and the order statistic at q in milliseconds, for at most MOST_POINTS points."""
    ordered = np.sort(times) / 1e6
    count = len(ordered)
    beyond = np.unique(np.rint(np.geomspace(1, count, MOST_POINTS)).astype(np.int64))[::-1]  # samples from the point on
    return count / beyond, ordered[count - beyond]
