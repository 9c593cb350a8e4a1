"""The figures of the study: loads and queries as the paper draws them, refreshes by stage, merges by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from matplotlib.axes import Axes

from tidemark.analysis.measures import Absent
from tidemark.analysis.quantities import Quantity
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.axis import reading
from tidemark.studies.lhbench.figures import files
from tidemark.studies.lhbench.load.settings import LOAD
from tidemark.studies.lhbench.merge.settings import MERGE, shape_of
from tidemark.studies.lhbench.quantities import (
    COMPACTING,
    LOADING,
    MERGING,
    QUERIES_AFTER,
    QUERIES_COMPACTED,
    QUERYING,
    TOTAL,
    found,
    in_part,
    merging,
    of,
    slowdown,
)
from tidemark.studies.lhbench.refresh.settings import REFRESH
from tidemark.studies.lhbench.second.quantities import LOADED_TABLES

ONE, SECOND, TWO, THREE, AXIS = (
    "Loads and queries",
    "The same queries of the same tables, by two engines",
    "Refreshes and queries, stage by stage",
    "One merge, from few rows to many",
    "Figure 3 of the paper: what files touched explain",
)
ROW, LEFT, GAP = 0.2, 1.3, 0.22  # inches
OF_LOAD = (LOADING, TOTAL, QUERYING["q9"], QUERYING["q67"], QUERYING["q68"], QUERYING["q90"])
OF_REFRESH = (LOADING, TOTAL, MERGING, QUERIES_AFTER, COMPACTING, QUERIES_COMPACTED)
NAMES = {
    LOADING: "load (s)", TOTAL: "queries (s)", MERGING: "a refresh (s)", QUERIES_AFTER: "queries after (s)",
    COMPACTING: "compaction (s)", LOADED_TABLES: "the same by DuckDB (s)", QUERIES_COMPACTED: "queries, compacted (s)",
}  # fmt: skip


def sketches() -> Iterator[Sketch]:
    yield Sketch("lhb-load-and-queries", ONE, partial(stages, part=LOAD, title=ONE, asked=OF_LOAD))
    yield Sketch("lhb-second-engine", SECOND, partial(stages, part=LOAD, title=SECOND, asked=(TOTAL, LOADED_TABLES)))
    yield Sketch("lhb-refresh", TWO, partial(stages, part=REFRESH, title=TWO, asked=OF_REFRESH))
    yield Sketch("lhb-merges", THREE, merges)
    yield Sketch("lhb-files", files.TITLE, files.files)
    yield Sketch("lhb-axis", AXIS, axis)


def stages(studio: Studio, part: str, title: str, asked: Sequence[Quantity]) -> Drawn:
    """A panel a quantity, a row a system: a dot with its interval, from zero."""
    planned = _largest(in_part(studio.run_set, part))
    series = [each for each in planned if each.runs]
    runs = [run for each in series for run in each.runs]
    if not runs:
        raise Absent(planned[0].missing() if planned else f"the part '{part}' was not measured")
    every = [
        (what, [attempt(what.unit, partial(of, studio.measures, what, each)) for each in series]) for what in asked
    ]
    shown = [(what, cells) for what, cells in every if any(isinstance(each, Estimate) for each in cells)]
    if not shown:
        raise Absent("no run says what it took")
    across = min(len(shown), 3)
    down = -(-len(shown) // across)
    tall = ROW * len(series)
    made = style.frame(style.PAGE, down * (tall + 0.55) - 0.55)
    wide = (style.PAGE - LEFT - GAP * across) / across
    for place, (what, cells) in enumerate(shown):
        column, row = place % across, place // across
        left = LEFT + column * (wide + GAP)
        axes = made.axes(left, style.PAGE - left - wide, (down - 1 - row) * (tall + 0.55), tall)
        for line, (each, estimate) in enumerate(zip(series, cells, strict=True)):
            if isinstance(estimate, Estimate):
                _dot(axes, line, estimate, studio.colour(each))
        plots.titles(axes, [each.title for each in series])
        if column:
            axes.set_yticklabels([])
        axes.set_xlim(left=0)
        axes.grid(axis="x")
        axes.set_xlabel(NAMES.get(what, f"{what.name} (s)"))
    without = [each.title for each in planned if not each.runs]
    notes = [
        "Dots with 95 % intervals where there are repeats; scales differ and start at zero.",
        studio.run_set.coverage,
    ]
    notes += [f"Not measured: {', '.join(without)}."] if without else []
    return studio.finish(made, title, notes, runs)


def _dot(axes: Axes, line: int, estimate: Estimate, colour: str) -> None:
    if estimate.low is not None and estimate.high is not None:
        axes.plot([estimate.low, estimate.high], [line, line], color=colour, linewidth=1.2)
    axes.plot(estimate.value, line, "o", color=colour, markersize=3.6)


def _largest(series: Sequence[Series]) -> list[Series]:
    """Of each system the last by its mode: that of the largest scale."""
    found = {each.system: each for each in series}
    return list(found.values())


def merges(studio: Studio) -> Drawn:
    """Updates a file (across, log) against the merge (left) and how much slower queries are after it (right)."""
    series = [each for each in in_part(studio.run_set, MERGE) if each.runs]
    if not series:
        raise Absent(f"the part '{MERGE}' was not measured")
    made = style.frame(style.PAGE, 2.2)
    wide = (style.PAGE - 0.55 - 1.5 - 0.6) / 2
    panels = (made.axes(0.55, style.PAGE - 0.55 - wide), made.axes(0.55 + wide + 0.6, 1.5))
    runs: list[Run] = []
    for place, each in enumerate(series):
        files, colour = shape_of(each.mode)[1], studio.colour(each)
        sizes = sorted(map(int, found(each.runs[0])["data"]["sets"]))
        runs += each.runs
        for axes, how in zip(panels, (merging, slowdown), strict=True):
            points = [(size / files, attempt("", partial(of, studio.measures, how(size), each))) for size in sizes]
            kept = [(x, y) for x, y in points if isinstance(y, Estimate)]
            axes.plot([x for x, _ in kept], [y.value for _, y in kept], "o-", color=colour, linewidth=0.9, markersize=3)
            for x, y in kept:
                if y.low is not None and y.high is not None:
                    axes.plot([x, x], [y.low, y.high], color=colour, linewidth=0.9)
        panels[1].text(1.05, 0.95 - 0.11 * place, style.few_lines(each.title), transform=panels[1].transAxes,
                       fontsize=style.SMALL, color=style.ink(colour), va="center")  # fmt: skip
    for axes, what in zip(panels, ("merge (s)", "queries after over before"), strict=True):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(plots.minor_ticks())
        axes.xaxis.set_major_formatter(plots.plain_ticks())
        axes.set_ylim(bottom=0)
        axes.grid()
        axes.set_xlabel("updates a file, log scale")
        axes.set_ylabel(what)
    notes = ["As many new rows as updates; each size on a fresh table. Lines: 95 % intervals.", studio.run_set.coverage]
    return studio.finish(made, THREE, notes, runs)


def axis(studio: Studio) -> Drawn:
    """The paper's times of copying files against the share of files touched: labels as printed, and a hundredth."""
    made = style.frame(style.COLUMN, 2.1)
    axes = made.axes(0.6, 0.15)
    for factor, mark in ((1, "s"), (published.LABELLED, "o")):
        told = reading(factor)
        shares = [100 * share for share in told.shares]
        label = "labels as printed" if factor == 1 else f"a {factor}th of the labels"
        axes.plot(shares, told.times_s, mark, color=style.INK, markersize=4, label=label,
                  markerfacecolor="white" if factor == 1 else style.INK)  # fmt: skip
        if factor != 1:
            ends = [0.0, 100.0]
            axes.plot(ends, [told.fixed_s + told.whole_s * end / 100 for end in ends], color=style.FAINT, linewidth=0.9)
    axes.set_xlabel("files touched (%)")
    axes.set_ylabel("merge, copying files (s)")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=style.SMALL, frameon=False)
    axes.grid()
    told = reading(published.LABELLED)
    notes = [
        "No run of ours: the four times of the paper's figure 3, over the share of its 1,000 files that so many "
        f"uniformly drawn updates touch. The line, {told.fixed_s:.0f} s + {told.whole_s:.0f} s x share, is fitted to "
        "the filled points."
    ]
    return studio.finish(made, AXIS, notes, ())
