"""Figure ingest-faults: acknowledged rows per second, with each kill and the recovery from it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import seaborn as sns

from tidemark.analysis.measures import NotAvailable
from tidemark.results.figures import style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.studies.ingest.fault_injection.results import Killed, all_killed
from tidemark.studies.ingest.load.records import ACKED
from tidemark.studies.ingest.metrics import outcomes
from tidemark.studies.ingest.parts import FRONT, part_name

TITLE = "Acknowledged rows while writers and servers are killed"
BIN_S = 0.1
PANEL, APART = 0.95, 0.50  # inches: height of a system's panel, and of the part of it above the axes
MOST = 8  # systems in one figure
NAMED = 12  # kills per system up to which they are named; more are too close
LETTER = 0.0065  # width of a letter in panel widths; a name that would overlap the next is shown as its initial
ABOVE = 1.24  # position of the system's name in axes heights, above the names of the victims
SHADE = "#d9d9d9"


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-faults", TITLE, timelines, optional=True)


def timelines(context: FigureContext) -> DrawnFigure:
    """Draw a panel per system with a bar per 100 ms, grey from each kill until all write again."""
    found = all_killed(context.run_set)
    shown = found[:MOST]
    if not shown:
        raise NotAvailable("nothing was killed")
    made = style.frame(style.PAGE, PANEL * len(shown))
    for place, killed in enumerate(shown):
        _panel(context, made, killed, len(shown) - 1 - place)
    notes = [
        f"Rows acknowledged in each {1000 * BIN_S:g} ms, by second of the window: two writers, or the clients of a "
        "front that commits for them. Dashed: SIGKILL, with what was killed (or its initial); grey: until all that it "
        "concerns had a commit acknowledged again. Dots: batches whose outcome their writer does not know."
    ]
    if len(found) > MOST:
        notes.append(f"Not drawn: {', '.join(killed.series.title for killed in found[MOST:])}.")
    return context.finish(made, TITLE, [*notes, context.run_set.coverage], [killed.run for killed in shown])


def _panel(context: FigureContext, made: style.Frame, killed: Killed, above: int) -> None:
    run, colour = killed.run, context.colour(killed.series)
    axes = made.axes(0.55, 0.15, bottom=PANEL * above, height=PANEL - APART)
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
