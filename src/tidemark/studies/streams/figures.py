"""Figures that the thesis does not have: both throughputs, tails, growth, cold effect, time budget, footprint."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.ticker import FuncFormatter, NullLocator

from tidemark.analysis.ages import typical_by_age
from tidemark.analysis.formatting import number
from tidemark.analysis.measures import NotAvailable
from tidemark.analysis.metrics import require
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.text_blocks import lowest_and_highest
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.figures.plots import StackedRow, stacked
from tidemark.results.tables.table import notes_of
from tidemark.runs.run import Run
from tidemark.runs.spec import MODES, SINGLE, STAGES
from tidemark.runs.views import all_hot_runs, all_runs, last_hot
from tidemark.studies.streams.findings import Writer, or_nothing
from tidemark.studies.streams.metrics import HARNESS_RATE, SYSTEM_RATE, WRITE_MEDIAN
from tidemark.studies.streams.thesis_figures import MODE_WORDS

NOTES = notes_of(__file__)
COLD_EFFECT, TIME_BUDGET = "Run 0 compared with hot runs: median write", "Time budget of the first hot run"
AGES_TITLE = "Time of a commit by the number of commits in the table"
NO_HOT_RUN = "there is no hot run"


def figure_specs() -> Iterator[FigureSpec]:
    """Yield all figures; those that compare systems once per mode."""
    for mode, words in MODE_WORDS.items():
        yield FigureSpec(
            f"throughput-{mode}", f"Harness and system throughput, {words}", partial(throughput, mode=mode)
        )
        yield FigureSpec(f"latency-{mode}", f"Tail of the write times, {words}", partial(latency, mode=mode))
        yield FigureSpec(f"footprint-{mode}", f"Bytes stored per event, {words}", partial(footprint, mode=mode))
    yield FigureSpec("ages", AGES_TITLE, ages_of_tables)
    yield FigureSpec("cold-effect", COLD_EFFECT, cold_effect)
    yield FigureSpec("time-budget", TIME_BUDGET, time_budget)


def throughput(context: FigureContext, mode: str) -> DrawnFigure:
    """Draw both throughputs of the typical hot run; the gap between them is the harness."""
    chosen = context.run_set.select(mode=mode)
    runs = require(all_hot_runs(chosen), NO_HOT_RUN)
    rows: list[tuple[str, list[plots.Point]]] = []
    for series in chosen:
        system = plots.point(partial(context.measures.hot, SYSTEM_RATE), series)
        points = [system] if not series.is_null_baseline else []
        if not isinstance(system[0], str):
            points.append(plots.point(partial(context.measures.hot, HARNESS_RATE), series, filled=False))
        rows.append((series.title, points))
    made = plots.dots(context, rows, "events per second", log=True, key="filled: system; hollow: harness")
    notes = [*NOTES("throughput-figure"), context.run_set.coverage]
    shown = or_nothing(partial(Writer(context.measures).throughputs, mode))
    return context.finish(made, f"Harness and system throughput, {MODE_WORDS[mode]}", notes, runs, shown)


def ages_of_tables(context: FigureContext) -> DrawnFigure:
    """Draw the time of a commit against the commits that the table has, both axes logarithmic, a panel per mode."""
    chosen = {mode: context.run_set.select(mode=mode, harness=False) for mode in MODES}
    runs = require(all_hot_runs(series for found in chosen.values() for series in found), NO_HOT_RUN)
    drawn = {
        mode: [
            {"system": series.title, "commits": age, "ms": time}
            for series in found
            for age, time in typical_by_age(series.hot_runs)
        ]
        for mode, found in chosen.items()
    }
    drawn = {mode: points for mode, points in drawn.items() if points}
    made = style.frame(style.PAGE, 2.3)
    panels = made.pair(0.55, 0.55, 1.6) if len(drawn) > 1 else (made.axes(0.55, 1.6),)
    for axes, (mode, points) in zip(panels, drawn.items(), strict=True):
        box = axes.get_position()
        axes.set_position((box.x0, box.y0, box.width, 0.92 * box.height))  # room for the panel's title
        plots.lines(axes, points, "commits", "ms", context.look, legend=axes is panels[-1], markersize=2.5)
        up = "time of a commit (ms), log scale" if axes is panels[0] else ""
        plots.log_axes(axes, "commits in the table, log scale", up)
        axes.set_title(MODE_WORDS[mode], loc="left", fontsize=style.TEXT)
    plots.legend_beside(panels[-1])
    shown = " ".join(filter(None, (or_nothing(partial(Writer(context.measures).growth, mode)) for mode in drawn)))
    return context.finish(made, AGES_TITLE, NOTES("ages-figure"), runs, shown)


def cold_effect(context: FigureContext) -> DrawnFigure:
    chosen = context.run_set.select(harness=False)
    rows: dict[str, list[plots.Point]] = {}
    effect = partial(context.measures.cold_effect, WRITE_MEDIAN)
    for series in chosen:
        point = plots.point(effect, series, filled=series.mode == SINGLE, where=f"{series.mode_title}: ")
        rows.setdefault(series.title, []).append(point)
    if not any(isinstance(estimate, Estimate) for points in rows.values() for estimate, _, _ in points):
        raise NotAvailable("no series has both a run 0 and a hot run")
    key = "filled: one by one; hollow: in batches"
    what = "median write, run 0 / hot"
    made = plots.dots(context, list(rows.items()), what, line=1.0, from_zero=False, key=key)
    notes = [*NOTES("cold-effect-figure"), context.run_set.coverage]
    shown = Writer(context.measures).together("cold")
    return context.finish(made, COLD_EFFECT, notes, all_runs(chosen), shown)


def latency(context: FigureContext, mode: str) -> DrawnFigure:
    """Draw the share of the first hot run's writes that took longer than a given time; both axes logarithmic."""
    groups, runs = context.groups(mode, 1, lambda run: (np.sort(run.column("write_ns")) / 1e6, None))
    filled = sorted((group for group in groups if len(group.values)), key=lambda group: -float(np.median(group.values)))
    made, axes = style.single(style.COLUMN, 0.3 + 0.3 * max(len(filled), 5), 0.98, 1.12)
    lowest = min(1 / len(group.values) for group in filled)
    plots.tails(axes, {group.title: group.values for group in filled}, context.look, legend=False)
    for place, group in enumerate(filled):
        words = f"{style.few_lines(group.title, 25)}\nmax {number(float(group.values[-1]), 3)} ms"
        axes.text(1.04, 1 - (place + 0.5) / len(filled), words, transform=axes.transAxes, fontsize=style.SMALL,
                  va="center", color=style.ink(group.colour), linespacing=1.0)  # fmt: skip
    levels = {1.0: "", 0.5: "median  ", 0.1: "", 0.01: "p99  ", 0.001: "p99.9  ", 0.0001: "p99.99  "}
    axes.set_yticks([level for level in levels if level > lowest * 0.7])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{levels.get(value, '')}{100 * value:g} %"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid()
    axes.set(xlabel="write time (ms), log scale", ylabel="writes that take longer")
    shown = or_nothing(partial(Writer(context.measures).tails, mode))
    return context.finish(made, f"Tail of the write times, {MODE_WORDS[mode]}", NOTES("latency-figure"), runs, shown)


def footprint(context: FigureContext, mode: str) -> DrawnFigure:
    """Draw data, metadata and catalog bytes per event of the last run, before any flush."""
    rows: list[StackedRow] = []
    runs: list[Run] = []
    for series in context.series(mode):
        run = last_hot(series)
        if run is None:
            rows.append((series.title, (), series.missing()))
            continue
        runs.append(run)
        f, events = run.footprint, run.manifest.events
        parts = [("data", f.data_bytes / events), ("metadata", f.metadata_bytes / events)]
        if f.catalog_bytes is not None:
            parts.append(("catalog", f.catalog_bytes / events))
        note = "catalog not measurable" if f.catalog_bytes is None else ""
        rows.append((series.title, tuple(parts), note))
    require(runs, "no run was measured")
    arrow = runs[0].manifest.logical_bytes / runs[0].manifest.events
    made = stacked(rows, "bytes per event")
    notes = [f"Bytes on disk after the last run, before inlined rows are flushed. One event has {arrow:,.0f} bytes in "
             "Arrow. The bars include an empty catalog, so short windows overstate the catalog."]  # fmt: skip
    totals = [(sum(size for _, size in parts), title) for title, parts, note in rows if parts and not note]
    shown = lowest_and_highest("The stored size per event", totals)
    return context.finish(made, f"Bytes stored per event, {MODE_WORDS[mode]}", notes, runs, shown)


def time_budget(context: FigureContext) -> DrawnFigure:
    """Draw the shares of the window of each series' first hot run; a series without one shows the reason."""
    rows: list[StackedRow] = []
    written: list[tuple[float, str]] = []
    runs: list[Run] = []
    for mode in MODES:
        for series in context.run_set.select(mode=mode):
            run = series.run(1)
            label = f"{series.title}, {series.mode_title}"
            if run is None:
                rows.append((label, (), series.missing(1)))
                continue
            runs.append(run)
            budget = dict(run.manifest.time_budget_ns)
            shares = tuple((part, 100 * budget.get(part, 0) / run.manifest.elapsed_ns) for part in STAGES)
            rows.append((label, shares, f"write {dict(shares)['write']:.1f} %"))
            if not series.is_null_baseline:
                written.append((dict(shares)["write"], label))
    require(runs, "no series has a hot run")
    made = stacked(rows, "% of the window", total=False, most=100.0, width=style.PAGE)
    notes = ["Parts are in the order of a cycle. Null stores nothing, so its whole window is harness."]
    shown = lowest_and_highest("The share of the window inside write", written)
    return context.finish(made, TIME_BUDGET, notes, runs, shown)
