"""A table for each axis that a study varied: throughput and write time against the main configuration."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.metrics import Absent, Metric
from tidemark.analysis.run import Run
from tidemark.analysis.runs import MAIN, RunSet, Series
from tidemark.analysis.statistics import Replicates
from tidemark.analysis.tables import Cell, Column, Missing, Table, Workshop, attempt
from tidemark.analysis.tables_beyond import comparison

HOT, COLD = "hot runs", "run 0"


def build(workshop: Workshop) -> Iterator[Table]:
    """Tables study-encoding, study-producer, study-overlap and the like: of the axes that runs were made for."""
    series = [each for each in workshop.run_set.series if each.study != MAIN and each.runs]
    for axis in dict.fromkeys(axis_of(workshop.run_set, each.study) for each in series):
        if axis is not None:
            yield _study(workshop, axis)


def axis_of(run_set: RunSet, study: str) -> str | None:
    """The key of the configuration that a study varied; None if the configuration does not have the study."""
    if "study" not in run_set.config.names():
        return None
    studies = run_set.config.part("study")
    return studies.part(study).text("axis") if study in studies.names() else None


def value_of(series: Series, axis: str) -> str | None:
    """What the axis was set to in a series with runs, as the configuration spells it."""
    return dict(series.runs[0].manifest.config).get(axis) if series.runs else None


def baseline(run_set: RunSet, series: Series, axis: str) -> Series | None:
    """The series with runs that differs from `series` in the axis alone: of the main study, else of the same one."""
    main = run_set.config.spelt(axis)
    for study in (MAIN, series.study):
        for other in run_set.select(mode=series.mode, study=study, stack=series.stack):
            same = other.system == series.system and (axis == "batch_size" or other.batch_size == series.batch_size)
            if same and other.runs and (study == MAIN or value_of(other, axis) == main):
                return other
    return None


def compared(workshop: Workshop, metric: Metric, series: Series, base: Series | None) -> Replicates:
    """`metric` of `series` over that of `base`: hot runs where both have them, else run 0 of both."""
    measures = workshop.measures
    if base is None:
        raise Absent("no run of the main configuration is there to compare with")
    if series.hot_runs and base.hot_runs:
        return measures.ratio(metric, series, base)
    first, second = measures.cold(metric, series), measures.cold(metric, base)
    if not (first.log and second.log):
        raise Absent("a quantity that may be zero has no ratio")
    return first.ratio(second)


def _study(workshop: Workshop, axis: str) -> Table:
    run_set = workshop.run_set
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for stack in run_set.stacks:
        for study in dict.fromkeys(series.study for series in run_set.series):
            if axis_of(run_set, study) != axis or study == MAIN:
                continue
            rows += [_row(workshop, series, axis, runs) for series in run_set.select(study=study, stack=stack)]
    words = axis.replace("_", " ")
    columns = (
        Column("system", "System"),
        Column("mode", "Mode"),
        Column("stack", "Stack"),
        Column("value", words.capitalize()),
        Column("main", f"{words.capitalize()} compared with"),
        Column("window", "Window", "s"),
        Column("window_main", "Window compared with", "s"),
        Column("compared", "Compared are"),
        Column("rate_ratio", "Harness throughput, ratio", interval=True),
        Column("write_ratio", "Median write time, ratio", interval=True),
        Column("verdict", "Throughput is"),
    )
    notes = [
        "Ratios to the series of the main configuration; where that was not measured, to the series of the study with "
        "its value. The verdict follows from the interval of the ratio of throughputs. Where one of the two has a "
        "single run, run 0 is set against run 0; of a study of single runs, how runs differ is not in the interval.",
        *run_set.notes,
    ]
    title = f"Study of '{words}': throughput and write time against the main configuration"
    return workshop.table(f"study-{axis.replace('_', '-')}", title, columns, rows, runs, notes)


def _row(workshop: Workshop, series: Series, axis: str, runs: list[Run]) -> list[Cell]:
    identity: list[Cell] = [series.title, series.mode_title, series.stack]
    if not series.runs:
        return [*identity, Missing(series.missing()), *[None] * 7]
    base = baseline(workshop.run_set, series, axis)
    hot = bool(base and base.hot_runs and series.hot_runs)
    for each in (series, base):
        if each is not None:
            runs += each.hot_runs if hot else each.runs[:1]
    window = series.runs[0].manifest.window_s
    if base is series:
        return [*identity, value_of(series, axis), None, window, None, "the others with it", None, None, None]
    rate = attempt("", partial(compared, workshop, Metric.HARNESS_RATE, series, base))
    return [
        *identity,
        value_of(series, axis),
        value_of(base, axis) if base else None,
        window,
        base.runs[0].manifest.window_s if base else None,
        (HOT if hot else COLD) if base else None,
        rate,
        attempt("", partial(compared, workshop, Metric.WRITE_MEDIAN, series, base)),
        comparison(rate, "higher", "lower"),
    ]
