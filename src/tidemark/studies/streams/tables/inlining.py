"""Table of DuckLake systems by catalog and inlining limit: time saved in writes, cost in reads and flushes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.measure.table_calls import Latencies
from tidemark.results.tables.table import SWEEP, SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.studies.streams.metrics import WRITE_MEDIAN
from tidemark.studies.streams.record import FLUSHED, STREAMED, NotRead, StreamRecord

FORMAT = "DuckLake"
LIMIT = "data_inlining_row_limit"  # key in the system's settings
NO_FLUSH = "nothing is inlined, so there is nothing to flush"
NOT_READ = "its table was not read"
ANSWERS = ("count(*), first", "count(*), again", "sum, first", "sum, again")
COLUMNS = (
    SYSTEM, SWEEP, Column("batch", "Events a write"), Column("catalog", "Catalog"),
    Column("limit", "Inlined up to", "rows"), Column("write", WRITE_MEDIAN.title, WRITE_MEDIAN.unit, interval=True),
    Column("rows", "Rows flushed"), Column("flush", "Flush", "s"),
    *(Column(f"before_{place}", f"Before: {words}", "s") for place, words in enumerate(ANSWERS, 1)),
    *(Column(f"after_{place}", f"After: {words}", "s") for place, words in enumerate(ANSWERS, 1)),
)  # fmt: skip
NOTES = (
    "Of the last run of each series. Before and after the flush a client that never wrote to the table (a separate "
    "DuckDB; with a catalog in a DuckDB file on a copy of it) counts its rows and adds up two columns, each twice: at "
    "first, when it attaches the table, and again. Each number is of one answer and has no interval; files are in the "
    "page cache. Each answer was checked against the acknowledged rows.",
)


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield table inlining if DuckLake tables were read at the end of their runs."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in builder.run_set.series:
        if series.stack != builder.run_set.stack:
            continue
        run = next((run for run in reversed(series.runs) if run.record(StreamRecord).reads), None)
        if run is None or run.manifest.system.format != FORMAT:
            continue
        runs.append(run)
        write = attempt(WRITE_MEDIAN.unit, partial(builder.measures.value, WRITE_MEDIAN, series))
        rows.append([series.title, series.sweep, series.batch_size, *line(run, write)])
    if rows:
        rows.sort(key=lambda row: (str(row[1]), str(row[3]), str(row[4]), str(row[0]), row[2]))
        yield builder.table("inlining", "Inlining by catalog and limit", COLUMNS, rows, runs, NOTES)


def line(run: Run, write: Cell) -> list[Cell]:
    """Return the cells from the catalog on."""
    system, flush, reads = run.manifest.system, run.manifest.flush, dict(run.record(StreamRecord).reads)
    limit = dict(system.settings).get(LIMIT)
    return [
        system.catalog,
        MissingCell("not reported") if limit is None else int(limit),
        write,
        MissingCell(NO_FLUSH) if flush is None else flush.rows,
        MissingCell(NO_FLUSH) if flush is None else flush.seconds,
        *_answers(reads.get(STREAMED, NotRead(NOT_READ))),
        *_answers(reads.get(FLUSHED, NotRead(NO_FLUSH if flush is None else NOT_READ))),
    ]


def _answers(found: Latencies | NotRead) -> list[Cell]:
    if isinstance(found, NotRead):
        return [MissingCell(found.why_not)] * len(ANSWERS)
    return [*found.count_s, *found.sum_s]
