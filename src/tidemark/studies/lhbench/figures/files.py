"""The paper's figure 4, redrawn: startup and execution of selective queries by number of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes

from tidemark.analysis.measures import Absent
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Studio
from tidemark.runs.runset import Series
from tidemark.studies.lhbench import published
from tidemark.studies.lhbench.files.answers import SELECTIVE
from tidemark.studies.lhbench.files.settings import FILES
from tidemark.studies.lhbench.parts import size_of
from tidemark.studies.lhbench.quantities import OF_FILES, in_part, of

TITLE = "What a query costs before it reads many files"
TALL, GAP, LEFT, BELOW, HEAD = 1.35, 0.28, 0.55, 0.5, 0.2  # inches
WIDE = 0.8  # width of a group of bars
PALE = 0.45  # opacity of execution, stacked on startup in the same colour
THEIRS = (published.DELTA, published.ICEBERG)


def files(studio: Studio) -> Drawn:
    """Draw a panel per query, measured above and the paper's below: startup in full colour, execution on top of it."""
    series = [each for each in in_part(studio.run_set, FILES) if each.runs]
    if not series:
        raise Absent(f"the part '{FILES}' was not measured")
    made = style.frame(style.PAGE, 2 * TALL + BELOW + HEAD)
    wide = (style.PAGE - LEFT - 2 * GAP) / 3
    colours = {each.system: studio.colour(each) for each in series}
    titles = {each.system: each.title for each in series}
    like = {published.DELTA: "delta-on-spark", published.ICEBERG: "iceberg-on-spark"}
    for place, query in enumerate(SELECTIVE):
        left = LEFT + place * (wide + GAP)
        right = style.PAGE - left - wide
        ours, theirs = made.axes(left, right, TALL + BELOW, TALL), made.axes(left, right, 0, TALL)
        _groups(ours, _measured(studio, series, query), colours)
        shades = {name: colours.get(system, style.INK) for name, system in like.items()}
        _groups(theirs, _printed(query), shades)
        ours.set_title(f"filter: {query}", fontsize=style.SMALL)
        theirs.set_xlabel("files")
        if not place:
            ours.set_ylabel("measured (ms)")
            theirs.set_ylabel("the paper (ms)")
            for line, (system, title) in enumerate(titles.items()):
                theirs.text(0.04, 0.94 - 0.1 * line, title, transform=theirs.transAxes, fontsize=style.SMALL,
                            color=style.ink(colours[system]), va="top")  # fmt: skip
    notes = [
        "Full colour: from submitting a query to the start of its first job; pale: the rest. The paper's execution was "
        "read off at 200,000 files alone, of files of 10 MB on an object store. Scales differ; lines: 95 % intervals.",
        studio.run_set.coverage,
    ]
    return studio.finish(made, TITLE, notes, [run for each in series for run in each.runs])


type Bars = Mapping[int, Mapping[str, tuple[Estimate | None, float]]]  # by files and system: startup and total, in ms


def _measured(studio: Studio, series: Sequence[Series], query: str) -> Bars:
    startup, _, whole, _ = OF_FILES[query]
    bars: dict[int, dict[str, tuple[Estimate | None, float]]] = {}
    for each in series:
        told = [attempt("s", partial(of, studio.measures, what, each)) for what in (startup, whole)]
        if isinstance(told[1], Estimate):
            first = told[0] if isinstance(told[0], Estimate) else None
            bars.setdefault(int(size_of(each.mode)), {})[each.system] = (_ms(first), 1_000 * told[1].value)
    return dict(sorted(bars.items()))


def _ms(estimate: Estimate | None) -> Estimate | None:
    if estimate is None:
        return None
    low, high = (None if end is None else 1_000 * end for end in (estimate.low, estimate.high))
    return Estimate(1_000 * estimate.value, low, high, estimate.n, "ms", estimate.runs)


def _printed(query: str) -> Bars:
    bars: dict[int, dict[str, tuple[Estimate | None, float]]] = {}
    for system in THEIRS:
        totals = dict(published.along(4, f"{query} total", system))
        for number, value in published.along(4, f"{query} startup", system):
            known = Estimate(value, None, None, 1, "ms", 1)
            bars.setdefault(number, {})[system] = (known, totals.get(number, value))
    return bars


def _groups(axes: Axes, bars: Bars, colours: Mapping[str, str]) -> None:
    names = [name for name in colours if any(name in group for group in bars.values())]
    whole, startup = [], []
    for number, group in bars.items():
        for name, (part, total) in group.items():
            keys = {"files": f"{number / 1_000:g}K", "system": name}
            whole.append({**keys, "value": total})
            startup += plots.rows_of(part, 1.0, **keys) if part is not None else []
    how = {"x": "files", "y": "value", "hue": "system", "order": [f"{number / 1_000:g}K" for number in bars],
           "hue_order": names, "palette": dict(colours), "saturation": 1, "legend": False, "width": WIDE,
           "edgecolor": style.INK, "linewidth": 0.4, "ax": axes}  # fmt: skip
    sns.barplot(pd.DataFrame(whole, columns=["files", "system", "value"]), alpha=PALE, errorbar=None, **how)
    if startup:
        sns.barplot(pd.DataFrame(startup), estimator=plots.first, errorbar=plots.ends, **how,
                    err_kws={"linewidth": 0.7, "color": style.INK})  # fmt: skip
    axes.set(xlabel="", ylabel="", ylim=(0, None))
    axes.grid(axis="y")
