"""Figures 5.1 to 5.12 and A.1 to A.20: the content of the thesis's figures, each for the run that the thesis shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.measures import NotAvailable
from tidemark.analysis.text_blocks import conclusion, lowest_and_highest, sentence
from tidemark.results.figures import plots
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec, Group
from tidemark.results.figures.panels import cpu_strips, scatter_panels
from tidemark.runs.run import Run
from tidemark.runs.spec import BATCH, SINGLE
from tidemark.studies.streams.metrics import GROWTH
from tidemark.studies.streams.sentences import FALLS, FLAT, GROWS

COLD, FIRST_HOT, SECOND_HOT = 0, 1, 2
RUN_WORDS = {COLD: "run 0", FIRST_HOT: "first hot run", SECOND_HOT: "second hot run"}
MODE_WORDS = {SINGLE: "one by one", BATCH: "in batches"}
type Samples = tuple[NDArray[np.float64], NDArray[np.float64] | None]


def figure_specs() -> Iterator[FigureSpec]:
    """Yield all figures, in the order of the thesis."""
    for mode, first in ((SINGLE, 1), (BATCH, 7)):
        words = MODE_WORDS[mode]
        yield FigureSpec(f"figure-5.{first}", f"Events written by run, {words}", partial(totals, mode=mode))
        for place, (what, draw) in enumerate(_KINDS.items(), 1):
            title = f"{what}, {words}, {RUN_WORDS[FIRST_HOT]}"
            yield FigureSpec(
                f"figure-5.{first + place}", title, partial(draw, mode=mode, number=FIRST_HOT, title=title)
            )
    for mode, first in ((SINGLE, 1), (BATCH, 11)):
        place = first
        for what in _APPENDIX:
            for number in (COLD, SECOND_HOT):
                title = f"{what}, {MODE_WORDS[mode]}, {RUN_WORDS[number]}"
                draw = partial(_KINDS[what], mode=mode, number=number, title=title)
                yield FigureSpec(f"figure-A.{place}", title, draw)
                place += 1


def totals(context: FigureContext, mode: str) -> DrawnFigure:
    """Draw figures 5.1 and 5.7: the events of each run."""
    chosen = context.series(mode)
    rows = [(series.title, series, [_count(run) for run in series.runs]) for series in chosen]
    runs = [run for series in chosen for run in series.runs]
    windows = sorted({round(run.manifest.window_s) for run in runs}) or [0]
    window = f"{windows[0]:,} s" if len(windows) == 1 else f"{windows[0]:,} to {windows[-1]:,} s"
    made, notes = plots.counts(context, rows, f"events written in {window}")
    means = [
        (float(np.mean([run.manifest.events for run in series.hot_runs])), series.title)
        for series in chosen
        if series.hot_runs
    ]
    shown = lowest_and_highest("The number of events per hot run", means)
    return context.finish(made, f"Events written by run, {MODE_WORDS[mode]}", notes, runs, shown)


def _count(run: Run) -> plots.Count:
    return plots.Count(run.manifest.events, run.cold, run.state if run.cold else "", bool(run.disturbed))


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
    trends: dict[str, list[str]] = {GROWS: [], FLAT: [], FALLS: []}
    for run in runs:
        try:
            slope = context.measures.of_run(GROWTH, run).estimate("")
        except NotAvailable:
            continue
        said = GROWS if slope.is_above(0) else FALLS if slope.is_below(0) else FLAT
        trends[said].append(run.manifest.system.title)
    shown = sentence(conclusion("in this run, the write time", "it", trends))
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
