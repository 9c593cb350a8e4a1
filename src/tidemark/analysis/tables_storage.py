"""Tables of what lies on the disk and of its maintenance, and of the studies that vary one axis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis import published
from tidemark.analysis.metrics import UNITS, Metric
from tidemark.analysis.run import Run
from tidemark.analysis.runs import Series
from tidemark.analysis.tables import REPEAT, Cell, Column, Missing, Table, Workshop, attempt

IDENTITY = (Column("system", "System"), Column("mode", "Mode"))
THREADS, BATCH_SIZE = "threads", "batch-size"


def build(workshop: Workshop) -> Iterator[Table]:
    """Tables footprint and flush-vs-merge, and of those studies that the configuration has."""
    yield _footprint(workshop)
    yield _flush_and_merge(workshop)
    if workshop.run_set.select(study=THREADS):
        yield _threads(workshop)
    if workshop.run_set.select(study=BATCH_SIZE):
        yield _batch_sizes(workshop)


def last_hot(series: Series) -> Run | None:
    """The run whose footprint is shown: the last hot one, else the cold one."""
    return series.runs[-1] if series.runs else None


def _footprint(workshop: Workshop) -> Table:
    """What one event takes on disk, and how many bytes reached the device for each byte of data."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in workshop.run_set.select(harness=False):
        run = last_hot(series)
        if run is None:
            rows.append([series.title, series.mode_title, None, Missing(series.missing()), *[None] * 10])
            continue
        runs += [run, *series.hot_runs]
        m, f, after = run.manifest, run.manifest.footprint, run.manifest.footprint_after_flush
        known = f.catalog_bytes is not None
        stored = f.data_bytes + f.metadata_bytes + (f.catalog_bytes or 0)
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
                f.catalog_bytes / m.events if f.catalog_bytes is not None else Missing(f.reason or "not measurable"),
                m.logical_bytes / m.events,
                stored / m.logical_bytes if known and m.logical_bytes else Missing(f.reason or "not measurable"),
                after.data_bytes / m.events if after else None,
                attempt("", partial(workshop.measures.hot, Metric.WRITE_AMPLIFICATION, series)),
            ]
        )
    columns = (
        *IDENTITY,
        Column("run", "Run"),
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
        "Sizes of the last run's table, before inlined rows are flushed. Written to the device: all that reached the "
        "disk under the data in the window, and by a sync right after it, servers' logs included; hot runs."
    ]
    title = "Footprint per event, and write amplification"
    return workshop.table("footprint", title, columns, rows, runs, notes)


def _flush_and_merge(workshop: Workshop) -> Table:
    """What it costs to bring the rows into few files: flushing inlined rows, or merging small files."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in workshop.run_set.select(harness=False):
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
    flushes = published.FLUSH_S["single"]
    theirs = f"DuckLake ({published.ORIGIN})"
    events = published.EVENTS_OF_MERGE
    rows.append([theirs, "single", None, None, "flush of inlined rows", events, None, None, flushes[1], None])
    rows[-1][-1] = flushes[1] / events * 1e6
    rows.append([theirs, "single", None, None, "merge of small files", events, events, None, published.MERGE_S, None])
    rows[-1][-1] = published.MERGE_S / events * 1e6
    columns = (
        *IDENTITY,
        REPEAT,
        Column("run", "Run"),
        Column("what", "Maintenance"),
        Column("rows", "Rows"),
        Column("files_before", "Files before"),
        Column("files_after", "Files after"),
        Column("seconds", "Time", "s"),
        Column("per_row", "Time per row", "µs"),
    )
    notes = ["Each was timed once in a run, outside the window. The thesis's rows are 'roughly 30,000'."]
    return workshop.table(
        "flush-vs-merge", "Flushing inlined rows against merging small files", columns, rows, runs, notes
    )


def _study(workshop: Workshop, study: str, axis: Column, name: str, title: str, notes: tuple[str, ...]) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    measures = workshop.measures
    for series in workshop.run_set.select(study=study):
        value = series.threads if study == THREADS else series.batch_size
        if not series.runs:
            rows.append([series.title, series.mode_title, value, None, Missing(series.missing()), *[None] * 3])
        for run in series.runs:
            runs.append(run)
            rows.append(
                [
                    series.title,
                    series.mode_title,
                    value,
                    "cold" if run.cold else "hot",
                    run.manifest.events,
                    attempt(UNITS[Metric.HARNESS_RATE], partial(measures.of_run, Metric.HARNESS_RATE, run)),
                    attempt(UNITS[Metric.SYSTEM_RATE], partial(measures.of_run, Metric.SYSTEM_RATE, run)),
                    attempt(UNITS[Metric.WRITE_MEDIAN], partial(measures.of_run, Metric.WRITE_MEDIAN, run)),
                ]
            )
    columns = (
        *IDENTITY,
        axis,
        Column("state", "State"),
        Column("events", "Events"),
        Column("harness", "Harness throughput", "events/s", interval=True),
        Column("system_rate", "System throughput", "events/s", interval=True),
        Column("median", "Median write", "ms", interval=True),
    )
    return workshop.table(name, title, columns, rows, runs, (*notes, *workshop.run_set.notes))


def _threads(workshop: Workshop) -> Table:
    notes = ("Intervals cover each run alone: with one run a value, how runs differ is not in them.",)
    return _study(
        workshop, THREADS, Column("threads", "Threads"), "threads", "Writing with one thread and with more", notes
    )


def _batch_sizes(workshop: Workshop) -> Table:
    notes = ("Intervals cover each run alone: with one run a value, how runs differ is not in them.",)
    return _study(
        workshop, BATCH_SIZE, Column("batch_size", "Events a write"), "batch-size", "Throughput by the size of batches",
        notes,
    )  # fmt: skip
