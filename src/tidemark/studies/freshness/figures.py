"""Figures of the study: the age of events by cost, and the lag of tables behind the topic during a window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from tidemark.analysis.formatting import listed
from tidemark.analysis.measures import NotAvailable
from tidemark.analysis.metrics import Metric, require
from tidemark.planner.frontier import PolicyCost, unbeaten
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec, Look
from tidemark.results.tables.table import notes_of
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import by_system
from tidemark.studies.freshness import metrics
from tidemark.studies.freshness.capacity import AGE_P95, STEP_CPU, STEP_FILES, OfStep, capacity
from tidemark.studies.freshness.frontier import PipelineCost, frontier_sentence, pipeline_costs, policy_costs
from tidemark.studies.freshness.settings import FreshnessSettings

NOTES = notes_of(__file__)
COST_TITLE, LAG_TITLE = "Freshness against cost", "How far tables lag behind the topic"
FRONTIER_TITLE = "Freshness against cost with upkeep"
PROCESSOR, DISK = (metrics.CPU, STEP_CPU), (metrics.FILES, STEP_FILES)


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("freshness-cost", COST_TITLE, cost)
    yield FigureSpec("freshness-lag", LAG_TITLE, over_time)
    yield FigureSpec("freshness-frontier", FRONTIER_TITLE, frontier, optional=True)


@dataclass(frozen=True, slots=True)
class Point:
    """Series of one rate, or the highest rate that a climbing series keeps up with."""

    age: float  # s
    cost: float  # per million events
    said: str
    is_capacity: bool


def _named(series: Series) -> str:
    settings = FreshnessSettings.of(series)
    return "at capacity" if settings.steps else settings.policy


def _point(context: FigureContext, series: Series, quantity: Metric, of_step: OfStep) -> Point | None:
    """Return the point of `series`, or None if it has no age or no cost."""
    climbs = bool(FreshnessSettings.of(series).steps)
    try:
        rate = capacity(series.counted_runs).rate if climbs else 0
        asked = (AGE_P95.at(rate), of_step.at(rate)) if climbs else (metrics.SEEN_P95, quantity)
        age, spent = (context.measures.value(each, series).value for each in asked)
    except NotAvailable:
        return None
    return Point(age, spent, f"{rate:,}/s" if climbs else _named(series), climbs)


def _say(axes: Axes, frame: pd.DataFrame, look: Look, others: pd.DataFrame | None = None) -> None:
    """Label each mark, at the nearest position that overlaps no mark and no other label.

    With `others`, marks without a label, labels end where the axes do, as other axes are beside them.
    """
    dots = matplotlib.rcParams["figure.dpi"] / 72  # pixels per point
    marks = [axes.transData.transform((point.age, point.cost)) for point in frame.itertuples()]
    bare = [] if others is None else [axes.transData.transform((each.age, each.cost)) for each in others.itertuples()]
    taken = [Bbox.from_bounds(x - 3 * dots, y - 3 * dots, 6 * dots, 6 * dots) for x, y in (*marks, *bare)]
    places = [(far, turn) for far in range(4, 40, 4) for turn in np.linspace(0, 2 * np.pi, 16, endpoint=False)]
    for point, (x, y) in zip(frame.itertuples(), marks, strict=True):
        wide, tall = 72 * style.CHARACTER * len(point.said), style.SMALL
        for far, turn in places:
            right, up = (far + wide / 2) * np.cos(turn), (far + tall / 2) * np.sin(turn)
            box = Bbox.from_bounds(x + dots * (right - wide / 2), y + dots * (up - tall / 2), dots * wide, dots * tall)
            if (
                not box.count_overlaps(taken)
                and axes.bbox.padded(dots * tall).fully_containsx(box.x0)
                and (others is None or axes.bbox.fully_containsx(box.x1))
                and (axes.bbox.fully_containsy(box.y0) and axes.bbox.fully_containsy(box.y1))
            ):
                break
        taken.append(box)
        axes.annotate(
            point.said, (point.age, point.cost), xytext=(right, up), textcoords="offset points", ha="center",
            va="center", fontsize=style.SMALL, color=style.ink(look.colours[point.system]),
            arrowprops={"arrowstyle": "-", "color": style.FAINT, "linewidth": 0.4} if far > 8 else None,
        )  # fmt: skip


def cost(context: FigureContext) -> DrawnFigure:
    """Draw the p95 age when seen (across) by CPU-seconds (left) and by files (right); all axes logarithmic."""
    every = metrics.steady(context.run_set)
    rates = require([FreshnessSettings.of(each).rate for each in every if each.runs], "no system was measured")
    rate = max(sorted(set(rates)), key=rates.count)  # that of most policies
    climbed = metrics.climbed(context.run_set)
    at_rate = [each for each in every if FreshnessSettings.of(each).rate == rate]
    shown = [each for of_system in by_system((*at_rate, *climbed)) for each in of_system]
    made = style.frame(style.PAGE, 2.3)
    panels = made.pair(0.55, 0.6, 1.75)
    runs: list[Run] = []
    without: list[str] = []
    for axes, costs, what in zip(panels, (PROCESSOR, DISK), ("CPU-seconds", "files"), strict=True):
        found = [(each, _point(context, each, *costs)) for each in shown]
        points = [(each, point) for each, point in found if point is not None]
        runs += [run for each, _ in points for run in each.counted_runs if run not in runs]
        if axes is panels[0]:
            without = [f"{each.title} {_named(each)}" for each, point in found if point is None]
        if not points:
            axes.text(0.5, 0.5, f"{what}: not seen of any", transform=axes.transAxes, fontsize=style.SMALL, ha="center")
            continue
        frame = pd.DataFrame([{"system": each.title, **asdict(point)} for each, point in points])
        frame = frame.sort_values(["system", "age", "cost"])
        others, most = frame[~frame["is_capacity"]], frame[frame["is_capacity"]]
        axes.margins(x=0.12)  # for labels beside the outermost marks
        if len(others):
            plots.lines(axes, others, "age", "cost", context.look, legend=True)
        if len(most):
            plots.lines(axes, most, "age", "cost", context.look, joined=False, hollow=True, markersize=6,
                        legend=not len(others))  # fmt: skip
        plots.log_axes(axes, "age when seen, p95 (s), log scale", f"{what}, a million events")
        _say(axes, frame, context.look)
    require(runs, "no run has an age and a cost")
    last, *rest = [axes for axes in reversed(panels) if axes.legend_]
    for axes in rest:
        axes.legend([], [], frameon=False)
    plots.legend_beside(last)
    encodings = sorted({FreshnessSettings.of(each).encoding for each in shown})
    notes = [*NOTES("freshness-cost", rate=rate, encodings=" or ".join(encodings)), context.run_set.coverage]
    notes += [f"Not drawn: {', '.join(without)}."] if without else []
    return context.finish(made, COST_TITLE, notes, runs)


def frontier(context: FigureContext) -> DrawnFigure:
    """Draw the p99 age when seen (across) by CPU-seconds, a mark per policy of upkeep, in a panel per rate.

    Policies that no other one beats are joined; with several rates, only they and the pipelines have labels.
    """
    every = require(policy_costs(context.measures), "no policy of upkeep was measured")
    rates = sorted({cost.rate for _, cost in every})
    piped = {rate: pipeline_costs(context.measures, rate) for rate in rates}
    of_pipelines = [each for rate in rates for each in piped[rate]]
    several = len(rates) > 1
    figure = Figure()
    panels = [figure.add_subplot() for _ in rates]
    made = style.tiled(figure, panels, 1 + several, tall=2.1 if several else 3.0, gap=0.62, left=0.5, right=1.75,
                       above=0.15 if several else 0.0)  # fmt: skip
    owner = panels[several]  # of the legend, right above
    for axes, rate in zip(panels, rates, strict=True):
        found = [(series, cost) for series, cost in every if cost.rate == rate]
        best = unbeaten(cost for _, cost in found)
        axes.margins(x=0.2, y=0.1)  # for labels beside the outermost marks
        policies = _marks([(series, cost, _upkeep_label(series)) for series, cost in found])
        intervals = _marks([(each.series, each, each.interval) for each in piped[rate]])
        for marks, drawn, hollow in ((policies, [series for series, _ in every], False),
                                     (intervals, [each.series for each in of_pipelines], True)):  # fmt: skip
            here = pd.concat([marks, _unmarked(drawn, marks)]) if axes is owner else marks
            if len(here):
                plots.lines(axes, here, "age", "cost", context.look, joined=False, hollow=hollow, legend=axes is owner)
        line = [each.fresh_s for each in best], [each.cpu_s for each in best]
        axes.plot(*line, color=style.FAINT, linewidth=0.8, zorder=0)
        up = "CPU-s, a million events" if several else "CPU-seconds, a million events, log scale"
        plots.log_axes(axes, "age when seen, p99 (s), log scale", up)
        named = _marks([(series, cost, _upkeep_label(series)) for series, cost in found if cost in best])
        _say(axes, pd.concat([named if several else policies, intervals]), context.look, policies if several else None)
        if several:
            axes.set_title(f"{rate:,} events/s", loc="left", fontsize=style.TEXT)
    plots.legend_beside(owner)
    said = " and ".join(f"{rate:,}" for rate in rates)
    notes = [*NOTES("freshness-frontier", rate=said), context.run_set.coverage]
    if several:
        notes.append("Only policies that no other one beats, and pipelines, have labels.")
    if of_pipelines:
        words = f" ({listed([each.words for each in of_pipelines])})" if not several else ""
        notes.append(
            f"Hollow: pipelines, at the commit interval that they are told{words}. "
            "Their stalls are not seen from outside, so they are not compared with the line."
        )
    runs = [run for series, _ in every for run in series.counted_runs]
    runs += [run for each in of_pipelines for run in each.series.counted_runs]
    return context.finish(made, FRONTIER_TITLE, notes, runs, frontier_sentence([cost for _, cost in every]))


MARK = ("system", "age", "cost", "said")


def _marks(points: Sequence[tuple[Series, PolicyCost | PipelineCost, str]]) -> pd.DataFrame:
    """Return a row per mark, with its label."""
    rows = [(series.title, cost.fresh_s, cost.cpu_s, said) for series, cost, said in points]
    return pd.DataFrame(rows, columns=MARK).sort_values([*MARK[:3]])


def _unmarked(every: Sequence[Series], marks: pd.DataFrame) -> pd.DataFrame:
    """Return rows without a mark for the legend: the systems of `every` that have none here."""
    seen = set(marks["system"])
    return pd.DataFrame({"system": [title for title in dict.fromkeys(s.title for s in every) if title not in seen]})


def _upkeep_label(series: Series) -> str:
    settings = FreshnessSettings.of(series)
    return f"{settings.policy}, {settings.upkeep.replace('-', ' ')}"


def over_time(context: FigureContext) -> DrawnFigure:
    """Draw the lag in seconds (left) and in events (right) over the window, for systems with equal commit intervals."""
    chosen = metrics.alike([each for each in metrics.steady(context.run_set) if each.runs])
    made = style.frame(style.PAGE, 2.3)
    panels = made.pair(0.55, 0.6, 1.75)
    runs: list[Run] = []
    frames: list[pd.DataFrame] = []
    without: list[str] = []
    for series in chosen:
        with suppress(NotAvailable):
            run = series.counted_runs[0]
            found = metrics.lag(run)
            kinds = {"system": series.title, "at": found.at_s, "lag (s)": found.oldest_s, "lag (events)": found.events}
            frames.append(pd.DataFrame(kinds))
            runs.append(run)
            continue
        without.append(series.title)
    require(runs, "no run has seen all of its events")
    for axes, what in zip(panels, ("lag (s)", "lag (events)"), strict=True):
        plots.lines(axes, pd.concat(frames), "at", what, context.look, legend=axes is panels[1], markersize=2.2)
        plots.log_axis(axes, "y")
        axes.grid()
        axes.set(xlabel="time in the window (s)", ylabel=f"{what}, log scale")
    plots.legend_beside(panels[1])
    rate = FreshnessSettings.of(chosen[0]).rate
    encodings = sorted({FreshnessSettings.of(each).encoding for each in chosen})
    notes = [
        f"{rate:,} events a second are due, as {' or '.join(encodings)}, commits {metrics.policy_of(chosen[0])}. Right "
        "before a reader sees more: the age of the oldest unseen event, and the number of unseen events. A point is "
        f"the most in 1/{metrics.STRETCHES} of the time until all were seen.",
        context.run_set.coverage,
    ]
    notes += [f"Not drawn: {listed(without)}."] if without else []
    return context.finish(made, LAG_TITLE, notes, runs)
