"""Figures of writers that are disturbed: by kills, by maintenance of their table, and by answers that are lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.ticker import MaxNLocator

from tidemark.analysis.metrics import require
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.tables.table import notes_of
from tidemark.studies.ingest.load.records import ACKED
from tidemark.studies.ingest.metrics import outcomes
from tidemark.studies.ingest.parts import FRONT, part_name
from tidemark.studies.ingest.tables.ambiguity import all_hits
from tidemark.studies.ingest.tables.faults import Killed, all_killed
from tidemark.studies.ingest.tables.maintenance import Kept, kept_of, pairs, words_of

NOTES = notes_of(__file__)
FAULTS_TITLE = "Acknowledged rows while writers and servers are killed"
BIN_S = 0.1
FAULTS_PANEL, FAULTS_APART = 0.95, 0.50  # inches: height of a system's panel, and of the part of it above the axes
MOST = 8  # systems in one figure
NAMED = 12  # kills per system up to which they are named; more are too close
LETTER = 0.0065  # width of a letter in panel widths; a name that would overlap the next is shown as its initial
ABOVE = 1.24  # position of the system's name in axes heights, above the names of the victims
SHADE = "#d9d9d9"
MAINTENANCE_TITLE = "Small files and commits over time, with and without maintenance"
KEPT_PANEL, KEPT_APART = 1.05, 0.42  # inches: height of a system's panel, and of the part of it above the axes
KEPT_LEFT, KEPT_GAP, KEPT_RIGHT = 0.55, 0.6, 0.15
BINS = 16
AMBIGUITY_TITLE = "Commits whose answer is lost: hits that do harm"
DASHED = (0, (3, 2))


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-faults", FAULTS_TITLE, faults, optional=True)
    yield FigureSpec("ingest-maintenance", MAINTENANCE_TITLE, maintenance, optional=True)
    yield FigureSpec("ingest-ambiguity", AMBIGUITY_TITLE, ambiguity, optional=True)


def faults(context: FigureContext) -> DrawnFigure:
    """Draw a panel per system with a bar per 100 ms, grey from each kill until all write again."""
    found = all_killed(context.run_set)
    shown = require(found[:MOST], "nothing was killed")
    made = style.frame(style.PAGE, FAULTS_PANEL * len(shown))
    for place, killed in enumerate(shown):
        _faults_panel(context, made, killed, len(shown) - 1 - place)
    notes = NOTES("ingest-faults", milliseconds=1000 * BIN_S)
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
    axes.set(xlim=(0, length), ylim=(0, None))
    axes.set_ylabel("rows/s", fontsize=style.SMALL)
    behind = " (behind a front)" if part_name(killed.series) == FRONT else ""
    plots.small_text(axes, 0, ABOVE, f"{killed.series.title}{behind}", va="bottom", color=style.ink(colour))
    if above == 0:
        axes.set_xlabel("second of the window")


def maintenance(context: FigureContext) -> DrawnFigure:
    """Draw a row per system: data files on the left, the median commit on the right; grey during a call."""
    found = [(kept_of(own), kept_of(control) if control else []) for own, control in pairs(context.run_set) if own.runs]
    require(found, "no table was maintained while it was written to")
    shown = found[:MOST]
    made = style.frame(style.PAGE, KEPT_PANEL * len(shown))
    for place, (kept, control) in enumerate(shown):
        bottom = KEPT_PANEL * (len(shown) - 1 - place)
        both = made.pair(KEPT_LEFT, KEPT_GAP, KEPT_RIGHT, bottom, KEPT_PANEL - KEPT_APART)
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
                plots.small_text(both[1], 0.5, height, f"{name}: {words_of([one])}", ha="center")
        for axes, what in zip(both, ("files", "ms"), strict=True):
            for call in kept[0].found.calls:
                axes.axvspan(call.moment_s, call.moment_s + call.seconds, color=SHADE, zorder=0, linewidth=0)
            axes.set(xlim=(0, kept[0].run.elapsed_s), ylim=(0, None), xlabel="" if bottom else "second of the window")
            axes.set_ylabel(what, fontsize=style.SMALL)
            axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        plots.small_text(both[0], 0, 1.06, kept[0].series.title, va="bottom", color=style.ink(colour))
    notes = [*NOTES("ingest-maintenance"), context.run_set.coverage]
    if len(found) > MOST:
        notes.append(f"Not drawn: {', '.join(kept[0].series.title for kept, _ in found[MOST:])}.")
    drawn = [each.run for pair in shown for half in pair for each in half[:1]]
    return context.finish(made, MAINTENANCE_TITLE, notes, drawn)


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


def ambiguity(context: FigureContext) -> DrawnFigure:
    """Draw the hits that do harm: a row per system and policy of the writer, a column per way of hitting a commit."""
    found = all_hits(context.run_set)
    cells = {(f"{each.title}, {cell.retry}", cell.fault): cell for each in found for cell in each.aimed}
    ways = list(dict.fromkeys(fault for _, fault in cells))
    names = list(dict.fromkeys(name for name, _ in cells))
    harmed = pd.DataFrame(np.nan, index=names, columns=ways)
    for (name, fault), cell in cells.items():
        harmed.loc[name, fault] = 100 * cell.harmed / cell.hits
    runs = [each.series.runs[0] for each in found]
    return plots.heat(context, AMBIGUITY_TITLE, harmed, [100] * len(names), NOTES("ingest-ambiguity"), runs)
