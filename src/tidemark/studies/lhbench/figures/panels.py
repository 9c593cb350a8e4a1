"""Figures of the study: loads and queries as the paper draws them, refreshes by stage, merges by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns

from tidemark.analysis.measures import Absent
from tidemark.analysis.quantities import Quantity
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
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
ROW, LEFT = 0.2, 1.3  # inches
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
    """Draw a panel per quantity with a row per system: a dot with its interval, on an axis from zero."""
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
        raise Absent("no run has its times")
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
        plots.lines(axes, rows, "value", "row", studio.look, orient="y", joined=False)
        plots.titles(axes, [each.title for each in series])
        axes.tick_params(axis="y", labelleft=not place % across)
        axes.set_title("")
        axes.set_xlim(left=0)
        axes.set_xlabel(NAMES.get(what, f"{what.name} (s)"))
    without = [each.title for each in planned if not each.runs]
    notes = [
        "Dots with 95 % intervals where there are repeats; scales differ and start at zero.",
        studio.run_set.coverage,
    ]
    notes += [f"Not measured: {', '.join(without)}."] if without else []
    return studio.finish(made, title, notes, runs)


def _largest(series: Sequence[Series]) -> list[Series]:
    """Return the last series of each system, which has the largest scale."""
    found = {each.system: each for each in series}
    return list(found.values())


def merges(studio: Studio) -> Drawn:
    """Draw merge time (left) and the slowdown of queries after it (right) against updates per file (log scale)."""
    series = [each for each in in_part(studio.run_set, MERGE) if each.runs]
    if not series:
        raise Absent(f"the part '{MERGE}' was not measured")
    made = style.frame(style.PAGE, 2.2)
    panels = made.pair(0.55, 0.6, 1.5)
    runs = [run for each in series for run in each.runs]
    for axes, how, what in zip(panels, (merging, slowdown), ("merge (s)", "queries after over before"), strict=True):
        points = []
        for each in series:
            for size in sorted(map(int, found(each.runs[0])["data"]["sets"])):
                cell = attempt("", partial(of, studio.measures, how(size), each))
                if isinstance(cell, Estimate):
                    points += plots.rows_of(cell, system=each.title, share=size / shape_of(each.mode)[1])
        if points:
            plots.lines(axes, points, "share", "value", studio.look, legend=axes is panels[1])
            plots.log_axis(axes)
        axes.set_ylim(bottom=0)
        axes.grid()
        axes.set_xlabel("updates a file, log scale")
        axes.set_ylabel(what)
    if panels[1].legend_:
        plots.legend_beside(panels[1])
    notes = ["As many new rows as updates; each size on a fresh table. Lines: 95 % intervals.", studio.run_set.coverage]
    return studio.finish(made, THREE, notes, runs)


def axis(studio: Studio) -> Drawn:
    """Draw the paper's copy-on-write times by the share of files touched, for labels as printed and a hundredth."""
    made = style.frame(style.COLUMN, 2.1)
    axes = made.axes(0.6, 0.15)
    frames = []
    for factor, label in ((1, "labels as printed"), (published.LABELLED, f"a {published.LABELLED}th of the labels")):
        told = reading(factor)
        frames.append(pd.DataFrame({"share": 100 * np.array(told.shares), "s": told.times_s, "read": label}))
    sns.lineplot(x=[0.0, 100.0], y=[told.fixed_s, told.fixed_s + told.whole_s], color=style.FAINT, ax=axes)
    sns.scatterplot(pd.concat(frames), x="share", y="s", hue="read", style="read", markers=["s", "o"],
                    palette=["white", style.INK], edgecolor=style.INK, s=18, ax=axes)  # fmt: skip
    axes.legend(title=None)
    axes.set_xlabel("files touched (%)")
    axes.set_ylabel("merge, copying files (s)")
    axes.set_ylim(bottom=0)
    axes.grid()
    told = reading(published.LABELLED)
    notes = [
        "Not a run of Tidemark: the four times of the paper's figure 3, over the share of its 1,000 files that as many "
        f"uniformly drawn updates touch. The line, {told.fixed_s:.0f} s + {told.whole_s:.0f} s x share, is fitted to "
        "the filled points."
    ]
    return studio.finish(made, AXIS, notes, ())
