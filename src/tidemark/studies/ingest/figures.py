"""Figures of undisturbed writers and requests, in the order of the parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from tidemark.analysis.formatting import MissingCell, attempt
from tidemark.analysis.metrics import Metric, require
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.text_blocks import valued
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec, Look
from tidemark.results.tables.table import notes_of
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import all_hot_runs, by_system
from tidemark.studies.ingest import metrics, published
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, DIRECT, STAGED
from tidemark.studies.ingest.load.schedule import POISSON
from tidemark.studies.ingest.parts import of_part
from tidemark.studies.ingest.settings import ONE, OWN, WRITERS, TailSettings, WritersSettings
from tidemark.studies.ingest.tables import requests
from tidemark.studies.ingest.tables.requests import gains, overloaded, scheduled_series, shape
from tidemark.studies.ingest.tables.storage import far, files_of, medians, pruned_series
from tidemark.systems.pruning_dataset import BY_NAME

NOTES = notes_of(__file__)
WRITERS_APART = 0.03  # offset from one system to the next, in doublings of writers
COMMITS_TITLE, CONFLICTS_TITLE = "Commits a second to one table", "Share of commits tried that are refused"


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-commits", COMMITS_TITLE, commits)
    yield FigureSpec("ingest-conflicts", CONFLICTS_TITLE, conflicts)
    yield FigureSpec("ingest-paced", PACED_TITLE, paced, optional=True)
    yield FigureSpec("ingest-group", GROUP_TITLE, group)
    yield FigureSpec("ingest-tail", RATES_TITLE, rates, optional=True)
    yield FigureSpec("ingest-quantiles", QUANTILES_TITLE, quantiles, optional=True)
    yield FigureSpec("ingest-distance", DISTANCE, distance)
    yield FigureSpec("ingest-pruning", PRUNING, pruning)


def commits(context: FigureContext) -> DrawnFigure:
    """Draw commits/s of one table (lines) and of a table per writer (hollow), both axes logarithmic."""
    notes = NOTES("ingest-commits")
    return _by_writers(context, metrics.COMMITS, COMMITS_TITLE, "commits/s, log scale", notes, log=True)


def conflicts(context: FigureContext) -> DrawnFigure:
    """Draw the share of refused commits to one table, as far as catalog, client or caller report it."""
    notes = NOTES("ingest-conflicts")
    return _by_writers(context, metrics.CONFLICTS, CONFLICTS_TITLE, "refused (%)", notes, log=False)


def _by_writers(
    context: FigureContext, quantity: Metric, title: str, what: str, notes: list[str], *, log: bool
) -> DrawnFigure:
    made, axes = style.single(*plots.BESIDE_LEGEND)
    runs: list[Run] = []
    counts: set[int] = set()
    without: dict[str, list[str]] = {}
    factor = 1.0 if log else 100.0
    systems = _by_system(context)
    points: dict[str, list[dict[str, object]]] = {ONE: [], OWN: []}
    for place, series in enumerate(systems):
        beside = 2 ** (WRITERS_APART * (place - (len(systems) - 1) / 2))  # so that intervals do not hide one another
        for each in series:
            given = WritersSettings.of(each)
            if given.tables == OWN and not log:
                continue
            value = attempt("", partial(context.measures.hot, quantity, each))
            if isinstance(value, MissingCell):
                without.setdefault(value.reason, []).append(f"{each.title} {each.mode}")
                continue
            runs += list(each.hot_runs)
            counts.add(given.writers)
            points[given.tables] += plots.rows_of(value, factor, system=each.title, writers=beside * given.writers)
    require(runs, "there is no hot run")
    for tables, found in points.items():
        if found:
            plots.lines(axes, found, "writers", "value", context.look, joined=tables == ONE, hollow=tables == OWN,
                        legend=tables == ONE or not points[ONE])  # fmt: skip
    plots.log_axis(axes, ticks=counts, base=2)
    _label(axes, "writers, log scale", what, log=log)
    return context.finish(made, title, [*notes, *_not_drawn(without), context.run_set.coverage], runs)


def _label(axes: Axes, across: str, up: str, *, log: bool) -> None:
    """Give axes their legend, grid and labels; values are on a log scale, or from zero."""
    plots.legend_beside(axes)
    if log:
        plots.log_axis(axes, "y")
    else:
        axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])  # shows a mark at zero completely
        axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.grid()
    axes.set(xlabel=across, ylabel=up)


def _not_drawn(without: dict[str, list[str]]) -> list[str]:
    """Return the notes on series that are not drawn, which are given by reason."""
    return [f"Not drawn: {', '.join(which)} ({reason})." for reason, which in without.items()]


def _by_system(context: FigureContext) -> list[list[Series]]:
    found = require(of_part(context.run_set, WRITERS).select(harness=False), "no system was measured")
    return by_system(found, lambda series: WritersSettings.of(series).writers)


PACED_TITLE = "Commits refused if each writer commits at a set interval"


def paced(context: FigureContext) -> DrawnFigure:
    """Draw the share of refused commits against the commits a second that fall due, a line per system."""
    planned = sorted(requests.paced_series(context.run_set), key=requests.due_a_second)
    drawn = valued(partial(context.measures.hot, metrics.CONFLICTS), planned)
    runs = require(all_hot_runs(each for each, _ in drawn), "no writers committed at a set interval")
    points = [row for each, share in drawn
              for row in plots.rows_of(share, 100.0, system=each.title, due=requests.due_a_second(each))]  # fmt: skip
    made, axes = style.single(*plots.BESIDE_LEGEND)
    plots.lines(axes, points, "due", "value", context.look, legend=True)
    plots.log_axis(axes, ticks={row["due"] for row in points}, base=2)
    _label(axes, "commits of all writers that fall due in a second, log scale", "refused (%)", log=False)
    return context.finish(made, PACED_TITLE, [*NOTES("ingest-paced"), context.run_set.coverage], runs)


GROUP_TITLE = "Gathered requests over one commit a request"
GROUP_ROW, GROUP_LEFT, GROUP_GAP = 0.26, 1.55, 0.25  # inches
GROUP_APART = 0.17  # distance from a row's middle to a policy's line, in rows


def group(context: FigureContext) -> DrawnFigure:
    """Draw rows per second (left) and p99 (right) of staged (filled) and bundled (hollow) requests over direct ones."""
    found: dict[tuple[str, int, int], dict[str, tuple[Estimate, Estimate | None]]] = {}
    runs: list[Run] = []
    for policy in (STAGED, BUNDLED):
        for series, rate, tail in gains(context.measures, policy):
            key = (series.title, *shape(series))
            found.setdefault(key, {})[policy] = (rate, tail)
            runs += list(series.hot_runs)
    require(found, "no requests were gathered and committed one by one as well")
    made = style.frame(style.PAGE, GROUP_ROW * len(found) + 0.1)
    panels = made.pair(GROUP_LEFT, GROUP_GAP, 0.15)
    for place, (axes, what) in enumerate(zip(panels, ("rows a second, over direct", "p99, over direct"), strict=True)):
        points: dict[str, list[dict[str, object]]] = {STAGED: [], BUNDLED: []}
        for row, (key, policies) in enumerate(found.items()):
            for policy, both in policies.items():
                y, estimate = row + (GROUP_APART if policy == BUNDLED else -GROUP_APART), both[place]
                if estimate is not None:
                    points[policy] += plots.rows_of(estimate, system=key[0], row=y)
                printed = _printed(policy, *key[1:])[place]
                sns.scatterplot(
                    x=printed, y=[y] * len(printed), marker="|", s=40, linewidth=1.1, color=style.INK, ax=axes
                )
        for policy, rows in points.items():
            if rows:
                plots.lines(
                    axes, rows, "value", "row", context.look, orient="y", joined=False, hollow=policy == BUNDLED
                )
        axes.axvline(1, color=style.INK, linewidth=0.7, linestyle=(0, (3, 2)))
        plots.titles(axes, [f"{title}, {rows:,} x {clients}" for title, rows, clients in found])
        plots.log_axis(axes)
        axes.set_xlabel(f"{what}, log scale")
    panels[1].set_yticklabels([])
    notes = [*NOTES("ingest-group"), context.run_set.coverage]
    short = [f"{key[0]}, {key[1]:,} x {key[2]} ({policy})" for key, each in found.items() for policy in each
             if each[policy][1] is None]  # fmt: skip
    notes += [f"Too few requests for a p99: {', '.join(short)}."] if short else []
    return context.finish(made, GROUP_TITLE, notes, runs)


def _printed(policy: str, rows: int, clients: int) -> tuple[list[float], list[float]]:
    """Return kyma's rates and p99 over those of its direct requests, from each table of its page that has both."""
    cells = [each for each in published.cells() if (each.rows, each.workers) == (rows, clients)]
    direct = {each.table: each for each in cells if each.policy == DIRECT}
    mine = [each for each in cells if each.policy == policy and each.table in direct]
    rates = [each.rows_per_s / direct[each.table].rows_per_s for each in mine]
    pairs = [(each.p99_ms, direct[each.table].p99_ms) for each in mine]
    return rates, [own / other for own, other in pairs if own and other]


RATES_TITLE, QUANTILES_TITLE = "99th percentile of responses against the rate", "Times by quantile, three ways"
BESIDE = 0.5  # offset from one line to the next, in percent of the closed loop's rate
ACROSS = 3  # panels side by side
WAYS = {"by schedule": metrics.responses, "corrected": metrics.corrected, "closed loop": metrics.closed}
MOST_POINTS = 400  # per line


def rates(context: FigureContext) -> DrawnFigure:
    """Draw a line per system and target; overloaded rates are hollow with an arrow, since they are lower bounds."""
    made, axes = style.single(*plots.BESIDE_LEGEND)
    runs: list[Run] = []
    without: dict[str, list[str]] = {}
    percents: set[int] = set()
    found = _by_rate(context)
    points: list[dict[str, object]] = []
    bounds: list[dict[str, object]] = []  # points that are lower bounds
    look, dashes = Look({}, {}), {}
    for place, line in enumerate(found):
        given = TailSettings.of(line[0])
        unusual = [each for each, usual in ((given.target, ONE), (given.arrivals, POISSON)) if each != usual]
        name = ", ".join([line[0].title, *unusual])
        look.colours[name], look.shapes[name] = context.colour(line[0]), context.look.shapes[line[0].title]
        dashes[name] = "" if given.target == ONE else (3, 2)
        for series in line:
            value = attempt("ms", partial(context.measures.hot, metrics.RESPONSE_P99, series))
            if isinstance(value, MissingCell):
                without.setdefault(value.reason, []).append(f"{series.title} {series.mode}")
                continue
            percents.add(percent := TailSettings.of(series).percent)
            x = percent + BESIDE * (place - (len(found) - 1) / 2)  # so that intervals do not hide one another
            points += (rows := plots.rows_of(value, system=name, percent=x))
            runs += list(series.hot_runs)
            if overloaded(series):
                bounds += rows
                axes.annotate("", (x, 1.5 * value.value), (x, value.value),
                              arrowprops={"arrowstyle": "->", "color": style.ink(look.colours[name])})  # fmt: skip
    require(runs, "no hot run came by a schedule and was long enough for a p99")
    plots.lines(axes, points, "percent", "value", look, legend=True, dashes=dashes)
    if bounds:
        plots.lines(axes, bounds, "percent", "value", look, joined=False, hollow=True)
    axes.set_xticks(sorted(percents))
    _label(axes, "offered rate, percent of the closed loop's", "response p99 (ms), log scale", log=True)
    notes = [*NOTES("ingest-tail"), *_not_drawn(without)]
    return context.finish(made, RATES_TITLE, [*notes, context.run_set.coverage], runs)


def _by_rate(context: FigureContext) -> list[list[Series]]:
    """Return a list of series, by rate, for each system, target and kind of arrivals."""
    found: dict[tuple[str, str, str], list[Series]] = {}
    for series in scheduled_series(context.run_set):
        if not series.is_null_baseline:
            given = TailSettings.of(series)
            found.setdefault((series.system, given.target, given.arrivals), []).append(series)
    return list(found.values())


def quantiles(context: FigureContext) -> DrawnFigure:
    """Draw a panel per system and target, of the first hot run at the highest rate without overload."""
    shown = []
    for line in _by_rate(context):
        fit = [each for each in line if each.hot_runs and each.hot_runs[0].manifest.oracle.verdict]
        kept = [each for each in fit if not overloaded(each)] or fit
        if kept:
            shown.append(kept[-1])
    require(shown, "no hot run came by a schedule")
    columns = min(ACROSS, len(shown))
    frame = pd.concat([_curves(series, place) for place, series in enumerate(shown)])
    grid = sns.FacetGrid(frame, col="panel", col_wrap=columns, sharex=False, sharey=False, height=1)
    made = style.tiled(grid.figure, list(grid.axes.flat), columns, tall=1.45, gap=0.55, left=0.55)
    for place, (series, axes) in enumerate(zip(shown, grid.axes.flat, strict=True)):
        part, colour = frame[frame["panel"] == place], style.ink(context.colour(series))
        sns.lineplot(part, x="beyond", y="ms", hue="way", style="way", hue_order=list(WAYS), style_order=list(WAYS),
                     palette=[colour, colour, style.INK], dashes=["", (3, 2), (1, 1)], estimator=None, legend=False,
                     ax=axes)  # fmt: skip
        most = max(10.0, float(part["beyond"].max()))
        marks = [mark for mark in (2, 10, 100, 1_000, 10_000, 100_000) if mark <= most]
        plots.log_axis(axes, ticks=marks)
        axes.set_xlim(1, most)
        axes.set_xticks(marks, [f"{100 * (1 - 1 / mark):.6g} %" for mark in marks])
        plots.log_axis(axes, "y")
        axes.grid()
        axes.set(xlabel="", ylabel="" if place % columns else "ms, log scale", title="")
        given = TailSettings.of(series)
        name = series.title + ("" if given.target == ONE else f", {given.target}")
        axes.set_title(f"{name}, {given.percent} %", fontsize=style.SMALL, color=colour, loc="left", pad=3)
    runs = [each.hot_runs[0] for each in shown]
    return context.finish(made, QUANTILES_TITLE, [*NOTES("ingest-quantiles"), context.run_set.coverage], runs)


def _curves(series: Series, panel: int) -> pd.DataFrame:
    """Return the times of a series' first hot run by quantile, measured in each of the ways."""
    found = {way: _by_quantile(times(series.hot_runs[0])) for way, times in WAYS.items()}
    each = [pd.DataFrame({"panel": panel, "way": way, "beyond": x, "ms": y}) for way, (x, y) in found.items()]
    return pd.concat(each, ignore_index=True)


def _by_quantile(times: metrics.Times) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 / (1 - q) and the order statistic at q in milliseconds, for at most MOST_POINTS points."""
    ordered = np.sort(times) / 1e6
    count = len(ordered)
    beyond = np.unique(np.rint(np.geomspace(1, count, MOST_POINTS)).astype(np.int64))[::-1]  # samples from the point on
    return count / beyond, ordered[count - beyond]


DISTANCE = "A commit against the distance of the object store"
LABELS = ("round trip to the store (ms)", "median commit (ms)")
DISTANCE_NOTE = (
    "Hot runs, one writer in a closed loop; bars: 95 % intervals; lines: Theil-Sen. The number next to a name is the "
    "slope: serial round trips a commit. The catalogs' databases are not moved."
)
PRUNING = "Files that a query is left to read, of those of the table"
PRUNING_NOTE = "Of each system's first hot run; queries and how files are counted: see the table ingest-pruning."


def distance(context: FigureContext) -> DrawnFigure:
    """Draw the median commit against the round trip to the object store, with fitted lines."""
    series = [each for each in far(context.measures).values() if medians(context.measures, each)]
    require(series, "no series has its files in an object store")
    drawn = {each[0].title: medians(context.measures, each) for each in series}
    runs = [run for each in series for one in each for run in one.hot_runs]
    return plots.fitted(context, DISTANCE, drawn, LABELS, [DISTANCE_NOTE], runs)


def pruning(context: FigureContext) -> DrawnFigure:
    """Draw the files that a query is left to read: a row per system, a column per filter."""
    found = [each for each in pruned_series(context.measures) if each.hot_runs]
    require(found, "no system was asked for filtered rows")
    runs, most = [each.hot_runs[0] for each in found], [files_of(each) for each in found]
    names = [f"{each.title}, {files:,} files" for each, files in zip(found, most, strict=True)]
    counts = pd.DataFrame([{name: metrics.files_read(run, name) for name in BY_NAME} for run in runs], index=names)
    return plots.heat(context, PRUNING, counts, most, [PRUNING_NOTE], runs)
