"""The figure of how far tables lag behind the topic while a window lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from matplotlib.ticker import LogLocator, NullFormatter

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
    """Lag in seconds (left) and in events (right) against the time in the window, of systems that commit alike."""
    chosen = alike([each for each in undisturbed(studio.run_set) if each.runs])
    made = style.frame(style.PAGE, 2.3)
    panels = made.pair(0.55, 0.6, 1.75)
    runs: list[Run] = []
    without: list[str] = []
    for series in chosen:
        with suppress(Absent):
            run = runs_of(series)[0]
            found = lag(run)
            style.name_beside(panels[1], len(runs), studio.colour(series), "o", series.title)
            for axes, values in zip(panels, (found.oldest_s, found.events), strict=True):
                axes.plot(found.at_s, values, "o-", color=studio.colour(series), linewidth=0.8, markersize=1.6)
            runs.append(run)
            continue
        without.append(series.title)
    if not runs:
        raise Absent("no run has seen all of its events")
    for axes, what in zip(panels, ("lag (s)", "lag (events)"), strict=True):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(plots.plain_ticks())
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid()
        axes.set_xlabel("time in the window (s)")
        axes.set_ylabel(f"{what}, log scale")
    shape = shape_of(chosen[0].mode)
    encodings = sorted({shape_of(each.mode).encoding for each in chosen})
    notes = [
        f"{shape.rate:,} events a second are due, as {' or '.join(encodings)}, commits {policy_of(chosen[0])}. Right "
        "before a reader sees more: how old the oldest event is that nobody has seen, and how many have not been "
        f"seen. A point is the most in 1/{STRETCHES} of the time until all were.",
        studio.run_set.coverage,
    ]
    notes += [f"Not drawn: {listed(without)}."] if without else []
    return studio.finish(made, TITLE, notes, runs)
