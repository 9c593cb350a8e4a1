"""Tests of the studies' figures: planted values must appear at the right coordinates among the marks of the axes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from tests.runs.runset import DUCKLAKE, PYICEBERG, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.analysis.statistics import Estimate
from tidemark.planner.frontier import PolicyCost
from tidemark.results.figures import style
from tidemark.results.figures.context import DrawnFigure, FigureContext
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet
from tidemark.studies.deltars import figures as deltars
from tidemark.studies.freshness import figures as freshness
from tidemark.studies.freshness.frontier import PipelineCost
from tidemark.studies.ingest import figures
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, STAGED
from tidemark.studies.lhbench import figures as lakes
from tidemark.studies.streams.metrics import QUANTITIES

TITLES = (DUCKLAKE.title, PYICEBERG.title)
type Values = dict[tuple[str, str], float]  # by title and mode


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> FigureContext:
    results = write_run_set(tmp_path_factory.mktemp("runs"), [DUCKLAKE, PYICEBERG], window_s=2)
    return FigureContext.of(Measures(RunSet.load(results), QUANTITIES))


def series(context: FigureContext, title: str, mode: str) -> Any:
    """Return a fake series with the fields that figures read, and the runs of the written series of `title`."""
    real = next(each for each in context.run_set.series if each.title == title)
    return SimpleNamespace(title=title, system=real.system, mode=mode, settings=(), runs=real.runs,
                           hot_runs=real.hot_runs, counted_runs=real.counted_runs, is_null_baseline=False)  # fmt: skip


def of(values: Values) -> Callable[[str, Any], Estimate]:
    """Return a replacement for `attempt` that gives each series its value in `values`, with an interval of ±10 %."""

    def attempt(unit: str, compute: Any) -> Estimate:
        asked = compute.args[-1]
        value = values[asked.title, asked.mode]
        return Estimate(value, 0.9 * value, 1.1 * value, 3, unit)

    return attempt


def marks(axes: Axes, title: str, context: FigureContext) -> list[tuple[float, float]]:
    """Return the sorted coordinates of the system's marks on the axes, without those of the legend."""
    found = [each for each in axes.lines if each.get_marker() == context.look.shapes[title]]
    return sorted((round(float(x), 3), round(float(y), 3)) for each in found for x, y in each.get_xydata())


def axes_of(draw: Callable[[], DrawnFigure]) -> list[Axes]:
    with style.applied():
        return list(draw().frame.figure.axes)


def test_commits_and_refusals_by_writers(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {(TITLES[0], "one-1"): 20.0, (TITLES[0], "one-4"): 50.0, (TITLES[0], "own-4"): 80.0,
              (TITLES[1], "one-1"): 3.0, (TITLES[1], "one-4"): 2.0}  # fmt: skip
    every = [[series(context, title, mode) for of_title, mode in values if of_title == title] for title in TITLES]
    monkeypatch.setattr(figures, "_by_system", lambda _: every)
    monkeypatch.setattr(figures, "attempt", of(values))
    (axes,) = axes_of(partial(figures.commits, context))
    assert [y for _, y in marks(axes, TITLES[0], context)] == [20.0, 50.0, 80.0]
    assert [y for _, y in marks(axes, TITLES[1], context)] == [3.0, 2.0]
    monkeypatch.setattr(figures, "attempt", of({key: value / 100 for key, value in values.items()}))
    (axes,) = axes_of(partial(figures.conflicts, context))
    assert [y for _, y in marks(axes, TITLES[1], context)] == [3.0, 2.0]
    assert axes.get_legend() is not None
    assert [text.get_text() for text in axes.get_legend().texts] == list(TITLES)


def test_responses_by_rate(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {(TITLES[0], "tail-one-50"): 8.0, (TITLES[0], "tail-one-90"): 30.0, (TITLES[1], "tail-staged-50"): 5.0}
    every = [[series(context, title, mode) for of_title, mode in values if of_title == title] for title in TITLES]
    monkeypatch.setattr(figures, "_by_rate", lambda _: every)
    monkeypatch.setattr(figures, "attempt", of(values))
    monkeypatch.setattr(figures, "overloaded", lambda each: each.mode == "tail-one-90")
    (axes,) = axes_of(partial(figures.rates, context))
    assert marks(axes, TITLES[0], context) == [(49.75, 8.0), (89.75, 30.0), (89.75, 30.0)]  # overload: marked twice
    assert marks(axes, TITLES[1], context) == [(50.25, 5.0)]
    assert [text.get_text().split(",")[0] for text in axes.get_legend().texts] == list(TITLES)


def test_grouped_requests(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def gains(_: Measures, policy: str) -> list[tuple[Any, Estimate, Estimate | None]]:
        factor = 4.0 if policy == STAGED else 2.0
        found = series(context, TITLES[0], f"{policy}-500x16")
        return [(found, Estimate(factor, 0.8 * factor, 1.5 * factor, 3, "x"), Estimate(1 / factor, None, None, 3, "x"))]

    monkeypatch.setattr(figures, "gains", gains)
    rates, tails = axes_of(partial(figures.group, context))
    assert marks(rates, TITLES[0], context) == [(2.0, figures.GROUP_APART), (4.0, -figures.GROUP_APART)]
    assert marks(tails, TITLES[0], context) == [(0.25, -figures.GROUP_APART), (0.5, figures.GROUP_APART)]
    printed = [x for each in rates.collections if isinstance(each, PathCollection) for x, _ in each.get_offsets()]
    assert sorted(printed) == sorted(
        ratio for policy in (STAGED, BUNDLED) for ratio in figures._printed(policy, 500, 16)[0]
    )


def test_commits_by_distance(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def median(value: float) -> Any:
        return SimpleNamespace(estimate=lambda unit: Estimate(value, value - 1, value + 2, 3, unit))

    points = {title: [(0, median(10.0 * n)), (20, median(10.0 * n + 60))] for n, title in enumerate(TITLES, 1)}
    every = {title: [series(context, title, "")] for title in TITLES}
    monkeypatch.setattr(figures, "far", lambda _: every)
    monkeypatch.setattr(figures, "medians", lambda _, each: points[each[0].title])
    monkeypatch.setattr("tidemark.results.figures.plots.slope_of", lambda _: Estimate(3.0, None, None, 3, ""))
    monkeypatch.setattr("tidemark.results.figures.plots.intercept_of", lambda *_: 10.0)
    (axes,) = axes_of(partial(figures.distance, context))
    assert marks(axes, TITLES[0], context) == [(0.0, 10.0), (20.0, 70.0)]
    assert marks(axes, TITLES[1], context) == [(0.0, 20.0), (20.0, 80.0)]
    assert [text.get_text() for text in axes.get_legend().texts] == [f"{title}: 3.0" for title in TITLES]


def test_freshness_against_cost(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        (TITLES[0], "100ms"): freshness.Point(0.3, 900.0, "100ms", False),
        (TITLES[0], "1s"): freshness.Point(1.2, 200.0, "1s", False),
        (TITLES[0], "1000rows"): freshness.Point(1.21, 201.0, "1000rows", False),
        (TITLES[0], "steps"): freshness.Point(2.0, 90.0, "16,000/s", True),
        (TITLES[1], "1s"): freshness.Point(1.3, 210.0, "1s", False),
    }
    every = [series(context, *key) for key in points]
    settings = SimpleNamespace(rate=1000, steps=0, encoding="json")
    monkeypatch.setattr("tidemark.studies.freshness.metrics.steady", lambda _: every)
    monkeypatch.setattr("tidemark.studies.freshness.metrics.climbed", lambda _: [])
    monkeypatch.setattr(freshness, "FreshnessSettings", SimpleNamespace(of=lambda _: settings))
    monkeypatch.setattr(freshness, "_point", lambda _, each, *__: points[each.title, each.mode])
    for axes in axes_of(partial(freshness.cost, context)):
        assert marks(axes, TITLES[0], context) == [(0.3, 900.0), (1.2, 200.0), (1.21, 201.0), (2.0, 90.0)]
        assert marks(axes, TITLES[1], context) == [(1.3, 210.0)]
        words = [text for text in axes.texts if text.get_text() in {point.said for point in points.values()}]
        boxes = [text.get_window_extent().shrunk(0.8, 0.8) for text in words]
        assert len(boxes) == len(points)
        assert not any(box.count_overlaps([other for other in boxes if other is not box]) for box in boxes)


def policies(
    context: FigureContext, title: str, rate: int, planted: dict[str, tuple[float, float, float]]
) -> list[Any]:
    """Return fake series of policies of upkeep with their costs: p99 age, CPU-seconds, stall."""
    return [
        (
            SimpleNamespace(**{**vars(series(context, title, name)), "settings": tuple(
                {"policy": "100ms", "rate": rate, "upkeep": name}.items())}),
            PolicyCost("any", title, "thesis", rate, name, *costs),
        )
        for name, costs in planted.items()
    ]  # fmt: skip


PLANTED = {"none": (0.3, 90.0, 0.1), "merge-50": (0.4, 40.0, 0.5), "all-50": (0.5, 41.0, 0.6)}


def test_policies_on_the_frontier_are_joined(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    every = policies(context, TITLES[0], 1000, PLANTED)
    piped = series(context, TITLES[1], "1s")
    piped = SimpleNamespace(**{**vars(piped), "settings": (("policy", "1s"), ("rate", 1000))})
    monkeypatch.setattr(freshness, "policy_costs", lambda _: every)
    monkeypatch.setattr(freshness, "pipeline_costs", lambda *_: [PipelineCost(piped, 0.2, 30.0)])
    (axes,) = axes_of(partial(freshness.frontier, context))
    assert marks(axes, TITLES[0], context) == [(0.3, 90.0), (0.4, 40.0), (0.5, 41.0)]
    joined = [line.get_xydata().tolist() for line in axes.lines if line.get_zorder() == 0]
    assert joined == [[[0.3, 90.0], [0.4, 40.0]]], "the third is beaten by the second"
    assert marks(axes, TITLES[1], context) == [(0.2, 30.0)], "a pipeline beats no policy: its stalls are not known"
    assert {text.get_text() for text in axes.texts} == {"100ms, none", "100ms, merge 50", "100ms, all 50", "1s"}


def test_each_rate_has_its_own_frontier(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {"none": (0.2, 500.0, 0.1)}
    every = [*policies(context, TITLES[0], 1000, PLANTED), *policies(context, TITLES[1], 10, slow)]
    monkeypatch.setattr(freshness, "policy_costs", lambda _: every)
    monkeypatch.setattr(freshness, "pipeline_costs", lambda *_: [])
    shown = axes_of(partial(freshness.frontier, context))
    assert [axes.get_title("left") for axes in shown] == ["10 events/s", "1,000 events/s"]
    joined = [line.get_xydata().tolist() for axes in shown for line in axes.lines if line.get_zorder() == 0]
    assert joined == [[[0.2, 500.0]], [[0.3, 90.0], [0.4, 40.0]]]
    labels = [{text.get_text() for text in axes.texts} for axes in shown]
    assert labels == [{"100ms, none"}, {"100ms, none", "100ms, merge 50"}], "a policy that is beaten has none"
    (legend,) = [axes.get_legend() for axes in shown if axes.get_legend()]
    assert {text.get_text() for text in legend.texts} == set(TITLES)


def test_lags_over_time(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [series(context, title, "1s-200-json") for title in TITLES]
    found = SimpleNamespace(at_s=np.array([1.0, 2.0]), oldest_s=np.array([0.5, 4.0]), events=np.array([100.0, 800.0]))
    monkeypatch.setattr("tidemark.studies.freshness.metrics.steady", lambda _: every)
    monkeypatch.setattr("tidemark.studies.freshness.metrics.alike", lambda each: each)
    monkeypatch.setattr("tidemark.studies.freshness.metrics.lag", lambda _: found)
    seconds, events = axes_of(partial(freshness.over_time, context))
    assert marks(seconds, TITLES[1], context) == [(1.0, 0.5), (2.0, 4.0)]
    assert marks(events, TITLES[0], context) == [(1.0, 100.0), (2.0, 800.0)]


def test_loads_and_merges(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {(TITLES[0], "merge-100-10"): 7.0, (TITLES[1], "merge-100-10"): 11.0}
    every = [series(context, *key) for key in values]
    for name in ("in_part", "measured_in"):
        monkeypatch.setattr(f"tidemark.studies.lhbench.metrics.{name}", lambda *_: every)
    monkeypatch.setattr(lakes, "attempt", of(values))
    sets = SimpleNamespace(data=SimpleNamespace(sets=(("1000", None), ("10", None))))
    monkeypatch.setattr(Run, "record", lambda *_: sets)
    shown = axes_of(partial(lakes.stages, context, "load", "Loads", lakes.OF_LOAD[:4]))
    assert [marks(axes, TITLES[0], context) for axes in shown] == [[(7.0, 0.0)]] * 4
    assert [marks(axes, TITLES[1], context) for axes in shown] == [[(11.0, 1.0)]] * 4
    merge, slower = axes_of(partial(lakes.merges, context))
    assert marks(merge, TITLES[0], context) == [(1.0, 7.0), (100.0, 7.0)]
    assert marks(slower, TITLES[1], context) == [(1.0, 11.0), (100.0, 11.0)]


def test_the_papers_axis_is_read_in_two_ways(context: FigureContext) -> None:
    (axes,) = axes_of(partial(lakes.axis, context))
    drawn = [each for each in axes.collections if isinstance(each, PathCollection)]
    assert sum(len(each.get_offsets()) for each in drawn) == 8
    assert len(axes.get_legend().texts) == 2


def test_queries_by_files(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {(TITLES[0], "files-100"): 0.4, (TITLES[0], "files-1000"): 0.9, (TITLES[1], "files-100"): 0.2}
    every = [series(context, *key) for key in values]
    for name in ("in_part", "measured_in"):
        monkeypatch.setattr(f"tidemark.studies.lhbench.metrics.{name}", lambda *_: every)
    monkeypatch.setattr(lakes, "attempt", of(values))
    ours = axes_of(partial(lakes.files, context))[0]
    heights = [round(bar.get_height(), 3) for bar in ours.patches if bar.get_height() > 0]
    assert sorted(heights) == [200.0, 200.0, 400.0, 400.0, 900.0, 900.0]  # startup bars overlap the totals
    assert [text.get_text() for text in ours.get_xticklabels()] == ["0.1K", "1K"]


def test_times_by_table(context: FigureContext, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        (TITLES[0], "supplier_sf1-1"): 2.0,
        (TITLES[0], "supplier_sf10-1"): 9.0,
        (TITLES[1], "supplier_sf1-1"): 4.0,
    }
    every = [series(context, *key) for key in values]
    monkeypatch.setattr("tidemark.studies.deltars.metrics.in_order", lambda _, **__: every)
    monkeypatch.setattr("tidemark.studies.deltars.metrics.fewest_cores", lambda _: 1)
    monkeypatch.setattr("tidemark.studies.deltars.metrics.tables_of", lambda _: ["supplier_sf1", "supplier_sf10"])
    monkeypatch.setattr(deltars, "attempt", of(values))
    (axes,) = axes_of(partial(deltars.bars, context, "write"))
    assert marks(axes, TITLES[0], context) == [(-0.2, 2.0), (0.8, 9.0)]
    assert marks(axes, TITLES[1], context) == [(0.2, 4.0)]
    printed = [y for each in axes.collections if isinstance(each, PathCollection) for _, y in each.get_offsets()]
    tables = ("supplier_sf1", "supplier_sf10")
    thesis = deltars.published
    known = [thesis.printed("write", each, data, 1) for each in thesis.TITLES for data in tables]
    assert sorted(printed) == sorted(each.mean for each in known if each is not None)
