"""Tables of what a window leaves: stored bytes, bytes that reached the disk, maintenance, inlined rows, table age."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.formatting import Cell, MissingCell, attempt, growth_verdict
from tidemark.analysis.metrics import require
from tidemark.analysis.statistics import BootstrapEstimate, generator, median
from tidemark.measure.table_calls import Latencies
from tidemark.results.tables.table import (
    IDENTITY,
    OF_SWEEPS,
    REPEAT,
    RUN,
    STATE,
    SWEEP,
    SYSTEM,
    Column,
    Table,
    TableBuilder,
    notes_of,
)
from tidemark.runs.run import Run
from tidemark.runs.serde import spelt
from tidemark.runs.spec import SINGLE
from tidemark.runs.views import last_hot
from tidemark.studies.streams import published
from tidemark.studies.streams.metrics import GROWTH, WRITE_AMPLIFICATION, WRITE_MEDIAN
from tidemark.studies.streams.settings import FLUSHED, STREAMED, NotRead, StreamRecord

NOTES = notes_of(__file__)
MB = 1e6
FORMAT = "DuckLake"
LIMIT = "data_inlining_row_limit"  # key in the system's settings
NO_FLUSH = "nothing is inlined, so there is nothing to flush"
NOT_READ = "its table was not read"
ANSWERS = ("count(*), first", "count(*), again", "sum, first", "sum, again")
INLINING_COLUMNS = (
    SYSTEM, SWEEP, Column("batch", "Events a write"), Column("catalog", "Catalog"),
    Column("limit", "Inlined up to", "rows"), Column("write", WRITE_MEDIAN.title, WRITE_MEDIAN.unit, interval=True),
    Column("rows", "Rows flushed"), Column("flush", "Flush", "s"),
    *(Column(f"before_{place}", f"Before: {words}", "s") for place, words in enumerate(ANSWERS, 1)),
    *(Column(f"after_{place}", f"After: {words}", "s") for place, words in enumerate(ANSWERS, 1)),
)  # fmt: skip
AXIS = "commits"
PARTS = 5  # of a window; the first and the last are compared
MILLISECONDS = 1e-6  # per nanosecond
AGE_COLUMNS = (
    SYSTEM, Column("options", "Set to"), Column("batch", "Events a write"), RUN, Column("commits", "Commits"),
    Column("asked", "Commits asked for"), Column("seconds", "Window", "s"),
    Column("first", "Median write, first fifth", "ms", interval=True),
    Column("last", "Median write, last fifth", "ms", interval=True),
    Column("ratio", "Last over first", "x", interval=True),
    Column("growth", "Growth, 1,000 commits", "ms", interval=True), Column("verdict", "Verdict"),
    Column("data_files", "Data files"), Column("metadata_files", "Metadata files"),
    Column("metadata", "Metadata and catalog", "MB"), Column("count", "count(*), first", "s"),
)  # fmt: skip


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield tables footprint, disk and flush-vs-merge, and inlining and age if there are runs for them."""
    yield _footprint(builder)
    yield _disk(builder)
    yield _flush_and_merge(builder)
    yield from _inlining(builder)
    yield from _age(builder)


def _footprint(builder: TableBuilder) -> Table:
    """Return table footprint: bytes per event on disk, and bytes that reached the device per byte of data."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in builder.run_set.select(harness=False):
        run = last_hot(series)
        if run is None:
            rows.append([series.title, series.mode_title, None, MissingCell(series.missing()), *[None] * 10])
            continue
        runs += [run, *series.hot_runs]
        m, f, after = run.manifest, run.footprint, run.manifest.footprint_after_flush
        known = f.catalog_bytes is not None
        stored = f.bytes + (f.catalog_bytes or 0)
        rows.append(
            [
                series.title,
                series.mode_title,
                run.number,
                m.events,
                f.data_files / m.operations,
                f.metadata_files / m.operations,
                f.data_bytes / f.data_files if f.data_files else None,
                f.data_bytes / m.events,
                f.metadata_bytes / m.events,
                f.catalog_bytes / m.events
                if f.catalog_bytes is not None
                else MissingCell(f.reason or "not measurable"),
                m.logical_bytes / m.events,
                stored / m.logical_bytes if known and m.logical_bytes else MissingCell(f.reason or "not measurable"),
                after.data_bytes / m.events if after else None,
                attempt("", partial(builder.measures.hot, WRITE_AMPLIFICATION, series)),
            ]
        )
    columns = (
        *IDENTITY,
        RUN,
        Column("events", "Events"),
        Column("data_files", "Data files per commit"),
        Column("metadata_files", "Metadata files per commit"),
        Column("file_bytes", "Bytes per data file", "B"),
        Column("data", "Data per event", "B"),
        Column("metadata", "Metadata per event", "B"),
        Column("catalog", "Catalog per event", "B"),
        Column("logical", "Arrow bytes per event", "B"),
        Column("stored_ratio", "Stored per Arrow byte"),
        Column("after_flush", "Data per event after flush", "B"),
        Column("write_amplification", "Written to the device per Arrow byte", interval=True),
    )
    title = "Footprint per event and write amplification"
    return builder.table("footprint", title, columns, rows, runs, NOTES("footprint"))


def _disk(builder: TableBuilder) -> Table:
    """Return table disk: bytes that reached the disk in each window and by its sync, by writer, and the charge."""
    rows: list[list[Cell]] = []
    for series in builder.run_set.series:
        for run in series.runs:
            disk = run.manifest.disk
            charged = disk.charged_bytes
            identity: list[Cell] = [series.title, series.mode_title, series.sweep, series.repeat_of(run), run.number]
            rows.append(
                [
                    *identity,
                    run.state,
                    charged / MB if charged is not None else MissingCell(disk.why_not_charged or "not known"),
                    *(_in_mb(each) for each in (disk.window_bytes, disk.sync_bytes, disk.stream_bytes)),
                    disk.sync_seconds,
                    *(_in_mb(each) for each in (disk.left_bytes, disk.rest_bytes)),
                    disk.settle_seconds,
                    ", ".join(f"{name} {count / MB:.2f}" for name, count in disk.written_by if count is not None)
                    or None,
                ]
            )
    columns = (
        *OF_SWEEPS,
        RUN,
        STATE,
        Column("charged", "Charged to the system", "MB"),
        Column("window", "In the window", "MB"),
        Column("sync", "By the sync after it", "MB"),
        Column("stream", "Written by the stream", "MB"),
        Column("sync_seconds", "Sync took", "s"),
        Column("left", "Unwritten at the opening", "MB"),
        Column("rest", "Unwritten at rest", "MB"),
        Column("settle", "Settling took", "s"),
        Column("written_by", "Sent to storage by (MB)"),
    )
    title = "Bytes that reached the disk, and the share charged to the system"
    return builder.table("disk", title, columns, rows, builder.run_set.runs, NOTES("disk"))


def _in_mb(count: int | None) -> float | None:
    return None if count is None else count / MB


def _flush_and_merge(builder: TableBuilder) -> Table:
    """Return table flush-vs-merge: time to move rows into few files, by flushing inlined rows or merging files."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in builder.run_set.select(harness=False):
        for run in series.runs:
            flush, merge = run.manifest.flush, run.manifest.merge
            identity: list[Cell] = [series.title, series.mode_title, series.repeat_of(run), run.number]
            if flush is not None:
                cost = flush.seconds / flush.rows * 1e6 if flush.rows else None
                rows.append([*identity, "flush of inlined rows", flush.rows, None, None, flush.seconds, cost])
            if merge is not None:
                events = run.manifest.events
                cells: list[Cell] = [events, merge.files_before, merge.files_after, merge.seconds]
                rows.append([*identity, "merge of small files", *cells, merge.seconds / events * 1e6])
            if flush is not None or merge is not None:
                runs.append(run)
    flushes = published.PRINTED.flush_s[SINGLE]
    theirs = f"DuckLake ({published.ORIGIN})"
    events = published.EVENTS_OF_MERGE
    rows.append([theirs, SINGLE, None, None, "flush of inlined rows", events, None, None, flushes[1], None])
    rows[-1][-1] = flushes[1] / events * 1e6
    rows.append([theirs, SINGLE, None, None, "merge of small files", events, events, None, published.MERGE_S, None])
    rows[-1][-1] = published.MERGE_S / events * 1e6
    columns = (
        *IDENTITY,
        REPEAT,
        RUN,
        Column("what", "Maintenance"),
        Column("rows", "Rows"),
        Column("files_before", "Files before"),
        Column("files_after", "Files after"),
        Column("seconds", "Time", "s"),
        Column("per_row", "Time per row", "µs"),
    )
    notes = NOTES("flush-vs-merge")
    return builder.table(
        "flush-vs-merge", "Flushing inlined rows compared with merging small files", columns, rows, runs, notes
    )


def _inlining(builder: TableBuilder) -> Iterator[Table]:
    """Yield table inlining, its gain in writes and its cost later, if DuckLake tables were read after their runs."""
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
        rows.append([series.title, series.sweep, series.batch_size, *inlining_cells(run, write)])
    if rows:
        rows.sort(key=lambda row: (str(row[1]), str(row[3]), str(row[4]), str(row[0]), row[2]))
        title, notes = "Inlining by catalog and limit", NOTES("inlining")
        yield builder.table("inlining", title, INLINING_COLUMNS, rows, runs, notes)


def inlining_cells(run: Run, write: Cell) -> list[Cell]:
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


def _age(builder: TableBuilder) -> Iterator[Table]:
    """Yield table age, the growth of the time of a commit, if a sweep varies the number of commits."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    asked = False
    for series in builder.run_set.series:
        if builder.run_set.axis_of(series.sweep) != AXIS or series.stack != builder.run_set.stack:
            continue
        asked = True
        if not series.runs:
            rows.append(
                [series.title, None, series.batch_size, *[MissingCell(series.missing())] * (len(AGE_COLUMNS) - 3)]
            )
        for run in series.runs:
            runs.append(run)
            rows.append([series.title, _options(run), series.batch_size, run.number, *_age_cells(builder, run)])
    if asked:
        title = "A commit's time against the age of its table"
        yield builder.table("age", title, AGE_COLUMNS, rows, runs, NOTES("age"))


def _options(run: Run) -> str:
    """Return the system's configured options as text."""
    return ", ".join(f"{name} = {spelt(value)}" for name, value in run.manifest.system.options) or "as it comes"


def part_median(run: Run, place: int) -> BootstrapEstimate:
    """Return the median write in ms of the window's first (`place` 0) or last fifth; NotAvailable below 5 commits."""
    write = run.column("write_ns")
    size = len(write) // PARTS
    require(size != 0, f"needs {PARTS} commits, the run has {len(write)}")
    found = write[:size] if place == 0 else write[-size:]
    return median(BlockSample.prepare(found, generator(run.label, "age", place))).scaled(MILLISECONDS)


def _age_cells(builder: TableBuilder, run: Run) -> list[Cell]:
    """Return the cells from the number of commits on."""
    manifest, footprint = run.manifest, run.footprint
    first, last = (partial(part_median, run, place) for place in (0, PARTS - 1))
    growth = attempt(GROWTH.unit, partial(builder.measures.of_run, GROWTH, run))
    read = dict(run.record(StreamRecord).reads).get(STREAMED, NotRead(NOT_READ))
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
