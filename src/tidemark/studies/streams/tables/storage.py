"""Tables of stored bytes, of bytes that reached the disk, and of maintenance."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.results.tables.table import IDENTITY, OF_SWEEPS, REPEAT, RUN, STATE, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.spec import SINGLE
from tidemark.runs.views import last_hot
from tidemark.studies.streams import published
from tidemark.studies.streams.metrics import WRITE_AMPLIFICATION

MB = 1e6


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield tables footprint, disk and flush-vs-merge."""
    yield _footprint(builder)
    yield _disk(builder)
    yield _flush_and_merge(builder)


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
    notes = [
        "Sizes are those of the last run's table, before inlined rows are flushed. 'Written to the device' is what the "
        "system is charged with in hot runs; see the table 'disk'."
    ]
    title = "Footprint per event and write amplification"
    return builder.table("footprint", title, columns, rows, runs, notes)


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
    notes = [
        "A system is charged with the bytes that reach the data's device from the opening of the window to the end of "
        "the sync that follows it, minus the bytes that the stream (broker and producer) writes, and at least zero. "
        "The charge includes the client, the servers and the file system's metadata.",
        "'Unwritten' counts dirty pages and pages in write-back of the whole machine. Those present at the opening, "
        "above the level at rest, reach the disk in the window and are charged as well. 'Sent to storage by' gives the "
        "processes' own counters, which omit what the file system adds.",
    ]
    title = "Bytes that reached the disk, and the share charged to the system"
    return builder.table("disk", title, columns, rows, builder.run_set.runs, notes)


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
    flushes = published.FLUSH_S[SINGLE]
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
    notes = ["Each operation is timed once per run, outside the window. The thesis gives 'roughly 30,000' rows."]
    return builder.table(
        "flush-vs-merge", "Flushing inlined rows compared with merging small files", columns, rows, runs, notes
    )
