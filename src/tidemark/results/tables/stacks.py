"""Table "Then and now": comparison of each system under one software stack with the same system under another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tidemark.analysis.quantities import Quantity
from tidemark.analysis.words import Cell, attempt, comparison
from tidemark.results.tables.table import IDENTITY, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import counterparts


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the table then-and-now, if more than one stack was measured."""
    if len(workshop.run_set.stacks) > 1:
        yield _then_and_now(workshop)


def _then_and_now(workshop: Workshop) -> Table:
    """Return the table: values of the leading and the signed headline quantities; ratios of all but the signed ones."""
    quantities = workshop.quantities
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for then, now in counterparts(workshop.run_set):
        row: list[Cell] = [then.title, then.mode_title, then.stack, now.stack]
        for quantity in quantities.headline:
            row += _cells(workshop, quantity, then, now)
        leading = quantities.leading
        ratio = attempt("", partial(workshop.measures.ratio, leading, now, then))
        rows.append([*row, comparison(ratio, *leading.words)])
        runs += [*then.hot_runs, *now.hot_runs]
    columns = [*IDENTITY, Column("then", "Then"), Column("now", "Now")]
    for quantity in quantities.headline:
        columns += _columns(quantity, quantity == quantities.leading)
    columns.append(Column("verdict", f"{quantities.leading.subjects} now"))
    notes = ["Hot runs on one machine, from one plan. Ratios compare medians; the verdict follows from their interval."]
    made = workshop.table("then-and-now", "Then and now: comparison of software stacks", columns, rows, runs)
    return replace(made, notes=tuple(notes))  # without the notes of tables about one stack


def _columns(quantity: Quantity, leads: bool) -> list[Column]:
    made = []
    if leads or quantity.signed:
        made += [
            Column(f"{quantity.key}_{when}", f"{quantity.title}, {when}", quantity.beside_title, interval=True)
            for when in ("then", "now")
        ]
    if not quantity.signed:
        made.append(Column(f"{quantity.key}_ratio", f"{quantity.title}, now / then", interval=True))
    return made


def _cells(workshop: Workshop, quantity: Quantity, then: Series, now: Series) -> list[Cell]:
    """Return the cells for `_columns`."""
    measures = workshop.measures
    made: list[Cell] = []
    if quantity == workshop.quantities.leading or quantity.signed:
        made += [attempt(quantity.unit, partial(measures.hot, quantity, series)) for series in (then, now)]
    if not quantity.signed:
        made.append(attempt("", partial(measures.ratio, quantity, now, then)))
    return made
