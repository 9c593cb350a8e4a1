"""Content of the thesis's figures: 4.1 (components), 4.2 (threads), 5.1 to 5.12 and A.1 to A.20; and of batch sizes.

Figures 5.1 to A.20 are each drawn for the run that the thesis shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from numpy.typing import NDArray

from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.text_blocks import lowest_and_highest, sentence, valued
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec, Group
from tidemark.results.figures.panels import cpu_strips, scatter_panels
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.spec import BATCH, SINGLE
from tidemark.runs.views import all_runs
from tidemark.studies.streams import published
from tidemark.studies.streams.findings import trend
from tidemark.studies.streams.metrics import GROWTH, HARNESS_RATE

THREADS, BATCH_SIZE = "threads", "batch-size"  # sweeps of the shipped configuration
BOX_WIDTH, BOX_HEIGHT = 1.24, 0.5
COLD, FIRST_HOT, SECOND_HOT = 0, 1, 2
RUN_WORDS = {COLD: "run 0", FIRST_HOT: "first hot run", SECOND_HOT: "second hot run"}
MODE_WORDS = {SINGLE: "one by one", BATCH: "in batches"}
type Samples = tuple[NDArray[np.float64], NDArray[np.float64] | None]


def figure_specs() -> Iterator[FigureSpec]:
    """Yield all figures, in the order of the thesis; a sweep that the configuration omits has no figure."""
    yield FigureSpec("figure-4.1", "The components of a measurement", components)
    yield FigureSpec("figure-4.2", "Events written with one thread and with more", threads, optional=True)
    yield FigureSpec("batch-size", "Throughput by batch size", batch_sizes, optional=True)
    for mode, first in ((SINGLE, 1), (BATCH, 7)):
        words = MODE_WORDS[mode]
        yield FigureSpec(f"figure-5.{first}", f"Events written by run, {words}", partial(totals, mode=mode))
        for place, what in enumerate(_KINDS, first + 1):
            yield _of_one_run(f"figure-5.{place}", what, mode, FIRST_HOT)
    for mode, first in ((SINGLE, 1), (BATCH, 11)):
        shown = [(what, number) for what in _APPENDIX for number in (COLD, SECOND_HOT)]
        for place, (what, number) in enumerate(shown, first):
            yield _of_one_run(f"figure-A.{place}", what, mode, number)


def _of_one_run(name: str, what: str, mode: str, number: int) -> FigureSpec:
    title = f"{what}, {MODE_WORDS[mode]}, {RUN_WORDS[number]}"
    draw = partial(_KINDS[what], mode=mode, number=number, title=title)
    return FigureSpec(name, title, draw, optional=number == SECOND_HOT)


def components(context: FigureContext) -> DrawnFigure:
    """Draw the path of a trip from the file to a figure."""
    made = style.frame(style.PAGE, 1.42)
    axes = made.axes(0.1, 0.1, bottom=-0.38, height=1.8)  # no axis below needs the space
    axes.set(xlim=(0, 6.8), ylim=(0.1, 1.9))
    axes.set_axis_off()  # drawn with matplotlib directly: seaborn draws data, and there is none
    systems = context.run_set.select(harness=False)
    clients = ", ".join(dict.fromkeys(s.runs[0].manifest.system.client for s in systems if s.runs)) or "client"
    formats = ", ".join(dict.fromkeys(s.runs[0].manifest.system.format for s in systems if s.runs)) or "table"
    catalogs = "; ".join(dict.fromkeys(s.runs[0].manifest.system.catalog for s in systems if s.runs)) or "catalog"
    ours, theirs = "#E8F1F8", "#FBEFDD"
    places = {
        "trips": (0.7, 1.55, "Trips", "Parquet, with ids", ours),
        "producer": (2.15, 1.55, "Producer", "its own process;\nan Arrow message per trip", ours),
        "broker": (3.6, 1.55, "Kafka broker", "one topic and one\npartition per run", theirs),
        "harness": (5.4, 1.55, "Harness", "poll, decode, assemble,\nthen the timed write", ours),
        "table": (5.4, 0.45, "System under test", f"{clients}:\n{formats}", theirs),
        "catalog": (3.6, 0.45, "Catalog", catalogs, theirs),
        "runs": (2.15, 0.45, "Run files", "a row per operation;\nCPU, disk, proofs", ours),
        "results": (0.7, 0.45, "Results", "database, tables,\nfigures, claims", ours),
    }
    for x, y, name, words, colour in places.values():
        wide = BOX_WIDTH if x < 5 else 1.75
        axes.add_patch(
            FancyBboxPatch((x - wide / 2, y - BOX_HEIGHT / 2), wide, BOX_HEIGHT, boxstyle="round,pad=0.02",
                           facecolor=colour, edgecolor=style.FAINT, linewidth=0.7)
        )  # fmt: skip
        axes.text(x, y + 0.14, name, ha="center", va="center", fontsize=style.TEXT, fontweight="bold")
        axes.text(x, y - 0.09, words if "\n" in words else style.few_lines(words, 26), ha="center", va="center",
                  fontsize=style.SMALL, color=style.INK)  # fmt: skip
    half = BOX_WIDTH / 2 + 0.03
    arrows = [
        ((0.7 + half, 1.55), (2.15 - half, 1.55), ""),
        ((2.15 + half, 1.55), (3.6 - half, 1.55), ""),
        ((3.6 + half, 1.55), (5.4 - 0.91, 1.55), ""),
        ((5.4, 1.27), (5.4, 0.73), "write: rows, one commit"),
        ((5.4 - 0.91, 0.45), (3.6 + half, 0.45), ""),
        ((4.75, 1.27), (2.5, 0.73), "samples, after the window"),
        ((2.15 - half, 0.45), (0.7 + half, 0.45), ""),
    ]
    for start, end, label in arrows:
        axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=7, linewidth=0.9, color=style.INK))
        # Next to a vertical arrow, below a slanted one: otherwise the line would cross the label.
        upright = start[0] == end[0]
        axes.text((start[0] + end[0]) / 2 + (0.05 if upright else 0.12), (start[1] + end[1]) / 2, label,
                  fontsize=style.SMALL, va="center" if upright else "top")  # fmt: skip
    notes = [
        "Blue boxes are Tidemark's; orange boxes are other programs, in their own processes except for the client."
    ]
    shown = "A trip passes from the file through Kafka and the harness into a table; the samples become the results."
    drawn = context.finish(made, "The components of a measurement", notes, all_runs(systems), shown)
    return replace(drawn, notes=tuple(notes))  # it shows no run, so no warning about a run applies


def threads(context: FigureContext) -> DrawnFigure:
    """Draw figure 4.2: the events of a window by the number of client threads."""
    chosen = context.run_set.select(sweep=THREADS)
    named = {
        f"{series.title}, {series.threads} thread{'s' if series.threads > 1 else ''}": series
        for series in sorted(chosen, key=lambda each: (each.title, each.threads))
    }
    rows = [(name, series, [plots.Count(run.manifest.events) for run in series.runs]) for name, series in named.items()]
    runs = require(all_runs(named.values()), "the configuration has no sweep 'threads', or none of its runs succeeded")
    windows = sorted({round(run.manifest.window_s) for run in runs})
    printed = {
        name: _in_own_window(series, [count], published.THREADS_WINDOW_S)
        for name, series in named.items()
        if (count := published.OF_THREADS.get(series.system, {}).get(series.threads))
    }
    what = f"events written in {' or '.join(f'{window:,}' for window in windows)} s"
    made, _ = plots.counts(context, rows, what, printed, published.ticks_words(published.THREADS_WINDOW_S))
    machine = runs[0].manifest.machine
    notes = [f"A point is a run. This machine has {machine.threads} hardware threads."]
    notes += [_ticks_note(published.THREADS_WINDOW_S, runs), published.threads_words()]
    notes += context.run_set.notes
    events = [(each.value, name.replace(", ", " with ")) for name, _, found in rows for each in found]
    shown = lowest_and_highest("The number of events", events)
    return context.finish(made, "Events written with one thread and with more", notes, runs, shown)


def batch_sizes(context: FigureContext) -> DrawnFigure:
    """Draw harness throughput by batch size, to show where each system's curve bends."""
    chosen = [series for series in context.run_set.select(sweep=BATCH_SIZE, harness=False) if series.runs]
    require(chosen, "the configuration has no sweep 'batch-size', or none of its runs succeeded")
    made, axes = style.single(style.COLUMN, 1.9, 0.6, 1.1)
    by_size = sorted(chosen, key=lambda each: each.batch_size)
    drawn = valued(lambda each: context.measures.of_run(HARNESS_RATE, each.runs[-1]), by_size)
    require(drawn, "no run of the sweep 'batch-size' has a rate")
    largest = {series.title: rate.value for series, rate in drawn}
    points = [row for each, rate in drawn for row in plots.rows_of(rate, system=each.title, rows=each.batch_size)]
    order = sorted(largest, key=largest.__getitem__, reverse=True)  # the order of the lines' ends, from the top
    points.sort(key=lambda point: order.index(str(point["system"])))
    plots.lines(axes, points, "rows", "value", context.look, legend=True)
    plots.log_axes(axes, "events per write, log scale", "events/s in the window, log scale")
    plots.legend_beside(axes)
    notes = ["Points are the last run of each series; vertical lines are the 95 % interval within that run."]
    shown = lowest_and_highest("With the largest batches, throughput", [(rate, name) for name, rate in largest.items()])
    runs = [series.runs[-1] for series, _ in drawn]
    return context.finish(made, "Throughput by batch size", notes, runs, shown)


def totals(context: FigureContext, mode: str) -> DrawnFigure:
    """Draw figures 5.1 and 5.7: the events of each run."""
    chosen = context.series(mode)
    runs = all_runs(chosen)
    commits = sorted({run.manifest.commits_wanted for run in runs} - {0})
    by_commits = bool(commits)  # such windows differ in length

    def value(run: Run) -> float:
        return run.manifest.events / run.elapsed_s if by_commits else run.manifest.events

    def point(run: Run) -> plots.Count:
        return plots.Count(value(run), run.cold, run.state if run.cold else "", bool(run.disturbed))

    rows = [(series.title, series, list(map(point, series.runs))) for series in chosen]
    windows = sorted({round(run.manifest.window_s) for run in runs}) or [0]
    window = f"{windows[0]:,} s" if len(windows) == 1 else f"{windows[0]:,} to {windows[-1]:,} s"
    printed = {
        series.title: [count / published.WINDOW_S for count in counts]
        if by_commits
        else _in_own_window(series, counts, published.WINDOW_S)
        for series in chosen
        if (counts := published.EVENTS[mode].get(series.system)) and series.batch_size in (1, published.OF_A_BATCH)
    }
    of_commits = f"events/s in windows of {' or '.join(f'{each:,}' for each in commits)} commits"
    what = of_commits if by_commits else f"events written in {window}"
    made, notes = plots.counts(context, rows, what, printed, published.ticks_words(published.WINDOW_S))
    if by_commits:
        notes.append("Windows ended by their number of commits, so events are shown per second of the window.")
    notes += [_ticks_note(published.WINDOW_S, runs), published.events_words(mode)]
    means = [
        (float(np.mean([value(run) for run in series.hot_runs])), series.title) for series in chosen if series.hot_runs
    ]
    shown = lowest_and_highest(f"The number of events per {'second' if by_commits else 'hot run'}", means)
    return context.finish(made, f"Events written by run, {MODE_WORDS[mode]}", notes, runs, shown)


def _in_own_window(series: Series, events: Sequence[int], seconds: float) -> list[float]:
    """Return the thesis's events of windows of `seconds`, at the same rate in the longest window of the series."""
    own = max((run.manifest.window_s for run in series.runs), default=seconds)
    return [count * own / seconds for count in events]


def _ticks_note(seconds: float, runs: Sequence[Run]) -> str:
    text = f"Upright ticks: the thesis's runs of {seconds} s, on another machine"
    if all(round(run.manifest.window_s) == seconds and not run.manifest.commits_wanted for run in runs):
        return f"{text}."
    return f"{text}, at their rate; in a window as long as theirs, a system that slows down would have a lower rate."


def disk(context: FigureContext, mode: str, number: int, title: str) -> DrawnFigure:
    """Draw the bytes written to the data's device in each whole second of the window."""

    def values(run: Run) -> Samples:
        found = run.seconds().disk_bytes_per_s
        return (np.empty(0) if found is None else found[np.isfinite(found)] / 1e6), None

    groups, runs = context.groups(mode, number, values)
    made, notes = plots.boxes(groups, "written to disk per second", "MB")
    notes.append(
        "Bytes are those of all processes; a run in which the stream wrote more than a tenth of them is left out."
    )
    return context.finish(made, title, notes, runs, _medians("The median of the bytes per second", groups))


def write_times(context: FigureContext, mode: str, number: int, title: str) -> DrawnFigure:
    groups, runs = context.groups(mode, number, lambda run: (run.column("write_ns") / 1e6, None))
    made, notes = plots.boxes(groups, "write time", "ms")
    return context.finish(made, title, notes, runs, _medians("The median write of this run", groups))


def read_times(context: FigureContext, mode: str, number: int, title: str) -> DrawnFigure:
    """Draw the time spent polling the broker per event; in batch mode, the batch's poll time divided by its events."""
    groups, runs = context.groups(mode, number, lambda run: (run.column("poll_ns") / run.column("rows") / 1e3, None))
    made, notes = plots.boxes(groups, "time to read an event", "µs")
    if mode == BATCH:
        notes.append("A batch is fetched at once: a sample is the time of a batch divided by its events.")
    elif most := max((series.read_ahead for series in context.series(mode) if series.reads_in_goes), default=0):
        notes.append(f"One read returns up to {most:,} events (a read batch): a sample is the mean over a read batch.")
    return context.finish(made, title, notes, runs, _medians("The median read time of this run", groups))


def scatter(context: FigureContext, mode: str, number: int, title: str) -> DrawnFigure:
    groups, runs = context.groups(
        mode, number, lambda run: (run.column("write_ns") / 1e6, run.column("start_ns") / 1e9)
    )
    made, notes = scatter_panels(context, groups, {run.label: run for run in runs}, "write", GROWTH)
    slopes = []
    for run in runs:
        with suppress(NotAvailable):
            slopes.append((run.manifest.system.title, context.measures.of_run(GROWTH, run).estimate("")))
    shown = sentence(trend("in this run, the write time", slopes))
    return context.finish(made, title, notes, runs, shown)


def _medians(subject: str, groups: Sequence[Group]) -> str:
    """Return a sentence on the lowest and the highest median in the one run that a figure shows."""
    return lowest_and_highest(
        subject, [(float(np.median(group.values)), group.title) for group in groups if len(group.values)]
    )


def cpu(context: FigureContext, mode: str, number: int, title: str) -> DrawnFigure:
    """Draw the CPU use of the complete machine per second."""

    def values(run: Run) -> Samples:
        seconds = run.seconds()
        return seconds.cpu_percent, seconds.second

    groups, runs = context.groups(mode, number, values)
    made, notes = cpu_strips(groups)
    return context.finish(made, title, notes, runs, _medians("The median processor load", groups))


_KINDS = {
    "Bytes written to disk": disk,
    "Write times": write_times,
    "Write times over the run": scatter,
    "Read times": read_times,
    "CPU of the machine (%)": cpu,
}
_APPENDIX = ("CPU of the machine (%)", "Bytes written to disk", "Write times", "Write times over the run", "Read times")
