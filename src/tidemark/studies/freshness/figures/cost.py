"""The figure of the study: how old events are when they are seen, against what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from tidemark.analysis.measures import Absent
from tidemark.analysis.quantities import Quantity
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.freshness.climbs import AGE_P95, STEP_CPU, STEP_FILES, OfStep, capacity
from tidemark.studies.freshness.parts import climbed, of, runs_of, undisturbed
from tidemark.studies.freshness.quantities import CPU, FILES, SEEN_P95
from tidemark.studies.freshness.settings import Policy, shape_of

TITLE = "Freshness against cost"
PROCESSOR, DISK = (CPU, STEP_CPU), (FILES, STEP_FILES)
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
    is_by_rows: bool  # which is often beside one by the clock: its words stand below the mark


def _named(series: Series) -> str:
    return "at capacity" if shape_of(series.mode).steps else shape_of(series.mode).policy


def _point(studio: Studio, series: Series, steady: Quantity, of_step: OfStep) -> Point | None:
    """None where `series` has no age or no cost."""
    shape = shape_of(series.mode)
    climbs, by_rows = bool(shape.steps), Policy.parse(shape.policy).rows is not None
    try:
        rate = capacity(runs_of(series)).rate if climbs else 0
        asked = (AGE_P95.at(rate), of_step.at(rate)) if climbs else (SEEN_P95, steady)
        age, spent = (of(studio.measures, each, series).value for each in asked)
    except Absent:
        return None
    return Point(age, spent, f"{rate:,}/s" if climbs else _named(series), climbs, by_rows)


def cost(studio: Studio) -> Drawn:
    """p95 of the age when a reader sees an event (across) against CPU-seconds (left) and files (right), both log."""
    every = undisturbed(studio.run_set)
    rate = _rate(every)
    systems: dict[str, list[Series]] = {}
    for series in (*every, *climbed(studio.run_set)):
        if rate == shape_of(series.mode).rate or shape_of(series.mode).steps:
            systems.setdefault(series.system, []).append(series)
    made = style.frame(style.PAGE, 2.3)
    panels = made.pair(0.55, 0.6, 1.75)
    runs: list[Run] = []
    drawn: set[Axes] = set()
    without: list[str] = []
    for place, (_, listed) in enumerate(sorted(systems.items())):
        colour, mark = studio.colour(listed[0]), MARKS[place % len(MARKS)]
        for axes, costs in zip(panels, (PROCESSOR, DISK), strict=True):
            points = []
            for series in listed:
                point = _point(studio, series, *costs)
                if point is not None:
                    points.append(point)
                    drawn.add(axes)
                    runs += [run for run in runs_of(series) if run not in runs]
                elif axes is panels[0]:
                    without.append(f"{series.title} {_named(series)}")
            steady = sorted((each.age, each.cost) for each in points if not each.is_capacity)
            ages, spent = [age for age, _ in steady], [spent for _, spent in steady]
            axes.plot(ages, spent, f"{mark}-", color=colour, linewidth=0.9, markersize=3.8)
            for each in points:
                if each.is_capacity:
                    axes.plot(each.age, each.cost, mark, color=colour, markerfacecolor="none", markersize=6)
                place_of_words = (2, -9) if each.is_by_rows else (2, 3)
                axes.annotate(each.said, (each.age, each.cost), xytext=place_of_words, textcoords="offset points",
                              fontsize=style.SMALL - 1.5, color=style.ink(colour))  # fmt: skip
        style.name_beside(panels[1], place, colour, mark, listed[0].title)
    if not runs:
        raise Absent("no run has an age and a cost")
    for axes, what in zip(panels, ("CPU-seconds", "files"), strict=True):
        if axes not in drawn:
            axes.text(0.5, 0.5, f"{what}: not seen of any", transform=axes.transAxes, fontsize=style.SMALL, ha="center")
            continue
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(plots.plain_ticks())
            axis.set_minor_formatter(NullFormatter())
        axes.grid()
        axes.set_xlabel("age when seen, p95 (s), log scale")
        axes.set_ylabel(f"{what}, a million events")
    encodings = sorted({shape_of(each.mode).encoding for listed in systems.values() for each in listed})
    notes = [
        f"{rate:,} events a second are due, as {' or '.join(encodings)}; a point is a writing policy, or the interval "
        "that a pipeline is told. Further left is younger, further down is cheaper. CPU-seconds: of who moves events "
        "and of the table's servers; files: data and metadata. Hollow: at the highest rate that the table keeps up "
        "with, beside the mark.",
        studio.run_set.coverage,
    ]
    notes += [f"Not drawn: {', '.join(without)}."] if without else []
    return studio.finish(made, TITLE, notes, runs)
