"""Figures 4.1 (the components, drawn from what ran) and 4.2 (threads), and the sweep over sizes of batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from tidemark.analysis.measures import Absent
from tidemark.analysis.prose import lowest_and_highest
from tidemark.analysis.words import Missing, attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.ends import End, name_ends
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.studies.streams.quantities import HARNESS_RATE

THREADS, BATCH_SIZE = "threads", "batch-size"  # sweeps of the shipped configuration
BOX_WIDTH, BOX_HEIGHT = 1.24, 0.5


def sketches() -> Iterator[Sketch]:
    """Figures 4.1 and 4.2 and batch-size; a sweep that the configuration leaves out has no figure."""
    yield Sketch("figure-4.1", "The components of a measurement", components)
    yield Sketch("figure-4.2", "Events written with one thread and with more", threads, optional=True)
    yield Sketch("batch-size", "Throughput by batch size", batch_sizes, optional=True)


def components(studio: Studio) -> Drawn:
    """The way of a trip from the file to a figure."""
    made = style.frame(style.PAGE, 1.42)
    axes = made.axes(0.1, 0.1, bottom=-0.38, height=1.8)  # there is no axis below that would need the room
    axes.set_xlim(0, 6.8)
    axes.set_ylim(0.1, 1.9)
    axes.set_axis_off()
    systems = studio.run_set.select(harness=False)
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
        # Beside an upright arrow, below a slanting one: a line through the words would cross them out.
        upright = start[0] == end[0]
        axes.text((start[0] + end[0]) / 2 + (0.05 if upright else 0.12), (start[1] + end[1]) / 2, label,
                  fontsize=style.SMALL, va="center" if upright else "top")  # fmt: skip
    notes = [
        "Blue boxes are Tidemark's; orange boxes are other programs, in their own processes except for the client."
    ]
    runs = [run for series in systems for run in series.runs]
    shown = "A trip passes from the file through Kafka and the harness into a table; the samples become the results."
    drawn = studio.finish(made, "The components of a measurement", notes, runs, shown)
    return replace(drawn, notes=tuple(notes))  # it shows no run, so that no warning about one belongs to it


def threads(studio: Studio) -> Drawn:
    """Figure 4.2: the events of a window by the number of the client's threads."""
    chosen = studio.run_set.select(sweep=THREADS)
    if not any(series.runs for series in chosen):
        raise Absent("the configuration has no sweep 'threads', or none of its runs succeeded")
    rows = []
    runs: list[Run] = []
    for title in dict.fromkeys(series.title for series in chosen):
        of_system = sorted((each for each in chosen if each.title == title), key=lambda each: each.threads)
        bars = []
        for series in of_system:
            words = f"{series.threads} thread{'s' if series.threads > 1 else ''}"
            bars += [plots.Bar(run.manifest.events, False, words) for run in series.runs]
            runs += series.runs
        rows.append((title, studio.colour(of_system[0]), bars, of_system[0].missing()))
    windows = sorted({round(run.manifest.window_s) for run in runs})
    made, _ = plots.bars_by_run(rows, f"events written in {' or '.join(f'{window:,}' for window in windows)} s")
    machine = runs[0].manifest.machine
    notes = [f"A bar is a run. This machine has {machine.threads} hardware threads.", *studio.run_set.notes]
    totals = [
        (run.manifest.events, f"{series.title} with {series.threads} thread{'s' if series.threads > 1 else ''}")
        for series in chosen
        for run in series.runs
    ]
    shown = lowest_and_highest("The number of events", [(float(events), name) for events, name in totals])
    return studio.finish(made, "Events written with one thread and with more", notes, runs, shown)


def batch_sizes(studio: Studio) -> Drawn:
    """Harness throughput over the size of batches: where does each system's curve bend?"""
    chosen = [series for series in studio.run_set.select(sweep=BATCH_SIZE, harness=False) if series.runs]
    if not chosen:
        raise Absent("the configuration has no sweep 'batch-size', or none of its runs succeeded")
    made = style.frame(style.COLUMN, 1.9)
    axes = made.axes(0.6, 0.98)
    runs: list[Run] = []
    ends: list[End] = []
    for title in dict.fromkeys(series.title for series in chosen):
        points = []
        for series in sorted((each for each in chosen if each.title == title), key=lambda each: each.batch_size):
            run = series.runs[-1]
            found = attempt(HARNESS_RATE.unit, partial(studio.measures.of_run, HARNESS_RATE, run))
            if isinstance(found, Missing):
                continue
            runs.append(run)
            points.append((series.batch_size, found))
        if not points:
            continue
        colour = studio.colours[next(each.system for each in chosen if each.title == title)]
        axes.plot([x for x, _ in points], [e.value for _, e in points], "o-", color=colour, markersize=3, linewidth=1.1)
        for x, e in points:
            if e.low is not None and e.high is not None:
                axes.plot([x, x], [max(e.low, 1e-6), e.high], color=colour, linewidth=1, alpha=0.6)
        ends.append(End(points[-1][1].value, title, colour, points[-1][0]))
    axes.set_xscale("log")
    axes.xaxis.set_minor_formatter(plots.minor_ticks())
    axes.set_yscale("log")
    axes.yaxis.set_minor_formatter(plots.minor_ticks())
    axes.xaxis.set_major_formatter(plots.plain_ticks())
    axes.yaxis.set_major_formatter(plots.plain_ticks())
    axes.grid()
    axes.set_xlabel("events per write, log scale")
    axes.set_ylabel("events/s in the window, log scale")
    name_ends(axes, ends)
    notes = ["Points are the last run of each series; vertical lines are the 95 % interval within that run."]
    shown = lowest_and_highest("With the largest batches, throughput", [(end.value, end.title) for end in sorted(ends)])
    return studio.finish(made, "Throughput by batch size", notes, runs, shown)
