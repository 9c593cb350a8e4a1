"""Plot types used by the figures, drawn with seaborn from pandas frames. All show the number of samples, and label
systems next to the data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from numpy.typing import NDArray

from tidemark.analysis.formatting import MissingCell, attempt, number
from tidemark.analysis.metrics import Metric
from tidemark.analysis.statistics import BootstrapEstimate, Estimate, intercept_of, slope_of
from tidemark.results.figures import style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec, Group, Look
from tidemark.runs.run import Run
from tidemark.runs.runset import Series

with style.hidden("scipy.stats", "scipy.cluster"):  # seaborn loads them, in a second, for plots that are not used here
    import seaborn as sns

Floats = NDArray[np.float64]
LEFT = 1.06
BESIDE_LEGEND = (style.PAGE, 2.3, 0.55, 2.35)  # of `style.single`: as wide as a page, with room for a legend
FEWEST_FOR_BOX = 8
STEPS = 400  # ranks of a system's samples that are drawn; a multiple of 4, to include quartiles and extremes
ROW = 0.34
LETTER = 0.0425  # inches of a character next to a row
TICK = 0.3  # half the height of a publication's mark, in rows
SHORT = 0.8  # decades: a logarithmic axis that spans fewer has ticks at equal differences
SPREAD = 8.0  # maximum over minimum above which values are shown on a logarithmic axis


def plain_ticks() -> FuncFormatter:
    """Return a formatter for short, human-readable tick labels: 0.5, 20, 1,500, 30 k, 3 M."""

    def spelt(value: float, _: int | None) -> str:
        if abs(value) >= 1e6:
            return f"{value / 1e6:g} M"
        if abs(value) >= 1e4:
            return f"{value / 1e3:g} k"
        return f"{value:g}" if abs(value) < 1e3 else f"{value:,.0f}"

    return FuncFormatter(spelt)


def titles(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [style.few_lines(name) for name in names], linespacing=0.95)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.set_ylabel("")
    axes.grid(axis="x")


def missing(axes: Axes, row: float, reason: str, characters: int = 46) -> None:
    """Write the reason for missing data in place of the data."""
    text = textwrap.shorten(f"missing: {reason}", characters, placeholder=" …")
    axes.text(0.01, row, text, transform=axes.get_yaxis_transform(), fontsize=style.SMALL, color=style.FAINT,
              va="center", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip


def beside(axes: Axes, row: float, words: str) -> None:
    """Write `words` to the right of a row."""
    axes.text(1.03, row, words, transform=axes.get_yaxis_transform(), fontsize=style.SMALL, va="center_baseline",
              linespacing=1.0)  # fmt: skip


def small_text(axes: Axes, x: float, y: float, words: str, **how: Any) -> None:
    """Write `words` in the size of text next to data; `x` and `y` are shares of the axes."""
    axes.text(x, y, words, transform=axes.transAxes, fontsize=style.SMALL, **how)


def is_log(values: Sequence[Floats]) -> bool:
    """Return True if values need a log axis: all are positive, and their maximum over minimum exceeds SPREAD."""
    filled = [each for each in values if len(each)]
    if not filled or any(each.min() <= 0 for each in filled):
        return False
    return bool(max(each.max() for each in filled) > SPREAD * min(each.min() for each in filled))


def scale_of(axes: Axes, what: str, *, log: bool, from_zero: bool = True) -> None:
    """Set up the horizontal axis: logarithmic and labelled as such, or linear, from zero unless told otherwise."""
    if log:
        log_axis(axes)
    else:
        if from_zero:
            low, high = axes.get_xlim()
            axes.set_xlim(min(0.0, low), 1.04 * high)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(plain_ticks())
    axes.set_xlabel(f"{what}{', log scale' if log else ''}")


def log_axis(axes: Axes, which: Literal["x", "y"] = "x", ticks: Iterable[float] = (), base: int = 10) -> None:
    """Set up a logarithmic axis with enough tick labels to read values, and few enough not to overlap.

    `ticks` are fixed tick positions, if any, such as the values of a varied setting.
    """
    axis = {"x": axes.xaxis, "y": axes.yaxis}[which]
    {"x": axes.set_xscale, "y": axes.set_yscale}[which]("log", base=base)
    low, high = axis.get_view_interval()
    decades = math.log10(high / low)
    between = (1.0, 2.0, 5.0) if decades < 1.3 else (1.0, 3.0) if decades < 2.2 else (1.0,)
    if ticks:
        axis.set_major_locator(FixedLocator(sorted(ticks)))
        axis.set_minor_locator(NullLocator())
    else:  # LogLocator crowds a span that contains one multiple of `between`, or none
        axis.set_major_locator(MaxNLocator(3) if decades < SHORT else LogLocator(subs=between, numticks=8))
    axis.set_major_formatter(plain_ticks())
    axis.set_minor_formatter(NullFormatter())


def log_axes(axes: Axes, across: str, up: str, ticks: Iterable[float] = ()) -> None:
    """Set up two logarithmic axes with a grid and these labels; `ticks` are those of the horizontal one."""
    log_axis(axes, ticks=ticks)
    log_axis(axes, "y")
    axes.grid()
    axes.set(xlabel=across, ylabel=up)


def rows_of(estimate: Estimate, factor: float = 1.0, **keys: Any) -> list[dict[str, Any]]:
    """Return the value and the ends of its interval, times `factor`, as rows of a frame for `lines`."""
    interval = [] if estimate.low is None or estimate.high is None else [estimate.low, estimate.high]
    return [{**keys, "value": factor * value} for value in (estimate.value, *interval)]


def first(values: pd.Series) -> float:
    """Return the value from rows made by `rows_of`."""
    return float(values.iloc[0])


def ends(values: pd.Series) -> tuple[float, float]:
    """Return the ends of the interval from rows made by `rows_of`."""
    return float(values.min()), float(values.max())


def lines(
    axes: Axes, data: Sequence[dict[str, Any]] | pd.DataFrame, x: str, y: str, look: Look, *,
    orient: Literal["x", "y"] = "x", joined: bool = True, hollow: bool = False, legend: bool = False,
    dashes: Mapping[str, Any] | bool = False, **how: Any,
) -> None:  # fmt: skip
    """Draw one line per "system" of `data`, in row order, with the system's colour and marker.

    Rows with the same position are a value and the ends of its interval (`rows_of`); unsorted, as the value is first.
    """
    frame = pd.DataFrame(data)
    names = list(dict.fromkeys(frame["system"]))
    before, mark_only = len(axes.lines), {} if joined else {"linestyle": ""}
    sns.lineplot(
        frame, x=x, y=y, hue="system", style="system", hue_order=names, style_order=names, dashes=dashes,
        palette={name: style.ink(look.colours[name]) for name in names}, markers=look.shapes, estimator=first,
        errorbar=ends, err_style="bars", err_kws={"linewidth": 1.0}, orient=orient, sort=False, legend=legend, ax=axes,
        **mark_only, **how,
    )  # fmt: skip
    faces = {style.ink(look.colours[name]): look.colours[name] for name in names}
    shown = [*axes.lines[before:], *(axes.legend_.legend_handles if legend and axes.legend_ else ())]
    for line in (each for each in shown if isinstance(each, Line2D)):
        if face := faces.get(str(line.get_color())):  # not one of an earlier call, which the legend shows too
            line.set_markeredgecolor(line.get_color())
            line.set_markerfacecolor("white" if hollow else face)


def tails(axes: Axes, samples: Mapping[str, Floats], look: Look, *, legend: bool) -> None:
    """Draw the share of each system's samples above a value (complementary ECDF), both axes logarithmic."""
    frames = []
    for name, values in samples.items():
        n, ordered = len(values), np.sort(values)
        ranks = np.unique(np.concatenate([np.linspace(0, n - 1, STEPS), n - np.geomspace(1, n, STEPS)]).astype(int))
        # Each drawn rank represents those since the previous one, so that a frame is much shorter than a run.
        frames.append(pd.DataFrame({"system": name, "value": ordered[ranks], "stands for": np.diff(ranks, prepend=-1)}))
    sns.ecdfplot(
        pd.concat(frames), x="value", weights="stands for", complementary=True, hue="system", hue_order=list(samples),
        palette={name: style.ink(look.colours[name]) for name in samples}, legend=legend, ax=axes,
    )  # fmt: skip
    axes.set_yscale("log", nonpositive="clip")  # the last step ends at 0
    axes.set_ylim(0.7 / max(map(len, samples.values())), 1.3)
    log_axis(axes)


def legend_beside(axes: Axes, words: dict[str, str] | None = None) -> None:
    """Move the legend of `lines` to the right of the axes; `words` maps system names to longer labels."""
    assert axes.legend_ is not None
    share = 0.98 - axes.get_position().x1
    inches = share * axes.figure.bbox.width / axes.figure.dpi - 0.3  # less a line and its marker
    for text in axes.legend_.texts:
        said = (words or {}).get(text.get_text(), text.get_text())
        text.set_text(style.few_lines(said, int(inches / style.CHARACTER)))
    sns.move_legend(axes, "upper left", bbox_to_anchor=(1.02, 1.04), title=None, handlelength=1.4, handletextpad=0.4,
                    borderaxespad=0.0)  # fmt: skip


def boxes(groups: Sequence[Group], what: str, unit: str) -> tuple[style.Frame, list[str]]:
    """Draw box plots, one row per system: quartiles, whiskers to 1.5 IQR, points beyond; return notes to print."""
    made, axes = style.single(style.COLUMN, ROW * len(groups) + 0.05, LEFT, 0.66)
    names = [group.title for group in groups]
    few = [group for group in groups if len(group.values) < FEWEST_FOR_BOX]
    kept = {group.title: thinned(group.values) for group in groups if group not in few}
    sns.boxplot(
        pd.DataFrame([(name, value) for name, values in kept.items() for value in values], columns=["system", "value"]),
        x="value", y="system", order=names, hue="system", hue_order=names, legend=False, dodge=False, width=0.52,
        palette={group.title: group.colour for group in groups}, linecolor=style.INK, linewidth=0.7, saturation=1,
        flierprops={"marker": "|", "markersize": 3, "markeredgewidth": 0.5}, ax=axes,
    )  # fmt: skip
    for row, group in enumerate(groups):
        if len(group.values) == 0:
            missing(axes, row, group.reason)
            continue
        beside(axes, row, f"{number(float(np.median(group.values)), 3)} {unit}\nn {len(group.values):,}")
        if group in few:
            sns.stripplot(x=group.values, y=row, color=group.colour, size=4, linewidth=0.7, jitter=False, orient="h",
                          edgecolor=style.ink(group.colour), native_scale=True, ax=axes)  # fmt: skip
    small_text(axes, 1.03, 1.0, "median", color=style.FAINT, va="bottom")
    titles(axes, names)
    scale_of(axes, f"{what} ({unit})", log=is_log([group.values for group in groups]))
    notes = ["Boxes show quartiles and median, whiskers reach to 1.5 IQR, strokes show all samples beyond."]
    if any(len(group.values) > STEPS for group in groups):
        notes[0] = f"{notes[0][:-1]} (of {STEPS + 1:,} samples per system, evenly by rank)."
    if any(len(group.values) for group in few):
        notes.append(f"A system with fewer than {FEWEST_FOR_BOX} samples shows each as a point.")
    return made, notes


def thinned(values: Floats, most: int = STEPS) -> Floats:
    """Return `most` + 1 of `values` at equally spaced ranks, sorted, to limit the size of a frame for long runs."""
    return np.quantile(values, np.linspace(0, 1, most + 1)) if len(values) > most + 1 else np.sort(values)


@dataclass(frozen=True, slots=True)
class Count:
    """Number of events of one run; `state` is the cold state of run 0."""

    value: float
    cold: bool = False
    state: str = ""
    disturbed: bool = False


def counts(
    context: FigureContext,
    rows: Sequence[tuple[str, Series, Sequence[Count]]],
    what: str,
    printed: Mapping[str, Sequence[float]],
    published: str,
) -> tuple[style.Frame, list[str]]:
    """Draw a row per title and a point per run, hollow for run 0; a row without counts shows the reason.

    `printed` are a publication's numbers by title: upright ticks across the row, which the legend calls `published`.
    """
    made, axes = style.single(style.COLUMN, ROW * len(rows) + 0.05, LEFT, 0.86)
    names = [title for title, _, _ in rows]
    any_cold = any(each.cold for _, _, found in rows for each in found)
    for row, (title, series, found) in enumerate(rows):
        if not found:
            missing(axes, row, series.missing())
            continue
        frame = pd.DataFrame({"value": [each.value for each in found], "run 0": [each.cold for each in found]})
        colour = context.colour(series)
        sns.stripplot(
            frame.assign(row=title), x="value", y="row", order=names, hue="run 0", hue_order=[True, False],
            dodge=any_cold, palette=["white", colour], marker=context.look.shapes[series.title], size=4.5,
            linewidth=0.8, jitter=False, edgecolor=style.ink(colour), legend=False, ax=axes,
        )  # fmt: skip
        axes.vlines(printed.get(title, ()), row - TICK, row + TICK, colors=style.INK, linewidth=1.0, zorder=2)
        hot = frame.loc[~frame["run 0"], "value"]
        disturbed = sum(each.disturbed for each in found)
        states = ", ".join(dict.fromkeys(each.state for each in found if each.cold))
        words = f"{(hot if len(hot) else frame['value']).median():,.0f}, n {len(found)}"
        words += (f"\nrun 0: {states}" if states else "") + (f"\n{disturbed} DISTURBED" if disturbed else "")
        beside(axes, row, words)
    heads = [(1.03, "left", "median, hot" if any_cold else "median")]
    heads += [(0.96, "right", f"black ticks: {published}")] if any(printed.values()) else []
    for place, side, text in heads:
        small_text(axes, place, 1.0, text, color=style.FAINT, va="bottom", ha=side)
    titles(axes, names)
    shown = [[*(each.value for each in found), *printed.get(title, ())] for title, _, found in rows if found]
    scale_of(axes, what, log=is_log([np.array(each) for each in shown]))
    return made, ["A point is a run: hollow for run 0, filled for hot runs."]


def spelt(estimate: Estimate, thousands: bool) -> str:
    """Return a short text of an estimate with its interval, with decimals according to the largest number:
    `93.5 [85.3, 99.2]`, `-0.00 [-5.70, 5.57]`."""
    unit = 1e3 if thousands else 1.0
    each = [end / unit for end in (estimate.value, estimate.low, estimate.high) if end is not None]
    largest = max(map(abs, each))
    decimals = 2 - math.floor(math.log10(largest)) if largest else 0
    value, *ends = (f"{round(one, decimals) + 0.0:,.{max(0, decimals)}f}" for one in each)
    return f"{value} [{', '.join(ends)}]" if len(ends) == 2 else value


type Point = tuple[Estimate | str, Series, bool]  # estimate or reason for its absence, series, filled marker


def point(
    compute: Callable[[Series], BootstrapEstimate], series: Series, *, filled: bool = True, where: str = ""
) -> Point:
    """Return what `compute` returns for `series` as a point or, after `where`, why there is none."""
    found = attempt("", partial(compute, series))
    return f"{where}{found.reason}" if isinstance(found, MissingCell) else found, series, filled


def metric_figure(name: str, metric: Metric) -> FigureSpec:
    """Return the figure of a metric: its value over the hot runs of each system, or why there is none."""
    return FigureSpec(name, metric.title, partial(_draw_metric, metric))


def _draw_metric(metric: Metric, context: FigureContext) -> DrawnFigure:
    every = context.run_set.select()
    rows = [(each.title, [point(partial(context.measures.hot, metric), each)]) for each in every]
    made = dots(context, rows, metric.unit)
    return context.finish(made, metric.title, [], [run for each in every for run in each.hot_runs])


def dots(
    context: FigureContext,
    rows: Sequence[tuple[str, Sequence[Point]]],
    what: str,
    *,
    line: float | None = None,
    log: bool = False,
    from_zero: bool = True,
    key: str = "",
) -> style.Frame:
    """Draw estimates with their intervals, and their text next to them, in one row per title.

    `key` says what filled and hollow markers are.
    """
    most = max((len(points) for _, points in rows), default=1)
    every = [each for _, points in rows for each, _, _ in points if isinstance(each, Estimate)]
    values = [abs(each.value) for each in every]
    thousands = max(values, default=0) >= 1e4 and min(values) >= 1e3
    right = max([1.0, *(LETTER * len(spelt(each, thousands)) for each in every)])
    made, axes = style.single(style.COLUMN, max(0.17 + 0.12 * most, ROW) * len(rows) + 0.05, LEFT, right)
    data: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for row, (_, points) in enumerate(rows):
        for place, (estimate, series, filled) in enumerate(points):
            y = row + (place - (len(points) - 1) / 2) * (0.7 / max(len(points), 1))
            if isinstance(estimate, str):
                missing(axes, y, estimate)
                continue
            data[filled] += rows_of(estimate, system=series.title, row=y)
            beside(axes, y, spelt(estimate, thousands))
    for filled, found in data.items():
        if found:
            lines(axes, found, "value", "row", context.look, orient="y", joined=False, hollow=not filled)
    if thousands:
        small_text(axes, 1.03, 1.0, "thousands", color=style.FAINT, va="bottom")
    if key:
        beyond = ("figure fraction", "axes fraction")
        axes.annotate(key, (0.01, 1.0), xycoords=beyond, fontsize=style.SMALL, color=style.FAINT, va="bottom")
    if line is not None:
        axes.axvline(line, color=style.INK, linewidth=0.7, linestyle=(0, (3, 2)))
    titles(axes, [title for title, _ in rows])
    scale_of(axes, what, log=log, from_zero=from_zero)
    return made


# By system title: pairs of setting and quantity on the linear scale, in order.
type Points = Mapping[str, Sequence[tuple[float, BootstrapEstimate]]]


def fitted(
    context: FigureContext,
    title: str,
    systems: Points,
    labels: tuple[str, str],
    notes: Sequence[str],
    runs: Sequence[Run],
) -> DrawnFigure:
    """Draw the plot. `labels` are for the setting and the quantity; the vertical axis starts at 0."""
    made, axes = style.single(*BESIDE_LEGEND)
    rows = [
        row for name, points in systems.items() for setting, quantity in points
        for row in rows_of(quantity.estimate(""), system=name, setting=setting)
    ]  # fmt: skip
    lines(axes, rows, "setting", "value", context.look, joined=False, legend=True)
    words = {}
    for name, points in systems.items():
        if len(points) > 1:
            slope = slope_of(points).value
            start, ends = intercept_of(points, slope), [points[0][0], points[-1][0]]
            sns.lineplot(x=ends, y=[start + slope * end for end in ends], color=style.ink(context.look.colours[name]),
                         ax=axes)  # fmt: skip
            words[name] = f"{name}: {slope:.1f}"
    legend_beside(axes, words)
    axes.set_ylim(bottom=0)
    axes.grid()
    axes.set(xlabel=labels[0], ylabel=labels[1])
    return context.finish(made, title, [*notes, context.run_set.coverage], runs)


type StackedRow = tuple[str, tuple[tuple[str, float], ...], str]  # title, parts, note or reason


def stacked(
    rows: list[StackedRow],
    what: str,
    *,
    total: bool = True,
    most: float | None = None,
    width: float = style.COLUMN,
) -> style.Frame:
    """Draw one bar of named parts per row, with a legend above; a row without parts shows the reason."""
    tall, left = (ROW, LEFT) if width == style.COLUMN else (0.2, 2.4)
    made = style.frame(width, tall * len(rows) + 0.24)
    axes = made.axes(left, 0.8, height=tall * len(rows))
    frame = pd.DataFrame([dict(parts) for _, parts, _ in rows], dtype=float).fillna(0.0)
    # Use pandas: seaborn has no stacked bars of given values.
    frame.plot.barh(
        stacked=True, width=0.66, color=[style.PARTS[part] for part in frame], edgecolor=style.FAINT, linewidth=0.3,
        legend=False, ax=axes,
    )  # fmt: skip
    longest = most or float(frame.sum(axis=1).max()) or 1.0
    for row, (_, parts, note) in enumerate(rows):
        if not parts:
            missing(axes, row, note)
            continue
        end = sum(size for _, size in parts)
        axes.text(end + 0.012 * longest, row, f"{number(end, 3)} {note}".strip() if total else note,
                  fontsize=style.SMALL, va="center_baseline")  # fmt: skip
    axes.set_xlim(0, longest * (1.0 if most else 1.05))
    names = [title for title, _, _ in rows]
    titles(axes, names)
    if width != style.COLUMN:
        axes.set_yticks(range(len(rows)), names)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(plain_ticks())
    axes.set_xlabel(what)
    labels = [part.replace("_", " ") for part in frame]
    axes.legend(labels, loc="lower left", bbox_to_anchor=(0, 0.98), ncols=7, handlelength=0.7, handleheight=0.7,
                handletextpad=0.3, columnspacing=1.0, borderaxespad=0.2)  # fmt: skip
    return made


def heat(
    context: FigureContext,
    title: str,
    counts: pd.DataFrame,
    most: Sequence[int],
    notes: Sequence[str],
    runs: Sequence[Run],
) -> DrawnFigure:
    """Draw a heat map of `counts`, [rows, columns] with labels and NaN for none; `most` is the largest one per row."""
    made, axes = style.single(style.PAGE, 0.9 + 0.28 * len(counts), 1.75, 0.1)
    sns.heatmap(
        counts.div(most, axis=0), annot=counts, fmt=",.0f", cmap="Blues", vmin=0, vmax=1.4, cbar=False, linewidths=0.5,
        annot_kws={"fontsize": style.SMALL, "color": style.INK}, ax=axes,
    )  # fmt: skip
    axes.tick_params(length=0, labelsize=style.SMALL)
    axes.tick_params(axis="x", rotation=20)
    return context.finish(made, title, [*notes, context.run_set.coverage], runs)
