"""Figures of the study: the thesis's charts with its values as marks, and writes by the closes that were refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd
import seaborn as sns

from tidemark.analysis.measures import Absent
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.words import attempt
from tidemark.results.figures import plots, style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.run import Run
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import fewest_cores, in_order, of, tables_of
from tidemark.studies.deltars.quantities import MEANS, of_operation, times
from tidemark.studies.deltars.settings import shape_of
from tidemark.studies.deltars.window.samples import READ, WRITE

TITLES = {WRITE: "Writing a whole table", READ: "Reading a whole table"}
CLOSES = "What HDFS refuses to close, writes wait for"
GHOSTS = (published.HOPSFS, published.LOCAL, published.LEGACY)


def sketches() -> Iterator[Sketch]:
    for operation, title in TITLES.items():
        yield Sketch(f"deltars-{operation}", title, partial(bars, operation=operation))
    yield Sketch("deltars-closes", CLOSES, closes)


def bars(studio: Studio, operation: str) -> Drawn:
    """Draw means with intervals, grouped by table, in seconds on a log axis; the thesis's means are hollow marks."""
    cores = fewest_cores(studio.run_set)
    chosen = [each for each in in_order(studio.run_set) if shape_of(each.mode)[1] == cores and not each.is_harness]
    tables = tables_of(studio.run_set)
    systems = list(dict.fromkeys(each.system for each in chosen))
    made = style.frame(style.PAGE, 2.4)
    axes = made.axes(0.6, 1.9)
    width = 0.8 / max(len(systems), 1)
    runs: list[Run] = []
    points: list[dict[str, object]] = []
    for series in chosen:
        data = shape_of(series.mode)[0]
        mean = attempt("s", partial(of, studio.measures, MEANS[operation], series))
        if isinstance(mean, Estimate):
            runs += series.runs
            place = tables.index(data) - 0.4 + width * (systems.index(series.system) + 0.5)
            points += plots.rows_of(mean, system=series.title, place=place)
    if not runs:
        raise Absent("no run has a time")
    plots.lines(axes, points, "place", "value", studio.look, joined=False, legend=True)
    printed = pd.DataFrame(
        [
            (place, known.mean, published.TITLES[pipeline])
            for pipeline in GHOSTS
            for place, data in enumerate(tables)
            if (known := published.printed(operation, pipeline, data, cores)) is not None
        ],
        columns=["place", "value", "pipeline"],
    )
    sns.scatterplot(printed, x="place", y="value", style="pipeline", markers=["D", "s", "^"], color="white",
                    edgecolor=style.FAINT, linewidth=0.9, s=18, ax=axes)  # fmt: skip
    plots.log_axis(axes, "y")
    axes.set_xticks(range(len(tables)), [published.WORDS.get(data, data) for data in tables])
    axes.set_xlim(-0.5, len(tables) - 0.5)
    axes.set_xlabel("rows")
    axes.set_ylabel(f"{operation}, mean (s), log scale")
    axes.grid(axis="y")
    plots.legend_beside(axes)
    notes = [
        f"Clients with {cores} processor{'s' if cores > 1 else ''}. Hollow marks: the thesis's means of 50, on its own "
        "machine and HopsFS. 10K to 1M rows are of TPC-H's suppliers, 6M and 60M are lineitems, which are wider.",
        studio.run_set.coverage,
    ]
    return studio.finish(made, TITLES[operation], notes, runs)


def closes(studio: Studio) -> Drawn:
    """Draw every write of delta-rs to HDFS by the number of its closes that the NameNode refused."""
    of_delta_rs = [each for each in in_order(studio.run_set) if published.HEIRS.get(each.system) == published.HOPSFS]
    chosen = [each for each in of_delta_rs if any(run.column("closed").any() for run in each.runs)]
    if not chosen:
        raise Absent("no run closed a file of HDFS")
    made = style.frame(style.COLUMN, 2.0)
    axes = made.axes(0.5, 0.1)
    tables = tables_of(studio.run_set)
    words = {data: f"{published.WORDS.get(data, data)} rows" for data in tables}
    runs = [run for series in chosen for run in series.runs]
    frame = pd.concat(
        pd.DataFrame(
            {"refused": of_operation(run, WRITE, "refused"), "s": times(run, WRITE),
             "table": words[shape_of(series.mode)[0]]}
        )
        for series in chosen for run in series.runs
    )  # fmt: skip
    sns.stripplot(frame, x="refused", y="s", hue="table", hue_order=list(words.values()), dodge=True, jitter=False,
                  native_scale=True, size=3, alpha=0.7, linewidth=0.4, palette="dark", ax=axes)  # fmt: skip
    axes.legend(title=None, loc="upper left", handletextpad=0.2)
    plots.log_axis(axes, "y")
    most = max(int(of_operation(run, WRITE, "refused").max()) for run in runs)
    axes.set_xlim(-0.5, most + 0.5)
    axes.set_xticks(range(most + 1))
    axes.grid(axis="y")
    axes.set_xlabel("closes refused in the write")
    axes.set_ylabel("write (s), log scale")
    notes = ["A point is a write by delta-rs to HDFS. A refused close is asked for again after half a second, or more."]
    return studio.finish(made, CLOSES, notes, runs)
