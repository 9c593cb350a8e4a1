"""Pictures of many small panels: one per system, one below or beside the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.words import number, shown
from tidemark.results.figures import style
from tidemark.results.figures.plots import LEFT, Group, missing, plain_ticks
from tidemark.results.figures.studio import Studio
from tidemark.runs.run import Run

MOST_POINTS = 4000
BINS = 240
Floats = NDArray[np.float64]


def binned(times: Floats, values: Floats, bins: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Middle, minimum, median and maximum of `values` in up to `bins` stretches of equally many samples."""
    bounds = np.unique((np.arange(bins + 1) * len(values)) // bins)
    pairs = list(pairwise(bounds))
    middle = np.array([times[a:b].mean() for a, b in pairs])
    medians = np.array([np.median(values[a:b]) for a, b in pairs])
    return middle, np.minimum.reduceat(values, bounds[:-1]), medians, np.maximum.reduceat(values, bounds[:-1])


def scatter_panels(
    studio: Studio, groups: Sequence[Group], runs: Mapping[str, Run], what: str, trend: Quantity
) -> tuple[style.Frame, list[str]]:
    """A time of each operation over the window (`what` says of what, in ms), a panel per system, with its `trend`."""
    columns = 3
    rows = -(-len(groups) // columns)
    tall, gap = 0.74, 0.62
    made = style.frame(style.PAGE, rows * (tall + gap) - 0.32)  # the uppermost panel has three lines above it as well
    wide = style.PAGE / columns
    longest = max(float(group.times_s[-1]) for group in groups if group.times_s is not None)
    reduced = False
    for place, group in enumerate(groups):
        row, column = divmod(place, columns)
        axes = made.axes(
            column * wide + 0.42, style.PAGE - (column + 1) * wide + 0.06, (rows - 1 - row) * (tall + gap), tall
        )
        axes.set_title(
            group.title,
            loc="left",
            color=style.ink(group.colour),
            fontweight="bold",
            fontsize=style.TEXT,
            pad=21,
            y=None if len(group.values) else 0.6,
        )
        axes.set_xlim(-0.01 * longest, 1.01 * longest)
        last = not any(len(below.values) for below in groups[place + columns :: columns])
        axes.set_xlabel("seconds since the run began" if last else "")
        axes.set_ylabel(f"{what} (ms)" if column == 0 else "")
        if group.times_s is None or len(group.values) == 0:
            axes.set_axis_off()
            missing(axes, 0.5, group.reason, 38)
            continue
        times, values = group.times_s, group.values
        top = 1.3 * float(np.quantile(values, 0.995))
        above = values > top
        if len(values) > MOST_POINTS:
            middle, low, medians, high = binned(times, values, BINS)
            axes.vlines(middle, low, np.minimum(high, top), color=group.colour, linewidth=0.7, alpha=0.35)
            reduced = True
        else:
            axes.plot(times[~above], values[~above], ".", color=group.colour, alpha=0.45,
                      markersize=1.8 if len(values) > 400 else 4.0,
                      markeredgewidth=0, rasterized=True)  # fmt: skip
            middle, _, medians, _ = binned(times, values, min(40, max(len(values) // 8, 1)))
        if len(values) >= 24:
            axes.plot(middle, medians, color=style.INK, linewidth=0.8)
        if above.any():
            axes.plot(times[above][:MOST_POINTS], np.full(min(above.sum(), MOST_POINTS), 0.98 * top), "^",
                      color=group.colour, markersize=2.6, markeredgewidth=0, rasterized=True)  # fmt: skip
        axes.set_ylim(0, top)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(plain_ticks())
        axes.grid(axis="y")
        beyond = f"; ▲ {above.sum():,} to {number(float(values.max()), 3)} ms" if above.any() else ""
        try:
            slope = studio.measures.of_run(trend, runs[group.label]).estimate("")
            text = f"{trend.name} {shown(slope, digits=3)}"
        except Absent as absent:
            text = f"{trend.name}: {absent}"
        axes.text(0.0, 1.04, f"{text}\nn {len(values):,}{beyond}", transform=axes.transAxes, fontsize=style.SMALL,
                  va="bottom", linespacing=1.05)  # fmt: skip
    notes = [
        f"A point is a {what}, the black line a running median. Vertical scales differ and start at zero; ▲ counts "
        f"the {what}s above the scale, up to the longest. {trend.name.capitalize()} is the Theil-Sen slope in "
        f"{trend.unit.replace('/', ' per ')}, with its 95 % interval within this run."
    ]
    if reduced:
        notes.append(f"Beyond {MOST_POINTS:,} {what}s per run, lines span minimum to maximum of {BINS} stretches.")
    return made, notes


def cpu_strips(groups: Sequence[Group]) -> tuple[style.Frame, list[str]]:
    """CPU of the machine over the window, a strip per system, all on the same scale."""
    tall, gap = 0.36, 0.08
    made = style.frame(style.COLUMN, len(groups) * (tall + gap) - gap)
    longest = max(
        (float(group.times_s[-1]) for group in groups if group.times_s is not None and len(group.times_s)), default=1.0
    )
    for place, group in enumerate(groups):
        axes = made.axes(LEFT + 0.26, 0.62, (len(groups) - 1 - place) * (tall + gap), tall)
        axes.set_ylim(0, 105)
        axes.set_xlim(0, 1.02 * longest)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_yticks([0, 100])
        axes.tick_params(axis="y", labelsize=style.SMALL)
        axes.grid(axis="y")
        if place < len(groups) - 1:
            axes.set_xticklabels([])
        else:
            axes.set_xlabel("seconds since the run began")
        axes.text(-0.22, 0.5, style.few_lines(group.title), transform=axes.transAxes, ha="right", va="center",
                  fontsize=style.SMALL, color=style.ink(group.colour), fontweight="bold")  # fmt: skip
        if group.times_s is None or len(group.values) == 0:
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
            missing(axes, 50, group.reason)
            continue
        axes.plot(group.times_s, group.values, color=group.colour, linewidth=0.9,
                  marker="." if len(group.values) < 30 else None, markersize=2.5)  # fmt: skip
        axes.text(1.03, 0.5, f"{np.median(group.values):.0f} %\nn {len(group.values):,}", transform=axes.transAxes,
                  fontsize=style.SMALL, va="center", linespacing=1.0)  # fmt: skip
        if place == 0:
            axes.text(1.03, 1.0, "median", transform=axes.transAxes, fontsize=style.SMALL, color=style.FAINT,
                      va="bottom")  # fmt: skip
    return made, ["All cores together are 100 %; one sample per second."]
