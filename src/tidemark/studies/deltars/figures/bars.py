"""The figures of the study: the thesis's bars with its values as marks, and writes by the closes that were refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from tidemark.analysis.measures import Absent
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import fewest_cores, in_order, of, tables_of
from tidemark.studies.deltars.quantities import MEANS, of_operation, times
from tidemark.studies.deltars.settings import shape_of
from tidemark.studies.deltars.window.samples import READ, WRITE

TITLES = {WRITE: "Writing a whole table", READ: "Reading a whole table"}
CLOSES = "What HDFS refuses to close, writes wait for"
GHOSTS = {published.HOPSFS: "D", published.LOCAL: "s", published.LEGACY: "^"}
LINE = 0.075  # of the picture's height: a line of the legend


def sketches() -> Iterator[Sketch]:
    for operation, title in TITLES.items():
        yield Sketch(f"deltars-{operation}", title, partial(bars, operation=operation))
    yield Sketch("deltars-closes", CLOSES, closes)


def bars(studio: Studio, operation: str) -> Drawn:
    """Means with intervals, a group of bars a table, seconds on a logarithmic axis; what the thesis prints as marks."""
    cores = fewest_cores(studio.run_set)
    chosen = [each for each in in_order(studio.run_set) if shape_of(each.mode)[1] == cores and not each.is_harness]
    tables = tables_of(studio.run_set)
    systems = list(dict.fromkeys(each.system for each in chosen))
    made = style.frame(style.PAGE, 2.4)
    axes = made.axes(0.6, 1.9)
    width = 0.8 / max(len(systems), 1)
    runs: list[Run] = []
    titles: dict[str, Series] = {}
    for series in chosen:
        titles.setdefault(series.system, series)
        data = shape_of(series.mode)[0]
        mean = attempt("s", partial(of, studio.measures, MEANS[operation], series))
        if not isinstance(mean, Estimate):
            continue
        runs += series.runs
        x = tables.index(data) - 0.4 + width * (systems.index(series.system) + 0.5)
        axes.bar(x, mean.value, 0.9 * width, color=studio.colour(series), alpha=0.9)
        if mean.low is not None and mean.high is not None:
            axes.plot([x, x], [mean.low, mean.high], color=style.INK, linewidth=0.8)
    if not runs:
        raise Absent("no run has a time")
    for pipeline, mark in GHOSTS.items():
        pairs = [(place, published.printed(operation, pipeline, data, cores)) for place, data in enumerate(tables)]
        known = [(place, each.mean) for place, each in pairs if each is not None]
        axes.plot([x for x, _ in known], [y for _, y in known], mark, color=style.FAINT, markersize=4,
                  markerfacecolor="white")  # fmt: skip
    _log_seconds(axes)
    axes.set_xticks(range(len(tables)), [published.WORDS.get(data, data) for data in tables])
    axes.set_xlabel("rows")
    axes.set_ylabel(f"{operation}, mean (s), log scale")
    axes.grid(axis="y")
    legend = [("s", studio.colour(series), style.few_lines(series.title), True) for series in titles.values()]
    legend += [(mark, style.FAINT, published.TITLES[pipeline].replace(" (", "\n("), False)
               for pipeline, mark in GHOSTS.items()]  # fmt: skip
    for place, (mark, colour, words, is_filled) in enumerate(legend):
        y = 0.97 - LINE * 1.6 * place
        axes.plot(1.04, y, mark, transform=axes.transAxes, color=colour, markersize=4, clip_on=False,
                  markerfacecolor=colour if is_filled else "none")  # fmt: skip
        axes.text(1.07, y, words, transform=axes.transAxes, fontsize=style.SMALL, color=style.ink(colour), va="center")
    notes = [
        f"Clients with {cores} processor{'s' if cores > 1 else ''}. Hollow marks: the thesis's means of 50, on its own "
        "machine and HopsFS. 10K to 1M rows are of TPC-H's suppliers, 6M and 60M are lineitems, which are wider.",
        studio.run_set.coverage,
    ]
    return studio.finish(made, TITLES[operation], notes, runs)


def _log_seconds(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.yaxis.set_minor_formatter(NullFormatter())


def closes(studio: Studio) -> Drawn:
    """Every write to HDFS by the times that its client was told to ask again."""
    of_delta_rs = [each for each in in_order(studio.run_set) if published.HEIRS.get(each.system) == published.HOPSFS]
    chosen = [each for each in of_delta_rs if any(run.column("closed").any() for run in each.runs)]
    if not chosen:
        raise Absent("no run closed a file of HDFS")
    made = style.frame(style.COLUMN, 2.0)
    axes = made.axes(0.5, 0.1)
    tables = tables_of(studio.run_set)
    colours = style.colours(tables)
    runs: list[Run] = []
    jitter = np.random.default_rng(0)
    for series in chosen:
        data = shape_of(series.mode)[0]
        for run in series.runs:
            refused = of_operation(run, WRITE, "refused")
            x = refused + jitter.uniform(-0.3, 0.3, len(refused))
            axes.plot(x, times(run, WRITE), ".", color=colours[data],
                      markersize=3, alpha=0.7)  # fmt: skip
            runs.append(run)
    for place, data in enumerate(tables):
        axes.text(0.02, 0.95 - LINE * place, f"{published.WORDS.get(data, data)} rows", transform=axes.transAxes,
                  fontsize=style.SMALL, color=style.ink(colours[data]), va="top")  # fmt: skip
    _log_seconds(axes)
    most = max(int(of_operation(run, WRITE, "refused").max()) for run in runs)
    axes.set_xlim(-0.5, most + 0.5)
    axes.set_xticks(range(most + 1))
    axes.grid(axis="y")
    axes.set_xlabel("closes refused in the write")
    axes.set_ylabel("write (s), log scale")
    notes = ["A point is a write by delta-rs to HDFS. A refused close is asked for again after half a second, or more."]
    return studio.finish(made, CLOSES, notes, runs)
