"""Tables of what a window leaves: stored bytes, bytes that reached the disk, maintenance, inlined rows, table age."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.formatting import Cell, MissingCell, attempt, growth_verdict
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate, generator, median
from tidemark.measure.table_calls import Latencies
from tidemark.results.tables import table
from tidemark.results.tables.table import Column, ComputedColumn, Row, Table, TableBuilder, computed, part_column
from tidemark.runs.circumstances import Disk
from tidemark.runs.run import Run
from tidemark.runs.serde import spelt
from tidemark.runs.spec import SINGLE
from tidemark.runs.views import all_hot_runs, all_runs, last_hot
from tidemark.studies.streams import published
from tidemark.studies.streams.metrics import GROWTH, WRITE_AMPLIFICATION, WRITE_MEDIAN
from tidemark.studies.streams.settings import FLUSHED, STREAMED, NotRead, StreamRecord
from tidemark.studies.streams.tables import IDENTITY, STATE

NOTES = table.notes_of(__file__)
MB = 1e6
FORMAT = "DuckLake"
LIMIT = "data_inlining_row_limit"  # key in the system's settings
NO_FLUSH = "nothing is inlined, so there is nothing to flush"
NOT_READ = "its table was not read"
ANSWERS = ("count(*), first", "count(*), again", "sum, first", "sum, again")
INLINING_COLUMNS = (
    table.SYSTEM, table.SWEEP, Column("batch", "Events a write"), Column("catalog", "Catalog"),
    Column("limit", "Inlined up to", "rows"), Column("write", WRITE_MEDIAN.title, WRITE_MEDIAN.unit, interval=True),
    Column("rows", "Rows flushed"), Column("flush", "Flush", "s"),
    *(Column(f"before_{place}", f"Before: {words}", "s") for place, words in enumerate(ANSWERS, 1)),
    *(Column(f"after_{place}", f"After: {words}", "s") for place, words in enumerate(ANSWERS, 1)),
)  # fmt: skip
AXIS = "commits"
PARTS = 5  # of a window; the first and the last are compared
MILLISECONDS = 1e-6  # per nanosecond


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield tables footprint, disk and flush-vs-merge, and inlining and age if there are runs for them."""
    yield _footprint(builder)
    yield _disk(builder)
    yield _flush_and_merge(builder)
    yield from _inlining(builder)
    yield from _age(builder)


def _footprint(builder: TableBuilder) -> Table:
    """Return table footprint: bytes per event on disk, and bytes that reached the device per byte of data."""

    def per_commit(key: str, title: str, count: Callable[[Run], int]) -> ComputedColumn[Row[Run]]:
        return part_column(key, f"{title} per commit", lambda run: count(run) / run.manifest.operations)

    def per_event(key: str, title: str, count: Callable[[Run], int]) -> ComputedColumn[Row[Run]]:
        return part_column(key, f"{title} per event", lambda run: count(run) / run.manifest.events, "B")

    def file_bytes(run: Run) -> float | None:
        return run.footprint.data_bytes / run.footprint.data_files if run.footprint.data_files else None

    def stored_ratio(run: Run) -> float:
        logical = require(run.manifest.logical_bytes, run.footprint.reason or "not measurable")
        return (run.footprint.bytes + _catalog_bytes(run)) / logical

    def after_flush(run: Run) -> float | None:
        after = run.manifest.footprint_after_flush
        return after.data_bytes / run.manifest.events if after else None

    def amplification(row: Row[Run]) -> BootstrapEstimate | None:
        return builder.measures.hot(WRITE_AMPLIFICATION, row.series) if row.shown else None

    columns: list[ComputedColumn[Row[Run]]] = [
        *table.series_columns(*IDENTITY),
        table.RUN_OF_ROW,
        table.with_reason(part_column("events", "Events", lambda run: run.manifest.events)),
        per_commit("data_files", "Data files", lambda run: run.footprint.data_files),
        per_commit("metadata_files", "Metadata files", lambda run: run.footprint.metadata_files),
        part_column("file_bytes", "Bytes per data file", file_bytes, "B"),
        per_event("data", "Data", lambda run: run.footprint.data_bytes),
        per_event("metadata", "Metadata", lambda run: run.footprint.metadata_bytes),
        per_event("catalog", "Catalog", _catalog_bytes),
        per_event("logical", "Arrow bytes", lambda run: run.manifest.logical_bytes),
        part_column("stored_ratio", "Stored per Arrow byte", stored_ratio),
        part_column("after_flush", "Data per event after flush", after_flush, "B"),
        computed("write_amplification", "Written to the device per Arrow byte", amplification, interval=True),
    ]
    chosen = builder.run_set.select(harness=False)
    rows: list[Row[Run]] = [Row(series, last_hot(series)) for series in chosen]
    runs = [*all_hot_runs(chosen), *(row.shown for row in rows if row.shown)]
    title = "Footprint per event and write amplification"
    return builder.computed_table("footprint", title, columns, rows, runs, NOTES("footprint"))


def _catalog_bytes(run: Run) -> int:
    if run.footprint.catalog_bytes is None:
        raise NotAvailable(run.footprint.reason or "not measurable")
    return run.footprint.catalog_bytes


def _disk(builder: TableBuilder) -> Table:
    """Return table disk: bytes that reached the disk in each window and by its sync, by writer, and the charge."""

    def in_mb(key: str, title: str, count: Callable[[Disk], int | None]) -> ComputedColumn[Row[Run]]:
        def value(run: Run) -> float | None:
            found = count(run.manifest.disk)
            return None if found is None else found / MB

        return part_column(key, title, value, "MB")

    def charged(run: Run) -> Cell:
        disk = run.manifest.disk
        why_not = MissingCell(disk.why_not_charged or "not known")
        return why_not if disk.charged_bytes is None else disk.charged_bytes / MB

    def written_by(run: Run) -> str | None:
        named = (f"{name} {count / MB:.2f}" for name, count in run.manifest.disk.written_by if count is not None)
        return ", ".join(named) or None

    columns: list[ComputedColumn[Row[Run]]] = [
        *table.RUN_OF_SWEEPS,
        STATE,
        part_column("charged", "Charged to the system", charged, "MB"),
        in_mb("window", "In the window", lambda disk: disk.window_bytes),
        in_mb("sync", "By the sync after it", lambda disk: disk.sync_bytes),
        in_mb("stream", "Written by the stream", lambda disk: disk.stream_bytes),
        part_column("sync_seconds", "Sync took", lambda run: run.manifest.disk.sync_seconds, "s"),
        in_mb("left", "Unwritten at the opening", lambda disk: disk.left_bytes),
        in_mb("rest", "Unwritten at rest", lambda disk: disk.rest_bytes),
        part_column("settle", "Settling took", lambda run: run.manifest.disk.settle_seconds, "s"),
        part_column("written_by", "Sent to storage by (MB)", written_by),
    ]
    rows: list[Row[Run]] = [Row(series, run) for series in builder.run_set.series for run in series.runs]
    title = "Bytes that reached the disk, and the share charged to the system"
    return builder.computed_table("disk", title, columns, rows, builder.run_set.runs, NOTES("disk"))


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
    merge_of_theirs = ("merge of small files", events, published.MERGE_S)
    for what, files, seconds in (("flush of inlined rows", None, flushes[1]), merge_of_theirs):
        rows.append([theirs, SINGLE, None, None, what, events, files, None, seconds, seconds / events * 1e6])
    columns = (
        *table.IDENTITY,
        table.REPEAT,
        table.RUN,
        Column("what", "Maintenance"),
        Column("rows", "Rows"),
        Column("files_before", "Files before"),
        Column("files_after", "Files after"),
        Column("seconds", "Time", "s"),
        Column("per_row", "Time per row", "µs"),
    )
    title = "Flushing inlined rows compared with merging small files"
    return builder.table("flush-vs-merge", title, columns, rows, runs, NOTES("flush-vs-merge"))


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

    def options(row: Row[Run]) -> str | None:
        if row.shown is None:
            return None
        given = row.shown.manifest.system.options
        return ", ".join(f"{name} = {spelt(value)}" for name, value in given) or "as it comes"

    def growth(run: Run) -> Estimate | MissingCell:
        return attempt(GROWTH.unit, partial(builder.measures.of_run, GROWTH, run))

    def catalog_mb(run: Run) -> float:
        return (run.footprint.metadata_bytes + _catalog_bytes(run)) / MB

    def count(run: Run) -> Cell:
        read = dict(run.record(StreamRecord).reads).get(STREAMED, NotRead(NOT_READ))
        return MissingCell(read.why_not) if isinstance(read, NotRead) else read.count_s[0]

    first, last = partial(part_median, place=0), partial(part_median, place=PARTS - 1)
    columns: list[ComputedColumn[Row[Run]]] = [
        *table.series_columns(table.SYSTEM_OF_SERIES),
        computed("options", "Set to", options),
        computed("batch", "Events a write", lambda row: row.series.batch_size),
        table.RUN_OF_ROW,
        part_column("commits", "Commits", lambda run: run.manifest.operations),
        part_column("asked", "Commits asked for", lambda run: int(dict(run.manifest.config)[AXIS])),
        part_column("seconds", "Window", lambda run: run.elapsed_s, "s"),
        part_column("first", "Median write, first fifth", first, "ms", interval=True),
        part_column("last", "Median write, last fifth", last, "ms", interval=True),
        part_column("ratio", "Last over first", lambda run: last(run).ratio(first(run)), "x", interval=True),
        part_column("growth", "Growth, 1,000 commits", growth, "ms", interval=True),
        part_column("verdict", "Verdict", lambda run: growth_verdict(growth(run))),
        part_column("data_files", "Data files", lambda run: run.footprint.data_files),
        part_column("metadata_files", "Metadata files", lambda run: run.footprint.metadata_files),
        part_column("metadata", "Metadata and catalog", catalog_mb, "MB"),
        part_column("count", "count(*), first", count, "s"),
    ]
    run_set = builder.run_set
    chosen = [each for each in run_set.series if run_set.axis_of(each.sweep) == AXIS and each.stack == run_set.stack]
    rows: list[Row[Run]] = [row for each in chosen for row in Row.of(each, each.runs, each.missing())]
    if chosen:
        title = "A commit's time against the age of its table"
        yield builder.computed_table("age", title, columns, rows, all_runs(chosen), NOTES("age"))


def part_median(run: Run, place: int) -> BootstrapEstimate:
    """Return the median write in ms of the window's first (`place` 0) or last fifth; NotAvailable below 5 commits."""
    write = run.column("write_ns")
    size = len(write) // PARTS
    require(size != 0, f"needs {PARTS} commits, the run has {len(write)}")
    found = write[:size] if place == 0 else write[-size:]
    return median(BlockSample.prepare(found, generator(run.label, "age", place))).scaled(MILLISECONDS)
