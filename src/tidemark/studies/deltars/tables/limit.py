"""Table of the legacy path's times by the rows in the table, if an application takes a limited number of messages."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.analysis.words import Cell
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import in_order, limit_of, sent_and_there
from tidemark.studies.deltars.quantities import MATERIALISE, SECONDS
from tidemark.studies.deltars.tables.whole import CORES, DATA, LEGACY, head
from tidemark.studies.deltars.window.samples import READ, WRITE

OPERATIONS = {published.MATERIALISE: "Materialised", published.READ: "Read"}


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the table deltars-limit."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in in_order(workshop.run_set):
        for run in series.runs:
            limit = limit_of(run)
            if limit is not None:
                runs.append(run)
                sent, there = sent_and_there(run)
                held = f"{limit:,}" if limit else "none"
                rows.append([*head(series), sent, held, there, *_by_row(sent, there, _seconds(run))])
    rows += _printed()
    columns = (
        SYSTEM, DATA, CORES, Column("sent", "Rows sent"), Column("limit", "Limit"), Column("there", "Rows there"),
        *(
            column
            for operation, title in OPERATIONS.items()
            for column in (
                Column(operation, title, "s"), Column(f"{operation}_sent", "A row sent", "µs"),
                Column(f"{operation}_there", "A row there", "µs"),
            )
        ),
    )  # fmt: skip
    notes = [
        f"Hudi's streamer takes {published.LIMIT:,} messages of a topic in a run unless it is set otherwise. The "
        "thesis does not mention it and counted no rows: its tables are shown with the rows that such a limit would "
        "leave.",
        published.limited(),
        "Tidemark's rows are counted: those that were sent, and those that the client read back. A table that lacks "
        "rows fails the oracle, and its times are shown nowhere else.",
        LEGACY,
    ]
    yield workshop.table("deltars-limit", "Times by the rows that a limit leaves", columns, rows, runs, notes)


def _seconds(run: Run) -> tuple[float, ...]:
    """Return the mean seconds of materialising and of reading, even for tables that differ from their source."""
    calls = run.words("call")
    materialised = sum(float(run.column(f"{step}_ns")[calls == WRITE].mean()) for step in MATERIALISE)
    return SECONDS * materialised, SECONDS * float(run.column("elapsed_ns")[calls == READ].mean())


def _by_row(sent: int, there: int, times: tuple[float, ...]) -> list[Cell]:
    """Return each time in seconds, followed by microseconds per row sent and per row in the table."""
    return [
        cell
        for seconds in times
        for cell in (seconds, *(published.MICROSECONDS * seconds / rows if rows else None for rows in (sent, there)))
    ]


def _printed() -> Iterator[list[Cell]]:
    for data, sent in published.ROWS.items():
        times = tuple(published.seconds(each, published.LEGACY, data) for each in OPERATIONS)
        there = min(sent, published.LIMIT)
        held = f"{published.LIMIT:,}, if it held"
        yield [published.TITLES[published.LEGACY], data, 1, sent, held, there, *_by_row(sent, there, times)]
