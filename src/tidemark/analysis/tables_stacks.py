"""Then and now: each system under one software stack against the same system under another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tidemark.analysis.metrics import UNITS, Metric
from tidemark.analysis.run import Run
from tidemark.analysis.runs import RunSet, Series
from tidemark.analysis.tables import Cell, Column, Table, Workshop, attempt
from tidemark.analysis.tables_beyond import comparison


def build(workshop: Workshop) -> Iterator[Table]:
    """Table then-and-now, where more than one stack was measured."""
    if len(workshop.run_set.stacks) > 1:
        yield _then_and_now(workshop)


def in_order(run_set: RunSet) -> tuple[str, ...]:
    """The stacks of the plan, that of the thesis's tables first."""
    return (run_set.stack, *(stack for stack in run_set.stacks if stack != run_set.stack))


def counterparts(run_set: RunSet, mode: str | None = None) -> Iterator[tuple[Series, Series]]:
    """Each series of the first stack with the series of every other stack that differs from it in nothing else."""
    for then in run_set.select(mode=mode, harness=False):
        for stack in in_order(run_set)[1:]:
            for now in run_set.select(mode=then.mode, stack=stack, harness=False):
                if (now.system, now.batch_size) == (then.system, then.batch_size):
                    yield then, now


def _then_and_now(workshop: Workshop) -> Table:
    measures = workshop.measures
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for then, now in counterparts(workshop.run_set):
        times = attempt("", partial(measures.ratio, Metric.WRITE_MEDIAN, now, then))
        rows.append(
            [
                then.title,
                then.mode_title,
                then.stack,
                now.stack,
                attempt("ms", partial(measures.hot, Metric.WRITE_MEDIAN, then)),
                attempt("ms", partial(measures.hot, Metric.WRITE_MEDIAN, now)),
                times,
                attempt("", partial(measures.ratio, Metric.HARNESS_RATE, now, then)),
                attempt(UNITS[Metric.GROWTH], partial(measures.hot, Metric.GROWTH, then)),
                attempt(UNITS[Metric.GROWTH], partial(measures.hot, Metric.GROWTH, now)),
                comparison(times),
            ]
        )
        runs += [*then.hot_runs, *now.hot_runs]
    columns = (
        Column("system", "System"),
        Column("mode", "Mode"),
        Column("then", "Then"),
        Column("now", "Now"),
        Column("write_then", "Median write, then", "ms", interval=True),
        Column("write_now", "Median write, now", "ms", interval=True),
        Column("write_ratio", "Median write, now / then", interval=True),
        Column("rate_ratio", "Harness throughput, now / then", interval=True),
        Column("growth_then", "Growth per 1,000 commits, then", "ms", interval=True),
        Column("growth_now", "Growth per 1,000 commits, now", "ms", interval=True),
        Column("verdict", "Writes now are"),
    )
    notes = [
        "Hot runs against hot runs, one machine, one plan. Ratios are of medians; the verdict follows from their "
        "interval."
    ]
    made = workshop.table("then-and-now", "Then and now: software stacks compared", columns, rows, runs)
    return replace(made, notes=tuple(notes))  # not those of a table that is about one stack
