"""Table of prediction errors: errors of `tidemark plan` on cells held out from the fit of its law."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tidemark.analysis.costs import Age, Cost
from tidemark.analysis.standing import BOUND, Standing, standings
from tidemark.analysis.words import Cell, Missing
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop

COLUMNS = (
    SYSTEM, Column("stack", "Software"), Column("load", "Load"), Column("cells", "Cells held out"),
    Column("median", "Error, median", "%"), Column("worst", "Error, worst", "%"),
    Column("age", "Error of ages, median", "%"), Column("verdict", "Verdict"),
)  # fmt: skip
PREDICTED, NOT_PREDICTED = "predicted", "NOT PREDICTED"
NOTES = (
    "A commit is modelled as a fixed time, a time a row, round trips to a store, a wait for other writers, and more "
    "with each commit before it. Each measured cell is held out in turn, with all others of the same conditions; the "
    "law is fitted to the rest, and its prediction compared with the measurement: 30 % is that much too long or short. "
    "Worst: also of what the law leaves at the ends of what was measured, which are held out for loads beyond.",
    f"Where the worst error, or the median one of ages, is above {100 * BOUND:.0f} %, or too few cells were measured, "
    "'./tidemark plan' predicts nothing, unless it is given another bound. Ages are those of the study on freshness, "
    "which are in no fit.",
)


def build(workshop: Workshop, points: Sequence[Cost | Age]) -> Iterator[Table]:
    """Yield the table planning, if a study provides commit costs."""
    found = standings(points)
    if found:
        rows = [line(each) for each in found]
        systems = {(each.system, each.stack) for each in found}
        runs = [
            run for series in workshop.run_set.series if (series.system, series.stack) in systems for run in series.runs
        ]
        title = "How far predictions of other loads are off on cells held out"
        yield workshop.table("planning", title, COLUMNS, rows, runs, NOTES)


def line(standing: Standing) -> list[Cell]:
    head: list[Cell] = [standing.title, standing.stack, standing.load]
    verdict = f"{NOT_PREDICTED}: {standing.reason}" if standing.reason else PREDICTED
    errors = standing.errors
    if errors is None:
        return [*head, *[Missing(standing.reason)] * 4, verdict]
    age: Cell = Missing("no age of a writer that keeps up was measured")
    if errors.age_median is not None:
        age = 100 * errors.age_median
    return [*head, errors.cells, 100 * errors.median, 100 * errors.worst, age, verdict]
