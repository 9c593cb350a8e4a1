"""Figures 4.1 (components, drawn from the runs) and 4.2 (threads), and the sweep of batch sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tidemark.analysis.formatting import MissingCell, attempt
from tidemark.analysis.measures import NotAvailable
from tidemark.analysis.text_blocks import lowest_and_highest
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.runs.run import Run
from tidemark.studies.streams.metrics import HARNESS_RATE

THREADS, BATCH_SIZE = "threads", "batch-size"  # sweeps of the shipped configuration
BOX_WIDTH, BOX_HEIGHT = 1.24, 0.5


def figure_specs() -> Iterator[FigureSpec]:
    """Yield figures 4.1, 4.2 and batch-size; a sweep that the configuration omits has no figure."""
    yield FigureSpec("figure-4.1", "The components of a measurement", components)
    yield FigureSpec("figure-4.2", "Events written with one thread and with more", threads, optional=True)
    yield FigureSpec("batch-size", "Throughput by batch size", batch_sizes, optional=True)


def components(context: FigureContext) -> DrawnFigure:
    """Draw the path of a trip from the file to a figure."""
    made = style.frame(style.PAGE, 1.42)
    axes = made.axes(0.1, 0.1, bottom=-0.38, height=1.8)  # no axis below needs the space
    axes.set_xlim(0, 6.8)
    axes.set_ylim(0.1, 1.9)
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
    runs = [run for series in systems for run in series.runs]
    shown = "A trip passes from the file through Kafka and the harness into a table; the samples become the results."
    drawn = context.finish(made, "The components of a measurement", notes, runs, shown)
    return replace(drawn, notes=tuple(notes))  # it shows no run, so no warning about a run applies


def threads(context: FigureContext) -> DrawnFigure:
    """Draw figure 4.2: the events of a window by the number of client threads."""
    chosen = context.run_set.select(sweep=THREADS)
    if not any(series.runs for series in chosen):
        raise NotAvailable("the configuration has no sweep 'threads', or none of its runs succeeded")
    named = {
        f"{series.title}, {series.threads} thread{'s' if series.threads > 1 else ''}": series
        for series in sorted(chosen, key=lambda each: (each.title, each.threads))
    }
    rows = [(name, series, [plots.Count(run.manifest.events) for run in series.runs]) for name, series in named.items()]
    runs = [run for series in named.values() for run in series.runs]
    windows = sorted({round(run.manifest.window_s) for run in runs})
    made, _ = plots.counts(context, rows, f"events written in {' or '.join(f'{window:,}' for window in windows)} s")
    machine = runs[0].manifest.machine
    notes = [f"A point is a run. This machine has {machine.threads} hardware threads.", *context.run_set.notes]
    shown = lowest_and_highest(
        "The number of events",
        [
            (float(run.manifest.events), name.replace(", ", " with "))
            for name, each in named.items()
            for run in each.runs
        ],
    )
    return context.finish(made, "Events written with one thread and with more", notes, runs, shown)


def batch_sizes(context: FigureContext) -> DrawnFigure:
    """Draw harness throughput by batch size, to show where each system's curve bends."""
    chosen = [series for series in context.run_set.select(sweep=BATCH_SIZE, harness=False) if series.runs]
    if not chosen:
        raise NotAvailable("the configuration has no sweep 'batch-size', or none of its runs succeeded")
    made = style.frame(style.COLUMN, 1.9)
    axes = made.axes(0.6, 1.1)
    runs: list[Run] = []
    largest: dict[str, float] = {}
    points: list[dict[str, object]] = []
    for series in sorted(chosen, key=lambda each: each.batch_size):
        found = attempt(HARNESS_RATE.unit, partial(context.measures.of_run, HARNESS_RATE, series.runs[-1]))
        if isinstance(found, MissingCell):
            continue
        runs.append(series.runs[-1])
        points += plots.rows_of(found, system=series.title, rows=series.batch_size)
        largest[series.title] = found.value
    if not points:
        raise NotAvailable("no run of the sweep 'batch-size' has a rate")
    order = sorted(largest, key=largest.__getitem__, reverse=True)  # the order of the lines' ends, from the top
    points.sort(key=lambda point: order.index(str(point["system"])))
    plots.lines(axes, points, "rows", "value", context.look, legend=True)
    plots.log_axis(axes)
    plots.log_axis(axes, "y")
    axes.grid()
    axes.set_xlabel("events per write, log scale")
    axes.set_ylabel("events/s in the window, log scale")
    plots.legend_beside(axes)
    notes = ["Points are the last run of each series; vertical lines are the 95 % interval within that run."]
    shown = lowest_and_highest(
        "With the largest batches, throughput", [(largest[name], name) for name in reversed(order)]
    )
    return context.finish(made, "Throughput by batch size", notes, runs, shown)
