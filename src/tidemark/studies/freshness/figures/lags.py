"""Figure of the lag of tables behind the topic during a window."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pandas as pd

from tidemark.analysis.measures import Absent
from tidemark.analysis.words import listed
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.studies.freshness.lags import STRETCHES, lag
from tidemark.studies.freshness.parts import alike, policy_of, runs_of, undisturbed
from tidemark.studies.freshness.settings import shape_of

TITLE = "How far tables lag behind the topic"


def sketches() -> Iterator[Sketch]:
    yield Sketch("freshness-lag", TITLE, over_time)


def over_time(studio: Studio) -> Drawn:
    """Draw the lag in seconds (left) and in events (right) over the window, for systems with equal commit intervals."""
    chosen = alike([each for each in undisturbed(studio.run_set) if each.runs])
    made = style.frame(style.PAGE, 2.3)
    panels = made.pair(0.55, 0.6, 1.75)
    runs: list[Run] = []
    frames: list[pd.DataFrame] = []
    without: list[str] = []
    for series in chosen:
        with suppress(Absent):
            run = runs_of(series)[0]
            found = lag(run)
            kinds = {"system": series.title, "at": found.at_s, "lag (s)": found.oldest_s, "lag (events)": found.events}
            frames.append(pd.DataFrame(kinds))
            runs.append(run)
            continue
        without.append(series.title)
    if not runs:
        raise Absent("no run has seen all of its events")
    for axes, what in zip(panels, ("lag (s)", "lag (events)"), strict=True):
        plots.lines(axes, pd.concat(frames), "at", what, studio.look, legend=axes is panels[1], markersize=2.2)
        plots.log_axis(axes, "y")
        axes.grid()
        axes.set_xlabel("time in the window (s)")
        axes.set_ylabel(f"{what}, log scale")
    plots.legend_beside(panels[1])
    shape = shape_of(chosen[0].mode)
    encodings = sorted({shape_of(each.mode).encoding for each in chosen})
    notes = [
        f"{shape.rate:,} events a second are due, as {' or '.join(encodings)}, commits {policy_of(chosen[0])}. Right "
        "before a reader sees more: the age of the oldest unseen event, and the number of unseen events. A point is "
        f"the most in 1/{STRETCHES} of the time until all were seen.",
        studio.run_set.coverage,
    ]
    notes += [f"Not drawn: {listed(without)}."] if without else []
    return studio.finish(made, TITLE, notes, runs)
