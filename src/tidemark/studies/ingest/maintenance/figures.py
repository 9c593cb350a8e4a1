"""Figure ingest-maintenance: files and commit latency over time, with and without maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.ticker import MaxNLocator

from tidemark.analysis.metrics import NotAvailable
from tidemark.results.figures import style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.studies.ingest.maintenance.results import Kept, kept_of, pairs, words_of

TITLE = "Small files and commits over time, with and without maintenance"
PANEL, APART = 1.05, 0.42  # inches: height of a system's panel, and of the part of it above the axes
LEFT, GAP, RIGHT = 0.55, 0.6, 0.15
MOST = 8  # systems in one figure
BINS = 16
SHADE = "#d9d9d9"
DASHED = (0, (3, 2))


def figure_specs() -> Iterator[FigureSpec]:
    yield FigureSpec("ingest-maintenance", TITLE, over_time, optional=True)


def over_time(context: FigureContext) -> DrawnFigure:
    """Draw a row per system: data files on the left, the median commit on the right; grey during a call."""
    found = [(kept_of(own), kept_of(control) if control else []) for own, control in pairs(context.run_set) if own.runs]
    if not found:
        raise NotAvailable("no table was maintained while it was written to")
    shown = found[:MOST]
    made = style.frame(style.PAGE, PANEL * len(shown))
    wide = (style.PAGE - LEFT - GAP - RIGHT) / 2
    for place, (kept, control) in enumerate(shown):
        bottom = PANEL * (len(shown) - 1 - place)
        both = (
            made.axes(LEFT, RIGHT + wide + GAP, bottom=bottom, height=PANEL - APART),
            made.axes(LEFT + wide + GAP, RIGHT, bottom=bottom, height=PANEL - APART),
        )
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
    return context.finish(made, TITLE, notes, [each.run for pair in shown for runs in pair for each in runs[:1]])


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
