"""Table of windows with a fixed number of commits: growth of a commit's time with the age of its table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.formatting import Cell, MissingCell, attempt, growth_verdict
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, generator, median
from tidemark.results.tables.table import RUN, SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.serde import spelt
from tidemark.studies.streams.metrics import GROWTH
from tidemark.studies.streams.record import STREAMED, NotRead, StreamRecord

AXIS = "commits"
PARTS = 5  # of a window; the first and the last are compared
MILLISECONDS = 1e-6  # per nanosecond
COLUMNS = (
    SYSTEM, Column("options", "Set to"), Column("batch", "Events a write"), RUN, Column("commits", "Commits"),
    Column("asked", "Commits asked for"), Column("seconds", "Window", "s"),
    Column("first", "Median write, first fifth", "ms", interval=True),
    Column("last", "Median write, last fifth", "ms", interval=True),
    Column("ratio", "Last over first", "x", interval=True),
    Column("growth", "Growth, 1,000 commits", "ms", interval=True), Column("verdict", "Verdict"),
    Column("data_files", "Data files"), Column("metadata_files", "Metadata files"),
    Column("metadata", "Metadata and catalog", "MB"), Column("count", "count(*), first", "s"),
)  # fmt: skip
NOTES = (
    "Such a window ends with its commits and not by the clock, unless it reaches the longest that it may be: then it "
    "has fewer commits than were asked for. Growth: Theil-Sen slope of the write time over all commits of the window. "
    "A table is maintained by what its options say, inside of its commits, and by nothing else. count(*): by a client "
    "that never wrote to the table, once, at its end.",
)


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield table age if a sweep varies the number of commits."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    asked = False
    for series in builder.run_set.series:
        if builder.run_set.axis_of(series.sweep) != AXIS or series.stack != builder.run_set.stack:
            continue
        asked = True
        if not series.runs:
            rows.append([series.title, None, series.batch_size, *[MissingCell(series.missing())] * (len(COLUMNS) - 3)])
        for run in series.runs:
            runs.append(run)
            rows.append([series.title, _options(run), series.batch_size, run.number, *line(builder, run)])
    if asked:
        yield builder.table("age", "A commit's time against the age of its table", COLUMNS, rows, runs, NOTES)


def _options(run: Run) -> str:
    """Return the system's configured options as text."""
    return ", ".join(f"{name} = {spelt(value)}" for name, value in run.manifest.system.options) or "as it comes"


def part_median(run: Run, place: int) -> BootstrapEstimate:
    """Return the median write in ms of the window's first (`place` 0) or last fifth; NotAvailable below 5 commits."""
    write = run.column("write_ns")
    size = len(write) // PARTS
    if size == 0:
        raise NotAvailable(f"needs {PARTS} commits, the run has {len(write)}")
    found = write[:size] if place == 0 else write[-size:]
    return median(BlockSample.prepare(found, generator(run.label, "age", place))).scaled(MILLISECONDS)


def line(builder: TableBuilder, run: Run) -> list[Cell]:
    """Return the cells from the number of commits on."""
    manifest, footprint = run.manifest, run.footprint
    first, last = (partial(part_median, run, place) for place in (0, PARTS - 1))
    growth = attempt(GROWTH.unit, partial(builder.measures.of_run, GROWTH, run))
    read = dict(run.record(StreamRecord).reads).get(STREAMED, NotRead("its table was not read"))
    bytes_ = None if footprint.catalog_bytes is None else footprint.metadata_bytes + footprint.catalog_bytes
    return [
        manifest.operations,
        int(dict(manifest.config)[AXIS]),
        run.elapsed_s,
        attempt("ms", first),
        attempt("ms", last),
        attempt("x", lambda: last().ratio(first())),
        growth,
        growth_verdict(growth),
        footprint.data_files,
        footprint.metadata_files,
        MissingCell(footprint.reason or "not measurable") if bytes_ is None else bytes_ / 1e6,
        MissingCell(read.why_not) if isinstance(read, NotRead) else read.count_s[0],
    ]
