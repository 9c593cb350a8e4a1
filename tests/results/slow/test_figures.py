"""Tests of figures: each one is drawn, names its sources, and is reproduced byte for byte."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from tests.results.places import made
from tests.runs.runset import DUCKLAKE, ICEBERG_DUCKDB, INLINED, STANDARD, batched, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, Estimate
from tidemark.pipeline.build import build_figures
from tidemark.results.figures import draw as figures
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import FigureContext, FigureSpec, Group, Look
from tidemark.results.figures.panels import binned, scatter_panels
from tidemark.runs.manifest import Manifest
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet
from tidemark.studies.streams import figures as figures_beyond
from tidemark.studies.streams import thesis_figures as figures_thesis
from tidemark.studies.streams.metrics import GROWTH, QUANTITIES
from tidemark.studies.streams.published import EVENTS

THESIS = [f"figure-{name}" for name in ("4.1", "4.2", *(f"5.{n}" for n in range(1, 13)))]
APPENDIX = [f"figure-A.{n}" for n in range(1, 21)]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the results of a run set with both sweeps."""
    threads = [replace(DUCKLAKE, sweep="threads", threads=count, factors=(1.0,)) for count in (1, 16)]
    sizes = [
        batched(model, sweep="batch-size", median_ms=median, factors=(1.0,), flush_s=None)
        for model, median in ((DUCKLAKE, 12.0), (ICEBERG_DUCKDB, 55.0))
    ]
    sizes += [replace(model, batch_size=10, median_ms=model.median_ms / 2) for model in sizes]
    results = write_run_set(tmp_path_factory.mktemp("figures"), [*STANDARD, *threads, *sizes], window_s=6)
    build_figures(results)
    return results


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> FigureContext:
    """Return a context of runs of which nothing has been drawn yet."""
    return FigureContext.of(
        Measures(RunSet.load(write_run_set(tmp_path_factory.mktemp("runs"), window_s=3)), QUANTITIES)
    )


def draw(context: FigureContext, figure_specs: Iterable[FigureSpec], folder: Path) -> None:
    figures.draw(
        {"streams": context}, [figures.FigureTask("streams", figure_spec) for figure_spec in figure_specs], folder
    )


def index(results: Path) -> dict[str, dict[str, Any]]:
    entries = json.loads((results / "figures" / "index.json").read_text())["figures"]
    return {entry["name"]: entry for entry in entries}


def test_all_figures_are_drawn_in_three_formats(drawn: Path) -> None:
    entries = index(drawn)
    assert set(THESIS) | set(APPENDIX) <= set(entries)
    assert {"time-budget", "cold-effect", "batch-size", "throughput-single", "latency-batch"} <= set(entries)
    assert {name for name, entry in entries.items() if entry["reason"]} <= {"then-and-now"}  # the run set has one stack
    for entry in entries.values():
        if not entry["files"]:
            continue
        assert [Path(name).suffix for name in entry["files"]] == [".svg", ".pdf", ".png"]
        for name in entry["files"]:
            assert (drawn / "figures" / name).stat().st_size > 2_000
        assert entry["sources"], entry["name"]


def test_dollar_sign_in_a_title_is_not_parsed_as_math(tmp_path: Path) -> None:
    """With math typesetting, the first title could not be drawn and the second one would look different."""
    titles = ("Lake $\\frac{$", "$x_1$ of $10")
    models = [replace(model, title=title) for model, title in zip((DUCKLAKE, INLINED), titles, strict=True)]
    run_set = RunSet.load(write_run_set(tmp_path, models, window_s=2))
    context = FigureContext.of(Measures(run_set, QUANTITIES))
    figure_specs = [each for each in figures_beyond.figure_specs() if each.name == "throughput-single"]
    draw(context, figure_specs, tmp_path / "figures")
    assert sorted(path.suffix for path in (tmp_path / "figures").rglob("throughput*")) == [".pdf", ".png", ".svg"]
    with style.applied():
        figure = figure_specs[0].draw(context).frame.figure
        figure.canvas.draw()
    drawn = [text for text in figure.findobj(Text) if "$" in text.get_text()]
    assert {title for title in titles if any(title in text.get_text() for text in drawn)} == set(titles)
    assert not any(text.get_parse_math() for text in drawn)


def test_each_figure_shows_the_run_that_the_thesis_shows(drawn: Path) -> None:
    entries = index(drawn)
    for name, number in (("5.2", 1), ("5.12", 1), ("A.1", 0), ("A.2", 2), ("A.19", 0), ("A.20", 2)):
        assert {label[-1] for label in entries[f"figure-{name}"]["sources"]} == {str(number)}, name
    assert {label[-1] for label in entries["figure-5.1"]["sources"]} == {"0", "1", "2"}
    for name, mode in (("figure-A.5", "single"), ("figure-A.15", "batch-1000")):
        assert {label.split("/")[1] for label in entries[name]["sources"]} == {mode}


def test_a_synthetic_dataset_is_named_in_every_picture(drawn: Path) -> None:
    for name in (name for name, entry in index(drawn).items() if entry["files"]):
        picture = made(drawn / "figures", f"{name}.svg").read_text()
        assert "SYNTHETIC dataset" in picture, name
        assert "yellow_tripdata_2025-11" in picture, name


def test_filled_and_hollow_markers_are_named_in_the_picture(drawn: Path) -> None:
    named = {
        "cold-effect": "filled: one by one; hollow: in batches",
        "throughput-single": "filled: system; hollow: harness",
    }
    for name, words in named.items():
        assert words in made(drawn / "figures", f"{name}.svg").read_text(), name


def test_real_dataset_is_not_called_synthetic(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, [DUCKLAKE], window_s=2, synthetic=False)
    context = FigureContext.of(Measures(RunSet.load(results), QUANTITIES))
    draw(context, [s for s in figures_thesis.figure_specs() if s.name == "figure-5.1"], tmp_path / "out")
    picture = made(tmp_path / "out", "figure-5.1.svg").read_text()
    assert "SYNTHETIC" not in picture
    assert "sha256 abababab" in picture


def test_the_same_runs_give_the_same_bytes(drawn: Path, tmp_path: Path) -> None:
    """One figure of each kind is drawn again alone: neither the clock nor the drawing order affects a figure."""
    context = FigureContext.of(Measures(RunSet.load(drawn), QUANTITIES))
    kinds = ("figure-5.3", "figure-5.10", "figure-A.12", "batch-size")
    every = list(figures_thesis.figure_specs())
    draw(context, [figure_spec for figure_spec in reversed(every) if figure_spec.name in kinds], tmp_path)
    names = sorted(path.name for path in tmp_path.rglob("*.*") if path.suffix != ".json")
    assert len(names) == 3 * len(kinds)
    for name in names:
        assert made(tmp_path, name).read_bytes() == made(drawn / "figures", name).read_bytes(), name


def test_a_run_that_was_not_proved_cold_is_not_called_cold(tmp_path: Path) -> None:
    models = [replace(DUCKLAKE, cold_verdict="lukewarm"), ICEBERG_DUCKDB, replace(INLINED, opening_verdict="cold")]
    context = FigureContext.of(Measures(RunSet.load(write_run_set(tmp_path, models, window_s=2)), QUANTITIES))
    wanted = ("figure-5.1", "figure-A.5", "figure-5.3")
    draw(context, [s for s in figures_thesis.figure_specs() if s.name in wanted], tmp_path / "out")
    pictures = {name: made(tmp_path / "out", f"{name}.svg").read_text() for name in wanted}
    called = re.findall(r"run 0: ([a-z ]+?) -->", pictures["figure-5.1"])
    assert sorted(word.strip() for word in set(called)) == ["cold", "cold start", "first run"]
    assert "began with a cold start" in pictures["figure-A.5"]
    assert "not proved cold: DuckLake (lukewarm)" in pictures["figure-A.5"]
    assert "not proved cold" not in pictures["figure-5.3"]


def test_run_missing_from_the_protocol_is_reported(tmp_path: Path) -> None:
    results = write_run_set(tmp_path, [replace(DUCKLAKE, factors=(1.0, 1.0), merge_s=None)], window_s=2)
    context = FigureContext.of(Measures(RunSet.load(results), QUANTITIES))
    wanted = ("figure-4.2", "figure-5.3", "figure-A.2", "figure-A.11")
    every = list(figures_thesis.figure_specs())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "figure-9.9.svg").write_text("of an earlier configuration")
    draw(context, [figure_spec for figure_spec in every if figure_spec.name in wanted], tmp_path / "out")
    entries = {e["name"]: e for e in json.loads((tmp_path / "out" / "index.json").read_text())["figures"]}
    assert entries["figure-5.3"]["reason"] is None
    assert "no system has a run 2" in entries["figure-A.2"]["reason"]
    assert "threads" in entries["figure-4.2"]["reason"]
    assert entries["figure-A.2"]["files"] == entries["figure-4.2"]["files"] == []
    assert "no system in batch mode" in entries["figure-A.11"]["reason"]
    assert "Not drawn" in made(tmp_path / "out", "figure-A.11.svg").read_text()
    assert not (tmp_path / "out" / "figure-9.9.svg").exists()


def test_a_figure_is_as_wide_as_a_column_or_a_page(drawn: Path) -> None:
    context = FigureContext.of(Measures(RunSet.load(drawn), QUANTITIES))
    widths = set()
    with style.applied():
        for figure_spec in list(figures_thesis.figure_specs())[:8]:
            widths.add(figure_spec.draw(context).frame.figure.get_figwidth())
    assert widths == {style.COLUMN, style.PAGE}


def test_system_colour_does_not_depend_on_other_systems() -> None:
    both = style.colours(["ducklake", "iceberg-duckdb", "iceberg-mine"])
    assert both["ducklake"] == style.colours(["ducklake", "null"])["ducklake"]
    assert both["iceberg-mine"] == style.colours(["iceberg-mine", "ducklake-inlined"])["iceberg-mine"]
    many = style.colours([f"variant-{place}" for place in range(9)])
    assert len(set(many.values())) == 9
    assert not set(many.values()) & set(style.COLOURS.values())


def test_each_system_has_one_distinct_mark() -> None:
    assert set(style.SHAPES) == set(style.COLOURS)
    assert len({*style.SHAPES.values(), *style.FURTHER_SHAPES}) == len(style.SHAPES) + len(style.FURTHER_SHAPES)
    assert style.shapes(["mine", "ducklake"])["mine"] == style.shapes(["mine", "null"])["mine"] in style.FURTHER_SHAPES


def test_drawing_has_a_title_and_a_description(drawn: Path) -> None:
    picture = made(drawn / "figures", "figure-5.1.svg").read_text()
    described = re.findall(r"<title>(.*?)</title>\s*<desc>(.*?)</desc>", picture, re.DOTALL)
    assert [title for title, _ in described] == ["Events written by run, one by one"]
    assert "The number of events per hot run" in described[0][1]


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colour", [*style.COLOURS.values(), *style.FURTHER, *style.PARTS.values()])
def test_text_in_a_systems_colour_is_readable_on_white(colour: str) -> None:
    assert 1.05 / (luminance(style.ink(colour)) + 0.05) >= 4.5


def test_axes_are_logarithmic_only_where_values_lie_far_apart() -> None:
    near, far = np.array([9.0, 10.0, 11.0]), np.array([90.0, 100.0, 110.0])
    assert not plots.is_log([near, near * 2])
    assert plots.is_log([near, far])
    assert plots.is_log([np.append(near, 400.0)])
    assert not plots.is_log([np.append(near, 0.0), far])
    assert not plots.is_log([])


def test_boxes_show_quartiles_and_extremes_of_runs_of_any_length() -> None:
    values = np.append(np.linspace(9, 11, 50_000), [500.0, 700.0])
    groups = [plots.Group("System", "#0072B2", values), plots.Group("Other", "#D55E00", values + 100)]
    with style.applied():
        made, notes = plots.boxes(groups, "time", "ms")
    axes = made.figure.axes[0]
    boxes = [patch.get_path().get_extents() for patch in axes.patches if isinstance(patch, PathPatch)]
    assert [(box.x0, box.x1) for box in boxes] == [pytest.approx(np.quantile(v.values, [0.25, 0.75])) for v in groups]
    points = [np.asarray(line.get_xdata()) for line in axes.lines if line.get_marker() == "|"]
    assert [each.max() for each in points] == [700.0, 800.0]
    assert all(len(each) < plots.STEPS for each in points) and "401 samples" in notes[0]
    assert axes.get_xscale() == "log"
    assert "n 50,002" in " ".join(text.get_text() for text in axes.texts)


def test_boxes_of_similar_values_start_at_zero() -> None:
    with style.applied():
        made, _ = plots.boxes([plots.Group("System", "#0072B2", np.linspace(9.0, 11.0, 20))], "time", "ms")
    assert made.figure.axes[0].get_xlim()[0] == 0


def test_few_samples_are_shown_as_points() -> None:
    with style.applied():
        made, notes = plots.boxes([plots.Group("System", "#0072B2", np.array([1.0, 2.0, 4.0]))], "time", "ms")
    assert marks(made.figure.axes[0]) == [(1.0, 0.0), (2.0, 0.0), (4.0, 0.0)]
    assert "fewer than 8" in notes[-1]


def marks(axes: Axes) -> list[tuple[float, float]]:
    """Return the coordinates of the points of scatter and strip plots."""
    found = [np.ma.getdata(each.get_offsets()) for each in axes.collections if isinstance(each, PathCollection)]
    return [(float(x), float(y)) for each in found for x, y in each]


def test_each_point_is_the_event_count_of_a_run_in_its_systems_row(context: FigureContext) -> None:
    with style.applied():
        axes = figures_thesis.totals(context, "single").frame.figure.axes[0]
    runs = [(run.manifest.events, row) for row, each in enumerate(context.series("single")) for run in each.runs]
    assert len(runs) == 12
    assert sorted((row, x) for x, row in [(x, round(y)) for x, y in marks(axes)]) == sorted((row, x) for x, row in runs)
    faces = [tuple(face[:3]) for each in axes.collections for face in each.get_facecolor()]
    assert faces.count((1, 1, 1)) == sum(run.cold for each in context.series("single") for run in each.runs) == 4


def test_the_thesiss_events_are_ticks_in_its_systems_rows_at_their_rate(context: FigureContext) -> None:
    """The windows of the runs are 3 s long, the thesis's 300 s."""
    with style.applied():
        axes = figures_thesis.totals(context, "batch").frame.figure.axes[0]
    segments = [line for each in axes.collections if isinstance(each, LineCollection) for line in each.get_segments()]
    ticks = sorted((round(float(line[:, 1].mean())), float(line[0, 0])) for line in segments)
    events = [EVENTS["batch"].get(series.system, ()) for series in context.series("batch")]
    wanted = sorted((row, count / 100) for row, counts in enumerate(events) for count in counts)
    assert len(wanted) == 12
    assert [row for row, _ in ticks] == [row for row, _ in wanted]
    # A window ends after its last write.
    assert [x for _, x in ticks] == pytest.approx([x for _, x in wanted], rel=0.05)
    words = {text.get_text(): text.get_window_extent() for text in axes.texts}
    legend, heading = words["black ticks: as published (windows of 300 s)"], words["median, hot"]
    assert axes.get_xlabel().startswith("events written in 3 s") and 0 < legend.x0 < legend.x1 <= heading.x0


def test_a_figure_of_windows_that_end_by_commits_says_so(
    context: FigureContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Manifest, "commits_wanted", 100)
    with style.applied():
        axes = figures_thesis.totals(context, "single").frame.figure.axes[0]
    assert axes.get_xlabel() == "events/s in windows of 100 commits, log scale"
    assert 0 < axes.xaxis.label.get_window_extent().x0 < axes.xaxis.label.get_window_extent().x1 < axes.figure.bbox.x1


def test_dot_is_at_its_estimate_and_not_at_an_interval_bound(context: FigureContext) -> None:
    one, other = context.series("single")[:2]
    rows: list[tuple[str, list[plots.Point]]] = [
        (one.title, [(Estimate(5.0, 4.0, 9.0, 3, "s"), one, True), (Estimate(6.0, None, None, 3, "s"), one, False)]),
        (other.title, [(Estimate(2.0, 2.5, 3.0, 3, "s"), other, True), ("why not", other, False)]),
    ]
    with style.applied():
        axes = plots.dots(context, rows, "time").figure.axes[0]
    dots = [line for line in axes.lines if line.get_marker() in context.look.shapes.values()]
    found = [(x, round(y)) for line in dots for x, y in line.get_xydata()]
    assert sorted(found) == [(2.0, 1), (5.0, 0), (6.0, 0)]
    bars = [part for each in axes.collections if isinstance(each, LineCollection) for part in each.get_segments()]
    assert sorted([part[0][0], part[1][0]] for part in bars if len(part) == 2) == [[2.0, 3.0], [4.0, 9.0]]
    assert {line.get_marker() for line in dots} == {context.look.shapes[one.title], context.look.shapes[other.title]}
    assert "missing: why not" in [text.get_text() for text in axes.texts]


def test_numbers_next_to_dots_have_one_unit_and_the_digits_of_their_interval() -> None:
    assert plots.spelt(Estimate(7290.0, 6610.0, 8070.0, 3, "x"), thousands=True) == "7.29 [6.61, 8.07]"
    assert plots.spelt(Estimate(-0.00229, -5.69638, 5.56521, 3, "x"), thousands=False) == "0.00 [-5.70, 5.57]"
    assert plots.spelt(Estimate(1234.0, None, None, 3, "x"), thousands=False) == "1,230"
    assert plots.spelt(Estimate(41214.0, 33012.0, 51320.0, 3, "x"), thousands=False) == "41,200 [33,000, 51,300]"


@pytest.mark.parametrize("sizes", [(7.54e-3, 41_214.0), (111_000.0, 7_300.0), (5e-4, 2e-3)])
def test_numbers_next_to_dots_are_inside_the_figure_and_in_a_unit_that_fits_all(
    context: FigureContext, sizes: tuple[float, ...]
) -> None:
    rows = [
        (each.title, [(Estimate(size, 0.89 * size, 1.12 * size, 3, "s"), each, True)])
        for each, size in zip(context.series("single"), sizes, strict=False)
    ]
    with style.applied():
        axes = plots.dots(context, rows, "time").figure.axes[0]
        texts = [text for text in axes.texts if "[" in text.get_text()]
        assert len(texts) == len(sizes)
        assert max(text.get_window_extent().x1 for text in texts) < axes.figure.bbox.x1
    assert ("thousands" in [text.get_text() for text in axes.texts]) == (min(sizes) >= 1e3)


def test_share_of_slower_writes_is_relative_to_all_writes() -> None:
    values = np.arange(1.0, 20_001.0)
    look = Look({"System": "#0072B2"}, {"System": "o"})
    with style.applied():
        axes = style.frame(3, 2).axes(0.5, 0.5)
        plots.tails(axes, {"System": values}, look, legend=False)
    x, share = axes.lines[0].get_xydata().T
    assert len(x) < 1000
    for asked in (10_001.0, 18_000.0, 19_990.0):
        assert share[np.searchsorted(x, asked)] == pytest.approx(1 - asked / 20_000, abs=0.003)


def test_thinning_keeps_extremes() -> None:
    rng = np.random.default_rng(1)
    values = rng.random(100_000)
    values[31_415] = 99.0
    times, low, medians, high = binned(np.arange(100_000.0), values, 240)
    assert len(times) == 240
    assert high.max() == 99.0
    assert low.min() == values.min()
    assert (low <= medians).all()
    assert (medians <= high).all()


def test_a_study_of_threads_names_the_threads(drawn: Path) -> None:
    picture = made(drawn / "figures", "figure-4.2.svg").read_text()
    assert "DuckLake, 16" in picture and "threads" in picture
    assert "DuckLake, 1 thread" in picture


def test_sketch_names_are_unique() -> None:
    every = list(figures_thesis.figure_specs())
    assert len({figure_spec.name for figure_spec in every}) == len(every) == 3 + 32


def test_text_in_figures_has_the_papers_font_and_a_readable_size(drawn: Path) -> None:
    context = FigureContext.of(Measures(RunSet.load(drawn), QUANTITIES))
    every = [*figures_thesis.figure_specs(), *figures_beyond.figure_specs()]
    kinds = {"figure-4.1", "figure-4.2", "batch-size", "latency-single", "footprint-batch", "time-budget"}
    kinds |= {f"figure-5.{number}" for number in range(1, 7)} | {"cold-effect", "throughput-single"}
    with style.applied():
        for figure_spec in (each for each in every if each.name in kinds):
            words = [each for each in figure_spec.draw(context).frame.figure.findobj(Text) if each.get_text().strip()]
            assert min(word.get_fontsize() for word in words) >= 7, figure_spec.name
            assert {word.get_fontfamily()[0] for word in words} == {style.SERIF}, figure_spec.name
        assert Path(font_manager.findfont(style.SERIF, fallback_to_default=False)).parent == style.FONTS


@pytest.mark.parametrize("high", [1.1, 1.9, 4.0, 6.0, 9.0, 40.0, 3e4])
@pytest.mark.parametrize("low", [1e-3, 1.7, 48_000.0])
def test_logarithmic_axis_has_two_to_six_labels(low: float, high: float) -> None:
    with style.applied():
        axes = style.frame(style.COLUMN, 1.0).axes(0.3, 0.66)
        axes.set_xlim(low, low * high)
        plots.log_axis(axes)
        shown = [tick for tick in axes.get_xticks() if low <= tick <= low * high]
    assert 2 <= len(shown) <= 6, shown


def too_few(_run: Run) -> BootstrapEstimate:
    raise NotAvailable("needs 20 commits, the run has 18")


@pytest.mark.parametrize("trend", [GROWTH, replace(GROWTH, how=too_few)])
def test_longest_title_and_trend_fit_above_their_panel(measures: Measures, trend: Metric) -> None:
    titles = ("DuckLake", "DuckLake + inlining", "DuckLake + inlining (PostgreSQL)")
    groups = [Group(title, "#0072B2", np.arange(1.0, 30), np.arange(29.0), title) for title in titles]
    runs = dict.fromkeys(titles, next(run for run in measures.run_set.runs if not run.cold))
    figure = scatter_panels(FigureContext.of(Measures(measures.run_set, QUANTITIES)), groups, runs, "write", trend)[
        0
    ].figure
    figure.canvas.draw()
    found = [text for text in figure.findobj(Text) if text.get_text() in titles or text.get_text().startswith("growth")]
    assert len(found) == 2 * len(titles)
    assert all(text.get_window_extent().x1 <= figure.bbox.x1 for text in found)


def test_drawing_does_not_load_what_seaborn_needs_for_other_plots() -> None:
    loaded = "import sys\nfrom tidemark.results.figures import draw\nassert 'seaborn' in sys.modules\n"
    program = f"{loaded}assert 'scipy.stats' not in sys.modules\nimport scipy.stats, scipy.cluster\n"
    subprocess.run([sys.executable, "-c", program], check=True)
