"""Figures with many small panels, one per system, in rows and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tidemark.analysis.formatting import MissingCell, attempt, brief, number, shown
from tidemark.analysis.metrics import Metric
from tidemark.results.figures import style
from tidemark.results.figures.context import FigureContext, Group
from tidemark.results.figures.plots import LEFT, missing, plain_ticks, small_text
from tidemark.runs.run import Run

MOST_POINTS = 4000
BINS = 240
Floats = NDArray[np.float64]
MOST_OF_A_TITLE = 27  # characters that fit above a panel; a longer title is set smaller


def binned(times: Floats, values: Floats, bins: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean time, minimum, median and maximum of `values` in up to `bins` stretches of equal sample count."""
    bounds = np.unique((np.arange(bins + 1) * len(values)) // bins)
    pairs = list(pairwise(bounds))
    middle = np.array([times[a:b].mean() for a, b in pairs])
    medians = np.array([np.median(values[a:b]) for a, b in pairs])
    return middle, np.minimum.reduceat(values, bounds[:-1]), medians, np.maximum.reduceat(values, bounds[:-1])


def facets(groups: Sequence[Group], columns: int, sharey: bool) -> sns.FacetGrid:
    """Return a grid with one empty panel per group; `style.tiled` places its axes."""
    names = [group.title for group in groups]
    frame = pd.DataFrame({"system": names})
    return sns.FacetGrid(frame, col="system", col_order=names, col_wrap=columns, sharey=sharey, height=1)


def scatter_panels(
    context: FigureContext, groups: Sequence[Group], runs: Mapping[str, Run], what: str, trend: Metric
) -> tuple[style.Frame, list[str]]:
    """Draw the time in ms of each operation (`what`) over the window, one panel per system, with its `trend`."""
    columns = min(3, len(groups))
    grid = facets(groups, columns, sharey=False)
    made = style.tiled(grid.figure, list(grid.axes.flat), columns, tall=0.74, gap=0.62, left=0.42, between=0.3)
    longest = max(float(group.times_s[-1]) for group in groups if group.times_s is not None)
    reduced = False
    for place, (group, axes) in enumerate(zip(groups, grid.axes.flat, strict=True)):
        axes.set_title("")  # remove seaborn's centred title
        filled = group.times_s is not None and len(group.values) > 0
        size = style.TEXT * min(1, MOST_OF_A_TITLE / len(group.title))
        axes.set_title(group.title, loc="left", color=style.ink(group.colour), fontweight="bold", fontsize=size,
                       pad=21, y=1.0 if filled else 0.6)  # fmt: skip
        last = not any(len(below.values) for below in groups[place + columns :: columns])
        axes.set(xlim=(-0.01 * longest, 1.01 * longest), xlabel="seconds since the run began" if last else "",
                 ylabel=f"{what} (ms)" if place % columns == 0 else "")  # fmt: skip
        if group.times_s is None or len(group.values) == 0:
            axes.set_axis_off()
            missing(axes, 0.5, group.reason, 38)
            continue
        times, values = group.times_s, group.values
        top = 1.3 * float(np.quantile(values, 0.995))
        above = values > top
        colour, ink = group.colour, style.ink(group.colour)
        many = len(values) > MOST_POINTS
        middle, low, medians, high = binned(times, values, BINS if many else min(40, max(len(values) // 8, 1)))
        if many:
            # Use matplotlib: the spans are known, and seaborn would compute them from all samples.
            axes.fill_between(middle, low, np.minimum(high, top), color=colour, alpha=0.35, linewidth=0)
            reduced = True
        else:
            sns.scatterplot(x=times[~above], y=values[~above], color=colour, edgecolor=ink, linewidth=0.2, alpha=0.6,
                            s=3 if len(values) > 400 else 9, rasterized=True, ax=axes)  # fmt: skip
        if len(values) >= 24:
            sns.lineplot(x=middle, y=medians, estimator=None, color=style.INK, linewidth=0.8, ax=axes)
        sns.scatterplot(x=times[above][:MOST_POINTS], y=np.minimum(values[above][:MOST_POINTS], 0.98 * top), s=12,
                        marker="^", color=colour, edgecolor=ink, linewidth=0.4, rasterized=True, ax=axes)  # fmt: skip
        axes.set_ylim(0, top)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_tick_params(labelbottom=True)
        axes.yaxis.set_major_formatter(plain_ticks())
        axes.grid(axis="y")
        beyond = f"; ▲ {above.sum():,} to {number(float(values.max()), 3)} ms" if above.any() else ""
        slope = attempt("", partial(context.measures.of_run, trend, runs[group.label]))
        # The number of commits is in the next line.
        said = f": {brief(slope.reason)}" if isinstance(slope, MissingCell) else f" {shown(slope, digits=3)}"
        small_text(axes, 0.0, 1.04, f"{trend.name}{said}\nn {len(values):,}{beyond}", va="bottom", linespacing=1.05)
    notes = [
        f"A point is a {what}, the black line a running median. Vertical scales differ and start at zero; ▲ counts "
        f"the {what}s above the scale, up to the longest. {trend.name.capitalize()} is the Theil-Sen slope in "
        f"{trend.unit.replace('/', ' per ')}, with its 95 % interval within this run."
    ]
    if reduced:
        notes.append(f"Beyond {MOST_POINTS:,} {what}s per run, bands span minimum to maximum of {BINS} stretches.")
    return made, notes


def cpu_strips(groups: Sequence[Group]) -> tuple[style.Frame, list[str]]:
    """Draw the machine's CPU utilisation over the window, one strip per system, all on the same scale."""
    grid = facets(groups, 1, sharey=True)
    made = style.tiled(grid.figure, list(grid.axes.flat), 1, tall=0.36, gap=0.14, left=LEFT + 0.26, right=0.62,
                       width=style.COLUMN, above=0.0)  # fmt: skip
    grid.set(ylim=(0, 105), yticks=[0, 100], ylabel="", xlabel="")
    for place, (group, axes) in enumerate(zip(groups, grid.axes.flat, strict=True)):
        axes.set_title("")
        axes.tick_params(axis="y", labelsize=style.SMALL)
        axes.tick_params(axis="x", labelbottom=group is groups[-1])
        axes.grid(axis="y")
        axes.text(-0.22, 0.5, style.few_lines(group.title), transform=axes.transAxes, ha="right", va="center",
                  fontsize=style.SMALL, color=style.ink(group.colour), fontweight="bold")  # fmt: skip
        if group.times_s is None or len(group.values) == 0:
            axes.tick_params(axis="y", left=False, labelleft=False)
            axes.spines["left"].set_visible(False)
            missing(axes, 50, group.reason)
            continue
        sns.lineplot(x=group.times_s, y=group.values, estimator=None, color=style.ink(group.colour), linewidth=0.9,
                     ax=axes)  # fmt: skip
        words = f"{np.median(group.values):.0f} %\nn {len(group.values):,}"
        small_text(axes, 1.03, 0.5, words, va="center", linespacing=1.0)
        if place == 0:
            small_text(axes, 1.03, 1.0, "median", color=style.FAINT, va="bottom")
    axes.set(xlabel="seconds since the run began", xlim=(0, None))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return made, ["All cores together are 100 %; one sample per second."]
