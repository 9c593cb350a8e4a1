"""Figures of the study, in the order of its parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.ticker import MaxNLocator

from tidemark.analysis.formatting import MissingCell, attempt
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec, Look
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.studies.ingest import published
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, DIRECT, STAGED
from tidemark.studies.ingest.load.records import ACKED
from tidemark.studies.ingest.load.schedule import POISSON
from tidemark.studies.ingest.metrics import (
    COMMITS,
    CONFLICTS,
    RESPONSE_P99,
    Times,
    closed,
    corrected,
    files_read,
    outcomes,
    responses,
)
from tidemark.studies.ingest.parts import FRONT, of_part, part_name
from tidemark.studies.ingest.settings import ONE, OWN, WRITERS, TailSettings, WritersSettings
from tidemark.studies.ingest.tables.faults import Killed, all_killed
from tidemark.studies.ingest.tables.maintenance import Kept, kept_of, pairs, words_of
from tidemark.studies.ingest.tables.requests import gains, overloaded, scheduled_series, shape
from tidemark.studies.ingest.tables.storage import far, files_of, medians, pruned_series
from tidemark.systems.pruning_dataset import BY_NAME

WRITERS_APART = 0.03  # offset from one system to the next, in doublings of writers
COMMITS_TITLE, CONFLICTS_TITLE = "Commits a second to one table", "Share of commits tried that are refused"


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-commits", COMMITS_TITLE, commits)
    yield FigureSpec("ingest-conflicts", CONFLICTS_TITLE, conflicts)
    yield FigureSpec("ingest-group", GROUP_TITLE, group)
    yield FigureSpec("ingest-tail", RATES_TITLE, rates, optional=True)
    yield FigureSpec("ingest-quantiles", QUANTILES_TITLE, quantiles, optional=True)
    yield FigureSpec("ingest-distance", DISTANCE, distance)
    yield FigureSpec("ingest-pruning", PRUNING, pruning)
    yield FigureSpec("ingest-faults", FAULTS_TITLE, faults, optional=True)
    yield FigureSpec("ingest-maintenance", MAINTENANCE_TITLE, maintenance, optional=True)


def commits(context: FigureContext) -> DrawnFigure:
    """Draw commits/s of one table (lines) and of a table per writer (hollow), both axes logarithmic."""
    notes = [
        "Hot runs, closed loop; lines: all writers append to one table; hollow: a table each, which tells contention "
        "for the table from a busy machine. Bars: 95 % intervals. What the load generator can do is in the table "
        "ingest-writers."
    ]
    return _by_writers(context, COMMITS, COMMITS_TITLE, "commits/s, log scale", notes, log=True)


def conflicts(context: FigureContext) -> DrawnFigure:
    """Draw the share of refused commits to one table, as far as catalog, client or caller report it."""
    notes = [
        "Hot runs; of all commits that were tried on one table, those that were refused because another one came "
        "first. For DuckLake its catalog counts them, for PyIceberg the client; for the others it is what the client's "
        "own retries did not resolve: see the table ingest-outcomes. Bars: 95 % intervals."
    ]
    return _by_writers(context, CONFLICTS, CONFLICTS_TITLE, "refused (%)", notes, log=False)


def _by_writers(
    context: FigureContext, quantity: Metric, title: str, what: str, notes: list[str], *, log: bool
) -> DrawnFigure:
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(0.55, 2.35)
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
            tables, writers = given.tables, given.writers
            if tables == OWN and not log:
                continue
            value = attempt("", partial(context.measures.hot, quantity, each))
            if isinstance(value, MissingCell):
                without.setdefault(value.reason, []).append(f"{each.title} {each.mode}")
                continue
            runs += list(each.hot_runs)
            counts.add(writers)
            points[tables] += plots.rows_of(value, factor, system=each.title, writers=beside * writers)
    if not runs:
        raise NotAvailable("there is no hot run")
    for tables, found in points.items():
        if found:
            plots.lines(axes, found, "writers", "value", context.look, joined=tables == ONE, hollow=tables == OWN,
                        legend=tables == ONE or not points[ONE])  # fmt: skip
    plots.legend_beside(axes)
    plots.log_axis(axes, ticks=counts, base=2)
    if log:
        plots.log_axis(axes, "y")
    else:
        axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])  # shows a mark at zero completely
        axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.grid()
    axes.set_xlabel("writers, log scale")
    axes.set_ylabel(what)
    missing = [f"Not drawn: {', '.join(which)} ({reason})." for reason, which in without.items()]
    return context.finish(made, title, [*notes, *missing, context.run_set.coverage], runs)


def _by_system(context: FigureContext) -> list[list[Series]]:
    found: dict[str, list[Series]] = {}
    for series in of_part(context.run_set, WRITERS).select(harness=False):
        found.setdefault(series.system, []).append(series)
    if not found:
        raise NotAvailable("no system was measured")
    return [sorted(each, key=lambda series: WritersSettings.of(series).writers) for each in found.values()]


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
    if not found:
        raise NotAvailable("no requests were gathered and committed one by one as well")
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
    notes = [
        "Hot runs; rows a request x clients. Filled: staged, hollow: bundled; lines: 95 % intervals; upright ticks: "
        "what kyma's page prints for its store. Left, more is better; right, less.",
        context.run_set.coverage,
    ]
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
LEFT = 0.55  # inches
ACROSS = 3  # panels side by side
WAYS = {"by schedule": responses, "corrected": corrected, "closed loop": closed}
MOST_POINTS = 400  # per line


def rates(context: FigureContext) -> DrawnFigure:
    """Draw a line per system and target; overloaded rates are hollow with an arrow, since they are lower bounds."""
    made = style.frame(style.PAGE, 2.3)
    axes = made.axes(LEFT, 2.35)
    runs: list[Run] = []
    without: dict[str, list[str]] = {}
    percents: set[int] = set()
    found = _by_rate(context)
    points: list[dict[str, object]] = []
    bounds: list[dict[str, object]] = []  # points that are lower bounds
    look, dashes = Look({}, {}), {}
    for place, line in enumerate(found):
        given = TailSettings.of(line[0])
        target, arrivals = given.target, given.arrivals
        more = [*([] if target == ONE else [target]), *([] if arrivals == POISSON else [arrivals])]
        name = ", ".join([line[0].title, *more])
        look.colours[name], look.shapes[name] = context.colour(line[0]), context.look.shapes[line[0].title]
        dashes[name] = "" if target == ONE else (3, 2)
        for series in line:
            value = attempt("ms", partial(context.measures.hot, RESPONSE_P99, series))
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
    if not runs:
        raise NotAvailable("no hot run came by a schedule and was long enough for a p99")
    plots.lines(axes, points, "percent", "value", look, legend=True, dashes=dashes)
    plots.legend_beside(axes)
    if bounds:
        plots.lines(axes, bounds, "percent", "value", look, joined=False, hollow=True)
    axes.set_xticks(sorted(percents))
    plots.log_axis(axes, "y")
    axes.grid()
    axes.set_xlabel("offered rate, percent of the closed loop's")
    axes.set_ylabel("response p99 (ms), log scale")
    notes = [
        "Hot runs; from the intended start to the acknowledgement. Solid: one writer; dashed: a front that gathers. "
        "Hollow with an arrow: overloaded, a lower bound. Bars: 95 % intervals.",
        *(f"Not drawn: {', '.join(which)} ({reason})." for reason, which in without.items()),
    ]
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
    if not shown:
        raise NotAvailable("no hot run came by a schedule")
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
    notes = [
        "First hot run of each system, at the highest rate that was not overloaded (its share of the closed loop's "
        "next to the name); half of all times are below the value at 50 %. Solid: responses by schedule; dotted, dark: "
        "the raw times of the closed loop before it; dashed: these with what HdrHistogram's rule adds to them."
    ]
    return context.finish(
        made, QUANTILES_TITLE, [*notes, context.run_set.coverage], [each.hot_runs[0] for each in shown]
    )


def _curves(series: Series, panel: int) -> pd.DataFrame:
    """Return the times of a series' first hot run by quantile, measured in each of the ways."""
    found = {way: _by_quantile(times(series.hot_runs[0])) for way, times in WAYS.items()}
    each = [pd.DataFrame({"panel": panel, "way": way, "beyond": x, "ms": y}) for way, (x, y) in found.items()]
    return pd.concat(each, ignore_index=True)


def _by_quantile(times: Times) -> tuple[np.ndarray, np.ndarray]:
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
    if not series:
        raise NotAvailable("no series has its files in an object store")
    drawn = {each[0].title: medians(context.measures, each) for each in series}
    return plots.fitted(
        context,
        DISTANCE,
        drawn,
        LABELS,
        [DISTANCE_NOTE],
        [run for each in series for one in each for run in one.hot_runs],
    )


def pruning(context: FigureContext) -> DrawnFigure:
    """Draw the files that a query is left to read: a row per system, a column per filter."""
    found = [each for each in pruned_series(context.measures) if each.hot_runs]
    if not found:
        raise NotAvailable("no system was asked for filtered rows")
    runs, most = [each.hot_runs[0] for each in found], [files_of(each) for each in found]
    names = [f"{each.title}, {files:,} files" for each, files in zip(found, most, strict=True)]
    counts = pd.DataFrame([{name: files_read(run, name) for name in BY_NAME} for run in runs], index=names)
    return plots.heat(context, PRUNING, counts, most, [PRUNING_NOTE], runs)


FAULTS_TITLE = "Acknowledged rows while writers and servers are killed"
BIN_S = 0.1
FAULTS_PANEL, FAULTS_APART = 0.95, 0.50  # inches: height of a system's panel, and of the part of it above the axes
MOST = 8  # systems in one figure
NAMED = 12  # kills per system up to which they are named; more are too close
LETTER = 0.0065  # width of a letter in panel widths; a name that would overlap the next is shown as its initial
ABOVE = 1.24  # position of the system's name in axes heights, above the names of the victims
SHADE = "#d9d9d9"


def faults(context: FigureContext) -> DrawnFigure:
    """Draw a panel per system with a bar per 100 ms, grey from each kill until all write again."""
    found = all_killed(context.run_set)
    shown = found[:MOST]
    if not shown:
        raise NotAvailable("nothing was killed")
    made = style.frame(style.PAGE, FAULTS_PANEL * len(shown))
    for place, killed in enumerate(shown):
        _faults_panel(context, made, killed, len(shown) - 1 - place)
    notes = [
        f"Rows acknowledged in each {1000 * BIN_S:g} ms, by second of the window: two writers, or the clients of a "
        "front that commits for them. Dashed: SIGKILL, with what was killed (or its initial); grey: until all that it "
        "concerns had a commit acknowledged again. Dots: batches whose outcome their writer does not know."
    ]
    if len(found) > MOST:
        notes.append(f"Not drawn: {', '.join(killed.series.title for killed in found[MOST:])}.")
    return context.finish(made, FAULTS_TITLE, [*notes, context.run_set.coverage], [killed.run for killed in shown])


def _faults_panel(context: FigureContext, made: style.Frame, killed: Killed, above: int) -> None:
    run, colour = killed.run, context.colour(killed.series)
    axes = made.axes(0.55, 0.15, bottom=FAULTS_PANEL * above, height=FAULTS_PANEL - FAULTS_APART)
    ends = (run.column("start_ns") + run.column("elapsed_ns")) / 1e9
    acked = outcomes(run) == ACKED
    length = run.manifest.elapsed_ns / 1e9
    bins = {"binwidth": BIN_S, "binrange": (0.0, BIN_S * np.ceil(length / BIN_S))}
    sns.histplot(x=ends[acked], weights=run.column("rows")[acked] / BIN_S, **bins, element="step", color=colour,
                 edgecolor=style.ink(colour), linewidth=0.5, alpha=0.8, ax=axes)  # fmt: skip
    moments = [kill.moment_s for kill in killed.each]
    for kill, following in zip(killed.each, [*moments[1:], length], strict=True):
        axes.axvspan(kill.moment_s, kill.moment_s + kill.down_s, color=SHADE, zorder=0)
        axes.axvline(kill.moment_s, color="black", linestyle="--", linewidth=0.8)
        if len(killed.each) <= NAMED:
            name = kill.victim
            if (following - kill.moment_s) / length < LETTER * len(name):
                name = f"{name[0]}."
            axes.annotate(name, (kill.moment_s, 1.0), xycoords=("data", "axes fraction"), xytext=(1, 1),
                          textcoords="offset points", fontsize=style.SMALL)  # fmt: skip
    doubt = np.isin(outcomes(run), ("unknown",))
    sns.scatterplot(x=ends[doubt], y=np.zeros(doubt.sum()), color="black", s=6, linewidth=0, clip_on=False, ax=axes)
    axes.set_xlim(0, length)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("rows/s", fontsize=style.SMALL)
    behind = " (behind a front)" if part_name(killed.series) == FRONT else ""
    axes.text(0, ABOVE, f"{killed.series.title}{behind}", transform=axes.transAxes, va="bottom", fontsize=style.SMALL,
              color=style.ink(colour))  # fmt: skip
    if above == 0:
        axes.set_xlabel("second of the window")


MAINTENANCE_TITLE = "Small files and commits over time, with and without maintenance"
KEPT_PANEL, KEPT_APART = 1.05, 0.42  # inches: height of a system's panel, and of the part of it above the axes
KEPT_GAP, KEPT_RIGHT = 0.6, 0.15
BINS = 16
DASHED = (0, (3, 2))


def maintenance(context: FigureContext) -> DrawnFigure:
    """Draw a row per system: data files on the left, the median commit on the right; grey during a call."""
    found = [(kept_of(own), kept_of(control) if control else []) for own, control in pairs(context.run_set) if own.runs]
    if not found:
        raise NotAvailable("no table was maintained while it was written to")
    shown = found[:MOST]
    made = style.frame(style.PAGE, KEPT_PANEL * len(shown))
    for place, (kept, control) in enumerate(shown):
        bottom = KEPT_PANEL * (len(shown) - 1 - place)
        both = made.pair(LEFT, KEPT_GAP, KEPT_RIGHT, bottom, KEPT_PANEL - KEPT_APART)
        colour = context.colour(kept[0].series)
        for runs, line, name in ((kept, "-", "maintained"), (control, DASHED, "not maintained")):
            if not runs:
                continue
            one = runs[0]
            sizes = pd.DataFrame([asdict(size) for size in one.found.sizes])
            how = {"estimator": None, "linestyle": line, "color": style.ink(colour)}
            sns.lineplot(sizes, x="moment_s", y="data_files", ax=both[0], **how)
            if one.is_exact:
                middles, medians = _medians(one)
                sns.lineplot(x=middles, y=medians, ax=both[1], **how)
            else:
                height = 0.06 if runs is kept else 0.26  # below the other line, which is seldom near zero
                both[1].text(0.5, height, f"{name}: {words_of([one])}", transform=both[1].transAxes, ha="center",
                             fontsize=style.SMALL)  # fmt: skip
        for axes, what in zip(both, ("files", "ms"), strict=True):
            for call in kept[0].found.calls:
                axes.axvspan(call.moment_s, call.moment_s + call.seconds, color=SHADE, zorder=0, linewidth=0)
            axes.set_xlim(0, kept[0].run.elapsed_s)
            axes.set_ylim(bottom=0)
            axes.set_xlabel("")
            axes.set_ylabel(what, fontsize=style.SMALL)
            axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
            if bottom == 0:
                axes.set_xlabel("second of the window")
        both[0].text(0, 1.06, kept[0].series.title, transform=both[0].transAxes, va="bottom", fontsize=style.SMALL,
                     color=style.ink(colour))  # fmt: skip
    notes = [
        "Left: data files on the disk. Right: median of the commits that ended in each sixteenth of the window. Solid: "
        "with maintenance, grey while a call lasts; dashed: without. Commits to tables that do not hold what was "
        "acknowledged are not drawn.",
        context.run_set.coverage,
    ]
    if len(found) > MOST:
        notes.append(f"Not drawn: {', '.join(kept[0].series.title for kept, _ in found[MOST:])}.")
    return context.finish(
        made, MAINTENANCE_TITLE, notes, [each.run for pair in shown for runs in pair for each in runs[:1]]
    )


def _medians(one: Kept) -> tuple[list[float], list[float]]:
    """Return the middle (s) of each part of the window that has commits, and the median of these commits (ms)."""
    begins, ends = one.commits
    width = one.run.elapsed_s / BINS
    places = np.floor(ends / width).astype(int)
    filled = [place for place in range(BINS) if (places == place).any()]
    return (
        [(place + 0.5) * width for place in filled],
        [float(np.median(1000 * (ends - begins)[places == place])) for place in filled],
    )
