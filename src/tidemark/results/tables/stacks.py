"""Table "Then and now": comparison of each system under one software stack with the same system under another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tidemark.analysis.formatting import Cell, attempt, comparison
from tidemark.analysis.metrics import Metric
from tidemark.results.tables.table import IDENTITY, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import counterparts


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table then-and-now, if more than one stack was measured."""
    if len(builder.run_set.stacks) > 1:
        yield _then_and_now(builder)


def _then_and_now(builder: TableBuilder) -> Table:
    """Return the table: values of the leading and the signed headline quantities; ratios of all but the signed ones."""
    quantities = builder.quantities
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for then, now in counterparts(builder.run_set):
        row: list[Cell] = [then.title, then.mode_title, then.stack, now.stack]
        for quantity in quantities.headline:
            row += _cells(builder, quantity, then, now)
        leading = quantities.leading
        ratio = attempt("", partial(builder.measures.ratio, leading, now, then))
        rows.append([*row, comparison(ratio, *leading.words)])
        runs += [*then.hot_runs, *now.hot_runs]
    columns = [*IDENTITY, Column("then", "Then"), Column("now", "Now")]
    for quantity in quantities.headline:
        columns += _columns(quantity, quantity == quantities.leading)
    columns.append(Column("verdict", f"{quantities.leading.subjects} now"))
    notes = ["Hot runs on one machine, from one plan. Ratios compare medians; the verdict follows from their interval."]
    made = builder.table("then-and-now", "Then and now: comparison of software stacks", columns, rows, runs)
    return replace(made, notes=tuple(notes))  # without the notes of tables about one stack


def _columns(quantity: Metric, leads: bool) -> list[Column]:
    made = []
    if leads or quantity.signed:
        made += [
            Column(f"{quantity.key}_{when}", f"{quantity.title}, {when}", quantity.beside_title, interval=True)
            for when in ("then", "now")
        ]
    if not quantity.signed:
        made.append(Column(f"{quantity.key}_ratio", f"{quantity.title}, now / then", interval=True))
    return made


def _cells(builder: TableBuilder, quantity: Metric, then: Series, now: Series) -> list[Cell]:
    """Return the cells for `_columns`."""
    measures = builder.measures
    made: list[Cell] = []
    if quantity == builder.quantities.leading or quantity.signed:
        made += [attempt(quantity.unit, partial(measures.hot, quantity, series)) for series in (then, now)]
    if not quantity.signed:
        made.append(attempt("", partial(measures.ratio, quantity, now, then)))
    return made
