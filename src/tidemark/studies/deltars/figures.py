"""Figures of the study: the thesis's charts with its values as marks, refused closes, and parts of legacy writes.

The thesis has a chart of latencies and one of throughputs for each number of processors; those with more than the
fewest are drawn where that number was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pandas as pd
import seaborn as sns

from tidemark.analysis.formatting import attempt
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.statistics import Estimate
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.results.figures.plots import StackedRow, stacked
from tidemark.runs.run import Run
from tidemark.runs.views import all_runs
from tidemark.studies.deltars import metrics, published
from tidemark.studies.deltars.samples import READ, WRITE, DeltarsSettings, processors_text
from tidemark.studies.deltars.tables import NOTES

TITLES = {WRITE: "Writing a whole table", READ: "Reading a whole table"}
CLOSES = "What HDFS refuses to close, writes wait for"
DIVIDED = "What a legacy write's time goes to"
LEGACY, BESIDE = "legacy", "delta-rs-hdfs"  # the complete path, and the single call that the thesis compares it with
NAMES = {"kafka": "topic", "hdfs": "HDFS"}  # parts that have another name in the figure
FEWEST = 0  # in place of a number of processors: the fewest that were measured


def figure_specs() -> Iterator[FigureSpec]:
    for operation, title in TITLES.items():
        yield FigureSpec(f"deltars-{operation}", title, partial(bars, operation=operation))
    yield FigureSpec("deltars-closes", CLOSES, closes)
    yield FigureSpec("deltars-divided", DIVIDED, divided)
    for operation, title in TITLES.items():
        for cores in (FEWEST, *published.CORES[1:]):
            more, words = (f"-{cores}", f", {processors_text(cores)}") if cores else ("", "")
            if cores:
                draw = partial(bars, operation=operation, more=cores)
                yield FigureSpec(f"deltars-{operation}{more}", f"{title}{words}", draw, optional=True)
            draw = partial(bars, operation=operation, more=cores, as_rate=True)
            yield FigureSpec(f"deltars-{operation}-rate{more}", f"{title}: rows/s{words}", draw, optional=bool(cores))
    for cores in published.CORES[1:]:
        title = f"{DIVIDED}, {processors_text(cores)}"
        yield FigureSpec(f"deltars-divided-{cores}", title, partial(divided, more=cores), optional=True)


def _processors(context: FigureContext, more: int) -> int:
    """Return the fewest processors measured, or `more` of them. Raise NotAvailable if those were not measured."""
    fewest = metrics.fewest_cores(context.run_set)
    if more and (more == fewest or not any(each.runs for each in metrics.in_order(context.run_set, cores=more))):
        raise NotAvailable(f"no client with {processors_text(more)} beside those with {processors_text(fewest)}")
    return more or fewest


def bars(context: FigureContext, operation: str, more: int = FEWEST, as_rate: bool = False) -> DrawnFigure:
    """Draw means with intervals, grouped by table, on a log axis; the thesis's means are hollow marks.

    `more`: processors of the clients, FEWEST for the fewest. `as_rate`: rows per second in place of seconds.
    """
    cores = _processors(context, more)
    quantity, kind = (
        (metrics.RATES[operation], published.THROUGHPUT) if as_rate else (metrics.MEANS[operation], published.LATENCY)
    )
    chosen = [each for each in metrics.in_order(context.run_set, cores=cores) if not each.is_null_baseline]
    tables = metrics.tables_of(context.run_set)
    systems = list(dict.fromkeys(each.system for each in chosen))
    made, axes = style.single(style.PAGE, 2.4, 0.6, 1.9)
    width = 0.8 / max(len(systems), 1)
    runs: list[Run] = []
    points: list[dict[str, object]] = []
    for series in chosen:
        data = DeltarsSettings.of(series).data
        mean = attempt(quantity.unit, partial(context.measures.value, quantity, series))
        if isinstance(mean, Estimate):
            runs += series.runs
            place = tables.index(data) - 0.4 + width * (systems.index(series.system) + 0.5)
            points += plots.rows_of(mean, system=series.title, place=place)
    require(runs, "no run has a time")
    plots.lines(axes, points, "place", "value", context.look, joined=False, legend=True)
    printed = pd.DataFrame(
        [
            (place, known.mean, words)
            for pipeline, words in published.TITLES.items()
            for place, data in enumerate(tables)
            if (known := published.printed(operation, pipeline, data, cores, kind)) is not None
        ],
        columns=["place", "value", "pipeline"],
    )
    sns.scatterplot(printed, x="place", y="value", style="pipeline", markers=["D", "s", "^"], color="white",
                    edgecolor=style.FAINT, linewidth=0.9, s=18, ax=axes)  # fmt: skip
    plots.log_axis(axes, "y")
    axes.set_xticks(range(len(tables)), [published.WORDS.get(data, data) for data in tables])
    axes.set(xlim=(-0.5, len(tables) - 0.5), xlabel="rows", ylabel=f"{operation}, mean ({quantity.unit}), log scale")
    axes.grid(axis="y")
    plots.legend_beside(axes)
    notes = [
        f"Clients with {processors_text(cores)}. Hollow marks: the thesis's means of 50, on its own "
        "machine and HopsFS. 10K to 1M rows are of TPC-H's suppliers, 6M and 60M are lineitems, which are wider.",
        context.run_set.coverage,
    ]
    title = TITLES[operation] + (": rows/s" if as_rate else "") + (f", {processors_text(cores)}" if more else "")
    return context.finish(made, title, notes, runs)


def closes(context: FigureContext) -> DrawnFigure:
    """Draw every write of delta-rs to HDFS by the number of its closes that the NameNode refused."""
    of_delta_rs = [
        each for each in metrics.in_order(context.run_set) if published.HEIRS.get(each.system) == published.HOPSFS
    ]
    chosen = [each for each in of_delta_rs if any(run.column("closed").any() for run in each.runs)]
    runs = require(all_runs(chosen), "no run closed a file of HDFS")
    made, axes = style.single(style.COLUMN, 2.0, 0.5, 0.1)
    tables = metrics.tables_of(context.run_set)
    words = {data: f"{published.WORDS.get(data, data)} rows" for data in tables}
    frame = pd.concat(
        pd.DataFrame(
            {"refused": metrics.of_operation(run, WRITE, "refused"), "s": metrics.times(run, WRITE),
             "table": words[DeltarsSettings.of(series).data]}
        )
        for series in chosen for run in series.runs
    )  # fmt: skip
    sns.stripplot(frame, x="refused", y="s", hue="table", hue_order=list(words.values()), dodge=True, jitter=False,
                  native_scale=True, size=3, alpha=0.7, linewidth=0.4, palette="dark", ax=axes)  # fmt: skip
    axes.legend(title=None, loc="upper left", handletextpad=0.2)
    plots.log_axis(axes, "y")
    most = max(int(metrics.of_operation(run, WRITE, "refused").max()) for run in runs)
    axes.set(xlim=(-0.5, most + 0.5), xlabel="closes refused in the write", ylabel="write (s), log scale")
    axes.set_xticks(range(most + 1))
    axes.grid(axis="y")
    notes = ["A point is a write by delta-rs to HDFS. A refused close is asked for again after half a second, or more."]
    return context.finish(made, CLOSES, notes, runs)


def divided(context: FigureContext, more: int = FEWEST) -> DrawnFigure:
    """Draw a bar of mean seconds per system and table, and the thesis's two parts below the legacy path's."""
    cores = _processors(context, more)
    rows: list[StackedRow] = []
    runs: list[Run] = []
    for data in metrics.tables_of(context.run_set):
        words = published.WORDS.get(data, data)
        found = [each for each in metrics.in_order(context.run_set, data=data, cores=cores) if each.runs]
        if not any(each.system == LEGACY for each in found):
            continue
        for series in found:
            try:
                parts = metrics.mean_parts(series.runs)
            except NotAvailable:
                if series.system != BESIDE:
                    continue
                parts = {"rest": sum(float(metrics.times(run, WRITE).mean()) for run in series.runs) / len(series.runs)}
            bar = tuple((NAMES.get(step, step), seconds) for step, seconds in parts.items() if seconds > 0)
            rows.append((f"{series.title}, {words}", bar, "s"))
            runs += series.runs
            if series.system == LEGACY and (printed := published.legacy_parts(data, cores)):
                bar = tuple(zip(("upload", "materialise"), printed, strict=True))
                rows.append((f"{published.TITLES[published.LEGACY]}, {words}", bar, "s"))
    require(runs, "the legacy path was not measured")
    made = stacked(rows, "write, mean (s)", width=style.PAGE)
    notes = [*NOTES("parts"), f"Clients with {processors_text(cores)}.", context.run_set.coverage]
    title = f"{DIVIDED}, {processors_text(cores)}" if more else DIVIDED
    return context.finish(made, title, notes, runs)
