"""The figure of the study: how old events are when they are seen, against what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.ticker import LogLocator, NullFormatter

from tidemark.analysis.measures import Absent
from tidemark.analysis.quantities import Quantity
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.freshness.climbs import AT_CAPACITY_P95, CAPACITY, CPU_AT_CAPACITY, FILES_AT_CAPACITY
from tidemark.studies.freshness.parts import climbed, of, runs_of, undisturbed
from tidemark.studies.freshness.quantities import CPU, FILES, SEEN_P95
from tidemark.studies.freshness.settings import shape_of

TITLE = "Freshness against cost"
LINE = 0.105  # of the picture's height: a line of the legend
PROCESSOR, DISK = (CPU, CPU_AT_CAPACITY), (FILES, FILES_AT_CAPACITY)
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def sketches() -> Iterator[Sketch]:
    yield Sketch("freshness-cost", TITLE, cost)


def _rate(run_set: list[Series]) -> int:
    """The rate at which most policies were measured."""
    rates = [shape_of(each.mode).rate for each in run_set if each.runs]
    if not rates:
        raise Absent("no system was measured")
    return max(sorted(set(rates)), key=rates.count)


@dataclass(frozen=True, slots=True)
class Point:
    """A series of one rate, or the highest rate that one which climbs keeps up with."""

    age: float  # s
    cost: float  # a million events
    said: str
    is_capacity: bool


def _named(series: Series) -> str:
    return "at capacity" if shape_of(series.mode).steps else shape_of(series.mode).policy


def _point(studio: Studio, series: Series, steady: Quantity, at_capacity: Quantity) -> Point | None:
    """None where `series` has no age or no cost."""
    climbs = bool(shape_of(series.mode).steps)
    asked = (AT_CAPACITY_P95, at_capacity, CAPACITY) if climbs else (SEEN_P95, steady)
    try:
        age, spent, *rate = (of(studio.measures, each, series).value for each in asked)
    except Absent:
        return None
    return Point(age, spent, f"{rate[0]:,.0f}/s" if climbs else _named(series), climbs)


def cost(studio: Studio) -> Drawn:
    """p95 of the age when a reader sees an event (across) against CPU-seconds (left) and files (right), both log."""
    every = undisturbed(studio.run_set)
    rate = _rate(every)
    systems: dict[str, list[Series]] = {}
    for series in (*every, *climbed(studio.run_set)):
        if rate == shape_of(series.mode).rate or shape_of(series.mode).steps:
            systems.setdefault(series.system, []).append(series)
    made = style.frame(style.PAGE, 2.3)
    wide = (style.PAGE - 0.55 - 1.75 - 0.6) / 2
    panels = (made.axes(0.55, style.PAGE - 0.55 - wide), made.axes(0.55 + wide + 0.6, 1.75))
    runs: list[Run] = []
    without: list[str] = []
    for place, (_, listed) in enumerate(sorted(systems.items())):
        colour, mark = studio.colour(listed[0]), MARKS[place % len(MARKS)]
        for axes, costs in zip(panels, (PROCESSOR, DISK), strict=True):
            points = []
            for series in listed:
                point = _point(studio, series, *costs)
                if point is not None:
                    points.append(point)
                    runs += [run for run in runs_of(series) if run not in runs]
                elif axes is panels[0]:
                    without.append(f"{series.title} {_named(series)}")
            steady = sorted((each.age, each.cost) for each in points if not each.is_capacity)
            ages, spent = [age for age, _ in steady], [spent for _, spent in steady]
            axes.plot(ages, spent, f"{mark}-", color=colour, linewidth=0.9, markersize=3.8)
            for each in points:
                if each.is_capacity:
                    axes.plot(each.age, each.cost, mark, color=colour, markerfacecolor="none", markersize=6)
                axes.annotate(each.said, (each.age, each.cost), xytext=(2, 3), textcoords="offset points",
                              fontsize=style.SMALL - 1.5, color=style.ink(colour))  # fmt: skip
        panels[1].plot(1.06, 0.97 - LINE * place, mark, transform=panels[1].transAxes, color=colour, markersize=4,
                       clip_on=False)  # fmt: skip
        panels[1].text(1.12, 0.97 - LINE * place, style.two_lines(listed[0].title), transform=panels[1].transAxes,
                       fontsize=style.SMALL, color=style.ink(colour), va="center")  # fmt: skip
    if not runs:
        raise Absent("no run has an age and a cost")
    for axes, what in zip(panels, ("CPU-seconds", "files"), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(plots.plain_ticks())
            axis.set_minor_formatter(NullFormatter())
        axes.grid()
        axes.set_xlabel("age when seen, p95 (s), log scale")
        axes.set_ylabel(f"{what}, a million events")
    notes = [
        f"{rate:,} events a second are due; a point is a writing policy, or the interval that a pipeline is told. "
        "Further left is younger, further down is cheaper. CPU-seconds: of who moves events and of the table's "
        "servers; files: data and metadata. Hollow: at the highest rate that the table keeps up with, beside the mark.",
        studio.run_set.coverage,
    ]
    notes += [f"Not drawn: {', '.join(without)}."] if without else []
    return studio.finish(made, TITLE, notes, runs)
