"""Figures of the part `tail`: p99 against the offered rate, and all quantiles beside those of the closed loop."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

from tidemark.analysis.measures import Absent
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.ingest.tail.quantities import RESPONSE_P99, Times, closed, corrected, responses
from tidemark.studies.ingest.tail.schedule import POISSON
from tidemark.studies.ingest.tail.settings import ONE, cell_of
from tidemark.studies.ingest.tail.tables import in_order, overloaded

RATES_TITLE, QUANTILES_TITLE = "99th percentile of responses against the rate", "Times by quantile, three ways"
LINE = 0.105  # of the picture's height: a line of the legend
BESIDE = 0.5  # percent of the closed loop's rate, from one line to the next
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
LEFT, GAP, HEIGHT, APART, NAME = 0.55, 0.42, 1.45, 0.55, 0.18  # inches; a panel's name stands above it
ACROSS = 3  # panels side by side
WAYS = (
    (responses, "-"),
    (corrected, "--"),
    (closed, ":"),
)
MOST_POINTS = 400  # of a line


def sketches() -> Iterator[Sketch]:
    yield Sketch("ingest-tail", RATES_TITLE, rates, optional=True)
    yield Sketch("ingest-quantiles", QUANTILES_TITLE, quantiles, optional=True)


def rates(studio: Studio) -> Drawn:
    """A line a system and target; overloaded rates hollow, with an arrow: they are lower bounds."""
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(LEFT, 2.35)
    runs: list[Run] = []
    without: dict[str, list[str]] = {}
    percents: set[int] = set()
    lines = _lines(studio)
    for place, line in enumerate(lines):
        beside = BESIDE * (place - (len(lines) - 1) / 2)  # so that intervals do not hide one another
        target, _, arrivals = cell_of(line[0].mode)
        colour, mark = studio.colour(line[0]), MARKS[place % len(MARKS)]
        points: list[tuple[int, Estimate, bool]] = []
        for series in line:
            found = attempt("ms", partial(studio.measures.hot, RESPONSE_P99, series))
            if isinstance(found, Estimate):
                points.append((cell_of(series.mode)[1], found, bool(overloaded(series))))
                runs += list(series.hot_runs)
            else:
                without.setdefault(str(found.reason), []).append(f"{series.title} {series.mode}")
        if not points:
            continue
        percents.update(percent for percent, _, _ in points)
        axes.plot([percent + beside for percent, _, _ in points], [each.value for _, each, _ in points],
                  "-" if target == ONE else "--", color=colour, linewidth=1.1)  # fmt: skip
        for percent, each, is_bound in points:
            if each.low is not None and each.high is not None:
                axes.plot([percent + beside] * 2, [each.low, each.high], color=colour, linewidth=0.9)
            axes.plot(percent + beside, each.value, mark, color=colour, markersize=4,
                      markerfacecolor="white" if is_bound else colour)  # fmt: skip
            if is_bound:
                axes.annotate("", (percent + beside, 1.5 * each.value), (percent + beside, each.value),
                              arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 0.9})  # fmt: skip
        more = [*([] if target == ONE else [target]), *([] if arrivals == POISSON else [arrivals])]
        said = ", ".join([line[0].title, *more])
        axes.plot(1.04, 0.97 - LINE * place, mark, transform=axes.transAxes, color=colour, markersize=4,
                  clip_on=False)  # fmt: skip
        axes.text(1.07, 0.97 - LINE * place, said, transform=axes.transAxes, fontsize=style.SMALL,
                  color=style.ink(colour), va="center")  # fmt: skip
    if not runs:
        raise Absent("no hot run came by a schedule and was long enough for a p99")
    axes.xaxis.set_major_locator(FixedLocator(sorted(percents)))
    axes.xaxis.set_minor_locator(NullLocator())
    _milliseconds(axes)
    axes.set_xlabel("offered rate, percent of the closed loop's")
    axes.set_ylabel("response p99 (ms), log scale")
    notes = [
        "Hot runs; from the intended start to the acknowledgement. Solid: one writer; dashed: a front that gathers. "
        "Hollow with an arrow: overloaded, a lower bound. Bars: 95 % intervals.",
        *(f"Not drawn: {', '.join(which)} ({reason})." for reason, which in without.items()),
    ]
    return studio.finish(made, RATES_TITLE, [*notes, studio.run_set.coverage], runs)


def _lines(studio: Studio) -> list[list[Series]]:
    """Series of one system, target and kind of arrivals, by their rates."""
    found: dict[tuple[str, str, str], list[Series]] = {}
    for series in in_order(studio.run_set):
        if not series.is_harness:
            target, _, arrivals = cell_of(series.mode)
            found.setdefault((series.system, target, arrivals), []).append(series)
    return list(found.values())


def quantiles(studio: Studio) -> Drawn:
    """A panel a system and target, at the highest rate that was worked off; the first hot run."""
    shown = []
    for line in _lines(studio):
        fit = [each for each in line if each.hot_runs and each.hot_runs[0].manifest.oracle.verdict]
        kept = [each for each in fit if not overloaded(each)] or fit
        if kept:
            shown.append(kept[-1])
    if not shown:
        raise Absent("no hot run came by a schedule")
    rows = -(-len(shown) // ACROSS)
    made = style.frame(style.PAGE, rows * (HEIGHT + APART) - APART + NAME)
    wide = (style.PAGE - LEFT - 0.15 - (ACROSS - 1) * GAP) / ACROSS
    for place, series in enumerate(shown):
        column, row = place % ACROSS, rows - 1 - place // ACROSS
        left = LEFT + column * (wide + GAP)
        axes = made.axes(left, style.PAGE - left - wide, bottom=row * (HEIGHT + APART), height=HEIGHT)
        _panel(axes, series, studio.colour(series))
        if column == 0:
            axes.set_ylabel("ms, log scale")
    notes = [
        "First hot run of each system, at the highest rate that was not overloaded (its share of the closed loop's "
        "beside the name); half of all times are below the value at 50 %. Solid: responses by schedule; dotted, dark: "
        "the raw times of the closed loop before it; dashed: these with what HdrHistogram's rule adds to them."
    ]
    return studio.finish(made, QUANTILES_TITLE, [*notes, studio.run_set.coverage], [each.hot_runs[0] for each in shown])


def _panel(axes: Axes, series: Series, colour: str) -> None:
    most = 10.0
    for times, dashes in WAYS:
        beyond, values = _by_quantile(times(series.hot_runs[0]))
        axes.plot(beyond, values, dashes, color=style.INK if times is closed else colour, linewidth=1.1)
        most = max(most, float(beyond[-1]))
    axes.set_xscale("log")
    axes.set_xlim(1, most)
    marks = [mark for mark in (2, 10, 100, 1_000, 10_000, 100_000) if mark <= most]
    axes.set_xticks(marks, [f"{100 * (1 - 1 / mark):.6g} %" for mark in marks])
    axes.xaxis.set_minor_locator(NullLocator())
    _milliseconds(axes)
    target, percent, _ = cell_of(series.mode)
    name = series.title + ("" if target == ONE else f", {target}")
    axes.set_title(f"{name}, {percent} %", fontsize=style.SMALL, color=style.ink(colour), loc="left", pad=3)


def _milliseconds(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid()


def _by_quantile(times: Times) -> tuple[np.ndarray, np.ndarray]:
    """1 / (1 - q), and the order statistic at q in milliseconds; as many points as a line can show."""
    ordered = np.sort(times) / 1e6
    count = len(ordered)
    beyond = np.unique(np.rint(np.geomspace(1, count, MOST_POINTS)).astype(np.int64))[::-1]  # samples from it on
    return count / beyond, ordered[count - beyond]
