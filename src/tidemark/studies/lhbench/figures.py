"""Figures of the study: loads and queries as the paper draws them, refreshes by stage, merges by size, many files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from tidemark.analysis.formatting import attempt
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import Estimate
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.tables.table import notes_of
from tidemark.runs.runset import Series
from tidemark.runs.views import all_runs
from tidemark.studies.lhbench import metrics, published
from tidemark.studies.lhbench.published import reading
from tidemark.studies.lhbench.record import DataRecord
from tidemark.studies.lhbench.script import SELECTIVE
from tidemark.studies.lhbench.settings import FILES, LOAD, MERGE, REFRESH, MergeSettings, settings_of

NOTES = notes_of(__file__)
ONE, SECOND, TWO, THREE, FILES_TITLE, AXIS = (
    "Loads and queries",
    "The same queries of the same tables, by two engines",
    "Refreshes and queries, stage by stage",
    "One merge, from few rows to many",
    "What a query costs before it reads many files",
    "Figure 3 of the paper: what files touched explain",
)
ROW, LEFT = 0.2, 1.3  # inches
OF_LOAD = (metrics.LOADING, metrics.TOTAL, *metrics.FOUR)
BY_ENGINE = (metrics.TOTAL, metrics.LOADED_TABLES)
NAMES = {
    metrics.LOADING: "load (s)",
    metrics.TOTAL: "queries (s)",
    metrics.MERGING: "a refresh (s)",
    metrics.QUERIES_AFTER: "queries after (s)",
    metrics.COMPACTING: "compaction (s)",
    metrics.LOADED_TABLES: "the same by DuckDB (s)",
    metrics.QUERIES_COMPACTED: "queries, compacted (s)",
}

TALL, GAP, SIDE, BELOW, HEAD = 1.35, 0.28, 0.55, 0.5, 0.2  # inches, of the figure on many files
WIDE = 0.8  # width of a group of bars
PALE = 0.45  # opacity of execution, stacked on startup in the same colour


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("lhb-load-and-queries", ONE, partial(stages, part=LOAD, title=ONE, asked=OF_LOAD))
    yield FigureSpec("lhb-second-engine", SECOND, partial(stages, part=LOAD, title=SECOND, asked=BY_ENGINE))
    yield FigureSpec("lhb-refresh", TWO, partial(stages, part=REFRESH, title=TWO, asked=metrics.OF_REFRESH))
    yield FigureSpec("lhb-merges", THREE, merges)
    yield FigureSpec("lhb-files", FILES_TITLE, files)
    yield FigureSpec("lhb-axis", AXIS, axis)


def stages(context: FigureContext, part: str, title: str, asked: Sequence[Metric]) -> DrawnFigure:
    """Draw a panel per quantity with a row per system: a dot with its interval, on an axis from zero."""
    planned = metrics.largest(metrics.in_part(context.run_set, part))
    series = [each for each in planned if each.runs]
    runs = all_runs(series)
    if not runs:
        raise NotAvailable(planned[0].missing() if planned else f"the part '{part}' was not measured")
    every = [
        (what, [attempt(what.unit, partial(context.measures.value, what, each)) for each in series]) for what in asked
    ]
    shown = [(what, cells) for what, cells in every if any(isinstance(each, Estimate) for each in cells)]
    require(shown, "no run has its times")
    across = min(len(shown), 3)
    grid = sns.FacetGrid(pd.DataFrame({"what": [what.name for what, _ in shown]}), col="what", col_wrap=across,
                         sharex=False, height=1)  # fmt: skip
    made = style.tiled(grid.figure, list(grid.axes.flat), across, tall=ROW * len(series), gap=0.55, left=0.1,
                       between=0.12, above=0.0, first=LEFT)  # fmt: skip
    for place, ((what, cells), axes) in enumerate(zip(shown, grid.axes.flat, strict=True)):
        rows = [
            row for line, (each, cell) in enumerate(zip(series, cells, strict=True)) if isinstance(cell, Estimate)
            for row in plots.rows_of(cell, system=each.title, row=line)
        ]  # fmt: skip
        plots.lines(axes, rows, "value", "row", context.look, orient="y", joined=False)
        plots.titles(axes, [each.title for each in series])
        axes.tick_params(axis="y", labelleft=not place % across)
        axes.set(title="", xlabel=NAMES.get(what, f"{what.name} (s)"), xlim=(0, None))
    without = [each.title for each in planned if not each.runs]
    notes = [
        "Dots with 95 % intervals where there are repeats; scales differ and start at zero.",
        context.run_set.coverage,
    ]
    notes += [f"Not measured: {', '.join(without)}."] if without else []
    return context.finish(made, title, notes, runs)


def merges(context: FigureContext) -> DrawnFigure:
    """Draw merge time (left) and the slowdown of queries after it (right) against updates per file (log scale)."""
    series = metrics.measured_in(context.run_set, MERGE)
    made = style.frame(style.PAGE, 2.2)
    panels = made.pair(0.55, 0.6, 1.5)
    measured = ((metrics.merging, "merge (s)"), (metrics.slowdown, "queries after over before"))
    for axes, (how, what) in zip(panels, measured, strict=True):
        points = []
        for each in series:
            for size in sorted(int(size) for size, _ in each.runs[0].record(DataRecord).data.sets):
                cell = attempt("", partial(context.measures.value, how(size), each))
                if isinstance(cell, Estimate):
                    points += plots.rows_of(cell, system=each.title, share=size / MergeSettings.of(each).files)
        if points:
            plots.lines(axes, points, "share", "value", context.look, legend=axes is panels[1])
            plots.log_axis(axes)
        axes.grid()
        axes.set(xlabel="updates a file, log scale", ylabel=what, ylim=(0, None))
    if panels[1].legend_:
        plots.legend_beside(panels[1])
    notes = [
        "As many new rows as updates; each size on a fresh table. Lines: 95 % intervals.",
        context.run_set.coverage,
    ]
    return context.finish(made, THREE, notes, all_runs(series))


def axis(context: FigureContext) -> DrawnFigure:
    """Draw the paper's copy-on-write times by the share of files touched, for labels as printed and a hundredth."""
    made, axes = style.single(style.COLUMN, 2.1, 0.6, 0.15)
    frames = []
    for factor, label in ((1, "labels as printed"), (published.LABELLED, f"a {published.LABELLED}th of the labels")):
        told = reading(factor)
        frames.append(pd.DataFrame({"share": 100 * np.array(told.shares), "s": told.times_s, "read": label}))
    sns.lineplot(x=[0.0, 100.0], y=[told.fixed_s, told.fixed_s + told.whole_s], color=style.FAINT, ax=axes)
    sns.scatterplot(pd.concat(frames), x="share", y="s", hue="read", style="read", markers=["s", "o"],
                    palette=["white", style.INK], edgecolor=style.INK, s=18, ax=axes)  # fmt: skip
    axes.legend(title=None)
    axes.set(xlabel="files touched (%)", ylabel="merge, copying files (s)", ylim=(0, None))
    axes.grid()
    return context.finish(made, AXIS, NOTES("lhb-axis", fixed=told.fixed_s, whole=told.whole_s), ())


def files(context: FigureContext) -> DrawnFigure:
    """Draw a panel per query, measured above and the paper's below: startup in full colour, execution on top of it."""
    series = metrics.measured_in(context.run_set, FILES)
    made = style.frame(style.PAGE, 2 * TALL + BELOW + HEAD)
    wide = (style.PAGE - SIDE - 2 * GAP) / 3
    colours = {each.system: context.colour(each) for each in series}
    titles = {each.system: each.title for each in series}
    for place, query in enumerate(SELECTIVE):
        left = SIDE + place * (wide + GAP)
        right = style.PAGE - left - wide
        ours, theirs = made.axes(left, right, TALL + BELOW, TALL), made.axes(left, right, 0, TALL)
        _groups(ours, _measured(context, series, query), colours)
        shades = {name: colours.get(system, style.INK) for name, system in published.LIKE.items()}
        _groups(theirs, _printed(query), shades)
        ours.set_title(f"filter: {query}", fontsize=style.SMALL)
        theirs.set_xlabel("files")
        if not place:
            ours.set_ylabel("measured (ms)")
            theirs.set_ylabel("the paper (ms)")
            for line, (system, title) in enumerate(titles.items()):
                theirs.text(0.04, 0.94 - 0.1 * line, title, transform=theirs.transAxes, fontsize=style.SMALL,
                            color=style.ink(colours[system]), va="top")  # fmt: skip
    notes = [*NOTES("lhb-files-figure"), context.run_set.coverage]
    return context.finish(made, FILES_TITLE, notes, all_runs(series))


type Bars = Mapping[int, Mapping[str, tuple[Estimate | None, float]]]  # by files and system: startup and total, in s


def _measured(context: FigureContext, series: Sequence[Series], query: str) -> Bars:
    startup, _, whole, _ = metrics.OF_FILES[query]
    bars: dict[int, dict[str, tuple[Estimate | None, float]]] = {}
    for each in series:
        first, total = (attempt("s", partial(context.measures.value, what, each)) for what in (startup, whole))
        if isinstance(total, Estimate):
            of_files = bars.setdefault(int(settings_of(each).size), {})
            of_files[each.system] = (first if isinstance(first, Estimate) else None, total.value)
    return dict(sorted(bars.items()))


def _printed(query: str) -> Bars:
    bars: dict[int, dict[str, tuple[Estimate | None, float]]] = {}
    for system in published.LIKE:
        totals = dict(published.along(4, f"{query} total", system))
        for number, value in published.along(4, f"{query} startup", system):
            known = Estimate(value / 1_000, None, None, 1, "s", 1)
            bars.setdefault(number, {})[system] = (known, totals.get(number, value) / 1_000)
    return bars


def _groups(axes: Axes, bars: Bars, colours: Mapping[str, str]) -> None:
    names = [name for name in colours if any(name in group for group in bars.values())]
    whole, startup = [], []
    for number, group in bars.items():
        for name, (part, total) in group.items():
            keys = {"files": f"{number / 1_000:g}K", "system": name}
            whole.append({**keys, "value": 1_000 * total})
            startup += plots.rows_of(part, 1_000, **keys) if part is not None else []
    how = {"x": "files", "y": "value", "hue": "system", "order": [f"{number / 1_000:g}K" for number in bars],
           "hue_order": names, "palette": dict(colours), "saturation": 1, "legend": False, "width": WIDE,
           "edgecolor": style.INK, "linewidth": 0.4, "ax": axes}  # fmt: skip
    sns.barplot(pd.DataFrame(whole, columns=["files", "system", "value"]), alpha=PALE, errorbar=None, **how)
    if startup:
        sns.barplot(pd.DataFrame(startup), estimator=plots.first, errorbar=plots.ends, **how,
                    err_kws={"linewidth": 0.7, "color": style.INK})  # fmt: skip
    axes.set(xlabel="", ylabel="", ylim=(0, None))
    axes.grid(axis="y")
