"""Table of the read times of streamed tables, before and after maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidemark.analysis.words import Cell, Missing, listed
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.studies.freshness.parts import policy_of, runs_of, undisturbed
from tidemark.studies.freshness.quantities import found
from tidemark.studies.freshness.settings import shape_of

STREAMED = "as streamed"
NOT_ASKED = "its table was not read"
COLUMNS = (
    SYSTEM, Column("policy", "Commits"), Column("rate", "Events due", "events/s"), Column("encoding", "Encoding"),
    Column("state", "State"),
    Column("commits", "Commits made"), Column("files", "Files"),
    Column("count_first", "count(*), first", "s"), Column("count_again", "count(*), again", "s"),
    Column("sum_first", "sum, first", "s"), Column("sum_again", "sum, again", "s"),
    Column("maintained", "Maintenance", "s"),
)  # fmt: skip
NOTES = (
    "At the end of a window, once the pipeline is stopped and the oracle was asked, a client that never wrote to the "
    "table counts its rows (count(*)) and adds up two columns (sum(id), sum(total_amount)), each twice in a row: at "
    "first, when it has to find the table, and again. Each number is of one answer and has no interval. The client is "
    "a separate DuckDB with the format's extension, its extensions loaded before, its threads as many as it takes. "
    "Files are in the page cache, where their writer has left them.",
    "Maintenance is what the table's own client offers, all of it, one operation after the other. Files: data and "
    "metadata on the disk, those of events before the window among them. Each answer was checked against the table's "
    "rows and the sum of their ids.",
    "DuckDB 1.4.4 waits some 40 ms for each answer of a catalog's server on this machine; 1.5.5 does not.",
)


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield table freshness-reads."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in undisturbed(workshop.run_set):
        shape = shape_of(series.mode)
        head: list[Cell] = [series.title, policy_of(series), shape.rate, shape.encoding]
        if not series.runs:
            rows.append([*head, *[Missing(series.missing())] * (len(COLUMNS) - len(head))])
        for run in runs_of(series):
            runs.append(run)
            rows += [[*head, *line] for line in lines(found(run))]
    title = "What it takes to read what was streamed"
    yield workshop.table("freshness-reads", title, COLUMNS, rows, runs, NOTES)


def lines(told: dict[str, Any]) -> list[list[Cell]]:
    """Return the cells from the state on: as streamed and after maintenance, or one row with the reason if unread."""
    reads = told.get("reads")
    if reads is None:
        return [[Missing(NOT_ASKED)] * 8]
    commits: Cell = told["commits"]
    before: list[Cell] = [STREAMED, commits, reads["files"], *_answers(reads["before"], reads["why_not"]), None]
    if reads["before"] is None:
        return [before]
    operations = reads["maintained"]
    names = listed([name for name, _ in operations])
    if reads["after"] is None:
        why: Cell = Missing(reads["why_not_after"])
        return [before, [why] * 7 + [_seconds(operations) or why]]
    after = [f"after {names}", commits, reads["files_after"], *_answers(reads["after"], ""), _seconds(operations)]
    return [before, after]


def _seconds(operations: list[tuple[str, float]]) -> Cell:
    return float(sum(seconds for _, seconds in operations)) if operations else None


def _answers(seconds: dict[str, list[float]] | None, why_not: str) -> list[Cell]:
    if seconds is None:
        return [Missing(why_not)] * 4
    return [*seconds["count_s"], *seconds["sum_s"]]
