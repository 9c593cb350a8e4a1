"""The kinds of picture that figures are made of. All show the number of samples, and name systems beside the data."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import number, shown
from tidemark.results.figures import style

Floats = NDArray[np.float64]
LEFT = 1.06
FEWEST_FOR_BOX = 8
MOST_POINTS = 300
MOST_BARS = 4  # of one system: more runs than these are points on a line
ROW = 0.30


@dataclass(frozen=True, slots=True)
class Group:
    """Samples of one run of one system, to be drawn in its colour; `reason` says why there are none."""

    title: str
    colour: str
    values: Floats
    times_s: Floats | None = None
    label: str = ""
    reason: str = ""


def plain_ticks() -> FuncFormatter:
    """Ticks as people write numbers, short enough to stand side by side: 0.5, 20, 1,500, 30 k, 3 M."""

    def spelt(value: float, _: int | None) -> str:
        if abs(value) >= 1e6:
            return f"{value / 1e6:g} M"
        if abs(value) >= 1e4:
            return f"{value / 1e3:g} k"
        return f"{value:g}" if abs(value) < 1e3 else f"{value:,.0f}"

    return FuncFormatter(spelt)


def minor_ticks() -> LogFormatter:
    """Numbers at the minor ticks of a short logarithmic axis, as text: formulas are not set in our figures."""
    return LogFormatter(labelOnlyBase=False)


def titles(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [style.few_lines(name) for name in names])
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)


def missing(axes: Axes, row: float, reason: str, characters: int = 46) -> None:
    """Say in the place of the data why there is none."""
    text = textwrap.shorten(f"missing: {reason}", characters, placeholder=" …")
    axes.text(0.01, row, text, transform=axes.get_yaxis_transform(), fontsize=style.SMALL, color=style.FAINT,
              va="center", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip


def is_log(values: Sequence[Floats]) -> bool:
    """Whether boxes of `values` would be flat on a linear axis: positive, and medians more than eightfold apart."""
    filled = [each for each in values if len(each)]
    if not filled or any(each.min() <= 0 for each in filled):
        return False
    medians = [float(np.median(each)) for each in filled]
    return max(medians) > 8 * min(medians)


def boxes(groups: Sequence[Group], what: str, unit: str) -> tuple[style.Frame, list[str]]:
    """Box plots, one row per system: quartiles, whiskers to 1.5 IQR, outliers as light points; notes to print."""
    made = style.frame(style.COLUMN, ROW * len(groups) + 0.05)
    axes = made.axes(LEFT, 0.66)
    log = is_log([group.values for group in groups])
    rng = np.random.default_rng(0)
    reach, hidden, few = 0.0, 0, False
    fences: list[tuple[Floats, float, float]] = []
    for group in groups:
        if len(group.values) == 0:
            fences.append((np.empty(0), 0.0, 0.0))
            continue
        q1, q3 = np.quantile(group.values, [0.25, 0.75])
        inside = group.values[(group.values >= q1 - 1.5 * (q3 - q1)) & (group.values <= q3 + 1.5 * (q3 - q1))]
        low, high = float(inside.min()), float(inside.max())
        fences.append((group.values[(group.values < low) | (group.values > high)], low, high))
        reach = max(reach, high)
    limit = np.inf if log else 1.35 * reach
    for row, (group, (outliers, low, high)) in enumerate(zip(groups, fences, strict=True)):
        if len(group.values) == 0:
            missing(axes, row, group.reason)
            continue
        q1, median, q3 = np.quantile(group.values, [0.25, 0.5, 0.75])
        axes.text(1.03, row, f"{number(float(median), 3)} {unit}\nn {len(group.values):,}", fontsize=style.SMALL,
                  transform=axes.get_yaxis_transform(), va="center", linespacing=1.0)  # fmt: skip
        if len(group.values) < FEWEST_FOR_BOX:
            axes.plot(group.values, np.full(len(group.values), row), "o", color=group.colour, markersize=3, alpha=0.8)
            axes.plot([median, median], [row - 0.26, row + 0.26], color=style.INK, linewidth=1.1)
            few = True
            continue
        box = {"med": median, "q1": q1, "q3": q3, "whislo": low, "whishi": high, "fliers": []}
        axes.bxp(
            [box], positions=[row], widths=0.52, orientation="horizontal", showfliers=False, patch_artist=True,
            manage_ticks=False, boxprops={"facecolor": group.colour, "alpha": 0.75, "linewidth": 0.5},
            medianprops={"color": style.INK, "linewidth": 1.1, "solid_capstyle": "butt"},
            whiskerprops={"color": style.INK, "linewidth": 0.6},
            capprops={"color": style.INK, "linewidth": 0.6},
        )  # fmt: skip
        beyond = outliers[outliers > limit]
        shown = outliers[outliers <= limit]
        if len(shown) > MOST_POINTS:
            shown = np.sort(shown)[np.linspace(0, len(shown) - 1, MOST_POINTS).astype(int)]
            hidden += 1
        jitter = rng.uniform(-0.2, 0.2, len(shown))
        axes.plot(shown, row + jitter, ".", color=group.colour, markersize=2.6, alpha=0.5 if len(shown) > 60 else 0.9,
                  markeredgewidth=0, rasterized=True)  # fmt: skip
        if len(beyond):
            words = f"{len(beyond)} beyond, to {number(float(beyond.max()), 3)} {unit} ▸"
            axes.text(limit, row + 0.36, words, fontsize=style.SMALL, ha="right", va="center", color=style.FAINT)
    axes.text(1.03, 1.0, "median", transform=axes.transAxes, fontsize=style.SMALL, color=style.FAINT, va="bottom")
    titles(axes, [group.title for group in groups])
    axes.grid(axis="x")
    if log:
        log_axis(axes)
        axes.set_xlabel(f"{what} ({unit}), log scale")
    else:
        axes.set_xlim(0, limit if reach else 1)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(f"{what} ({unit})")
    axes.xaxis.set_major_formatter(plain_ticks())
    notes = ["Boxes show quartiles and median, whiskers reach to 1.5 IQR, points show all samples beyond."]
    if hidden:
        notes[0] = notes[0][:-1] + f" (at most {MOST_POINTS} per system, evenly by rank)."
    if few:
        notes.append(f"A system with fewer than {FEWEST_FOR_BOX} samples shows each as a point, and their median.")
    return made, notes


def log_axis(axes: Axes, most: int = 6) -> None:
    """A logarithmic axis below, with labels enough to read values from and few enough to be read: `most` decades."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    decades = np.log10(high / low)
    between = (1.0, 2.0, 5.0) if decades < 1.7 else (1.0, 3.0) if decades < 2.6 else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=between, numticks=most))
    axes.xaxis.set_minor_formatter(NullFormatter())


@dataclass(frozen=True, slots=True)
class Bar:
    """One run of one system in a bar chart."""

    value: float
    cold: bool
    label: str


def bars_by_run(rows: Sequence[tuple[str, str, Sequence[Bar], str]], what: str) -> tuple[style.Frame, list[str]]:
    """A row per system (title, colour, bars, reason if there are none), a bar per run; run 0 is hatched."""
    most = max((len(bars) for _, _, bars, _ in rows), default=1)
    if most > MOST_BARS:
        return _points_by_run(rows, what)
    made = style.frame(style.COLUMN, (0.12 + 0.12 * max(most, 2)) * len(rows) + 0.05)
    axes = made.axes(LEFT, 0.16)
    longest = max((bar.value for _, _, bars, _ in rows for bar in bars), default=1.0)
    for row, (_, colour, bars, reason) in enumerate(rows):
        if not bars:
            missing(axes, row, reason)
        step = 0.84 / max(len(bars), 1)
        for place, bar in enumerate(bars):
            y = row - 0.42 + step * (place + 0.5)
            axes.barh(
                y, bar.value, height=0.86 * step, color=colour, alpha=0.45 if bar.cold else 0.95,
                hatch="////" if bar.cold else None, edgecolor="white" if not bar.cold else colour, linewidth=0.3,
            )  # fmt: skip
            axes.text(bar.value + 0.01 * longest, y, f"{bar.value:,.0f}  {bar.label}", fontsize=style.SMALL,
                      va="center_baseline")  # fmt: skip
    inches = axes.get_position().width * made.figure.get_figwidth()
    # The words beside a bar take so much of the axis, whatever its scale; the longest pair decides.
    ends = [
        (bar.value + 0.02 * longest) / max(0.3, 1 - style.CHARACTER * len(f"{bar.value:,.0f}  {bar.label}") / inches)
        for _, _, bars, _ in rows
        for bar in bars
    ]
    axes.set_xlim(0, max(ends, default=longest))
    _axis_of_counts(axes, [title for title, _, _, _ in rows], what)
    return made, ["Hatched: run 0, labelled with the state that its proofs show. One number per run has no interval."]


def _points_by_run(rows: Sequence[tuple[str, str, Sequence[Bar], str]], what: str) -> tuple[style.Frame, list[str]]:
    """The same, of runs too many for a bar each: a point per run, hollow for run 0, with words where a run has them."""
    made = style.frame(style.COLUMN, ROW * len(rows) + 0.05)
    axes = made.axes(LEFT, 0.72)
    for row, (_, colour, bars, reason) in enumerate(rows):
        if not bars:
            missing(axes, row, reason)
            continue
        for bar in bars:
            y = row - 0.13 if bar.cold else row + 0.13
            axes.plot(bar.value, y, "o", color=colour, markersize=3.6, markeredgewidth=0.9,
                      markerfacecolor="white" if bar.cold else colour)  # fmt: skip
        marked = sum("DISTURBED" in bar.label for bar in bars)
        hot = [bar.value for bar in bars if not bar.cold] or [bar.value for bar in bars]
        words = f"{np.median(hot):,.0f}\nn {len(bars)}" + (f", {marked} DISTURBED" if marked else "")
        axes.text(1.03, row, words, transform=axes.get_yaxis_transform(), fontsize=style.SMALL, va="center",
                  linespacing=1.0)  # fmt: skip
    axes.text(1.03, 1.0, "median, hot", transform=axes.transAxes, fontsize=style.SMALL, color=style.FAINT, va="bottom")
    axes.set_xlim(left=0)
    _axis_of_counts(axes, [title for title, _, _, _ in rows], what)
    return made, ["A point is a run: hollow for run 0 of each repeat, filled for hot runs."]


def _axis_of_counts(axes: Axes, names: Sequence[str], what: str) -> None:
    titles(axes, names)
    axes.grid(axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_xlabel(what)


def _brief(estimate: Estimate) -> str:
    """An estimate with its interval in few characters: `93.5 [85.3, 102.2] k`."""
    if abs(estimate.value) < 1e4:
        return shown(estimate, digits=3)
    low, high = (None if end is None else end / 1e3 for end in (estimate.low, estimate.high))
    return f"{shown(replace(estimate, value=estimate.value / 1e3, low=low, high=high), digits=3)} k"


def dots(
    rows: Sequence[tuple[str, Sequence[tuple[Estimate | str, str, bool]]]],
    what: str,
    *,
    line: float | None = None,
    log: bool = False,
    from_zero: bool = True,
    width: float = style.COLUMN,
) -> style.Frame:
    """Estimates with their intervals, in the picture and in words beside it: a row per system, points of (estimate or
    reason, colour, filled)."""
    most = max((len(points) for _, points in rows), default=1)
    made = style.frame(width, max(0.17 + 0.12 * most, ROW) * len(rows) + 0.05)
    axes = made.axes(LEFT, 1.02)
    for row, (_, points) in enumerate(rows):
        for place, (estimate, colour, filled) in enumerate(points):
            y = row + (place - (len(points) - 1) / 2) * (0.7 / max(len(points), 1))
            if isinstance(estimate, str):
                missing(axes, y, estimate)
                continue
            if estimate.low is not None and estimate.high is not None:
                low = max(estimate.low, 1e-9) if log else estimate.low
                axes.plot([low, estimate.high], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt", alpha=0.7)
            axes.plot(estimate.value, y, "o", color=colour, markersize=3.4, markeredgewidth=0.9,
                      markerfacecolor=colour if filled else "white")  # fmt: skip
            axes.text(1.03, y, _brief(estimate), transform=axes.get_yaxis_transform(), fontsize=style.SMALL,
                      va="center_baseline")  # fmt: skip
    if line is not None:
        axes.axvline(line, color=style.INK, linewidth=0.7, linestyle=(0, (3, 2)))
    titles(axes, [title for title, _ in rows])
    axes.grid(axis="x")
    if log:
        log_axis(axes, most=4)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if from_zero:
            axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.xaxis.set_major_formatter(plain_ticks())
    axes.set_xlabel(f"{what}{', log scale' if log else ''}")
    return made
