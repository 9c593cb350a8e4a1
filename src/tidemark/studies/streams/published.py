"""Values printed in the thesis, from another machine, and its tables from our runs with these values next to them.

Source: "Evaluating Data Stream Write Performance in Lakehouse Systems", tables 4.1 to 6.1. Its systems are keyed
by Tidemark's names for them. Printed values are never mixed with Tidemark's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.metrics import Metric
from tidemark.results.publication import Publication
from tidemark.results.tables.table import IDENTITY, REPEAT, RUN, STATE, SYSTEM, Column, Table, TableBuilder, notes_of
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.spec import BATCH, MODES, SINGLE
from tidemark.studies.streams.metrics import DISK_IQR, DISK_MEDIAN, WRITE_IQR, WRITE_MEDIAN

NOTES = notes_of(__file__)
PUBLICATION = Publication.read(__file__)
ORIGIN = PUBLICATION.origin


@dataclass(frozen=True, slots=True)
class MedianIqr:
    median: float
    iqr: float


@dataclass(frozen=True, slots=True)
class Files:
    """Files of the three runs together; sizes in MB."""

    data_files: int
    data_mb: float
    metadata_files: int
    metadata_mb: float


@dataclass(frozen=True, slots=True)
class Printed:
    """Printed values of thesis.yaml, by mode and system."""

    disk_mb: dict[str, dict[str, MedianIqr]]
    write_ms: dict[str, dict[str, MedianIqr]]
    flush_s: dict[str, tuple[float, ...]]
    files: dict[str, dict[str, Files]]
    events: dict[str, dict[str, tuple[int, ...]]]
    of_threads: dict[str, dict[int, int]]


PRINTED = msgspec.yaml.decode(Path(__file__).with_name("thesis.yaml").read_bytes(), type=Printed)
EVENTS, OF_THREADS = PRINTED.events, PRINTED.of_threads
WINDOW_S, THREADS_WINDOW_S = 300, 60
OF_A_BATCH = 1_000  # events
MERGE_S = 13.0  # section 6.3: about 30,000 files of one event each
EVENTS_OF_MERGE = 30_000


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield tables 5.1 to 5.6 and 6.1."""
    yield _spread(builder, "table-5.1", SINGLE, DISK_MEDIAN, DISK_IQR, PRINTED.disk_mb)
    yield _spread(builder, "table-5.2", SINGLE, WRITE_MEDIAN, WRITE_IQR, PRINTED.write_ms)
    yield _flush(builder, "table-5.3", SINGLE)
    yield _spread(builder, "table-5.4", BATCH, DISK_MEDIAN, DISK_IQR, PRINTED.disk_mb)
    yield _spread(builder, "table-5.5", BATCH, WRITE_MEDIAN, WRITE_IQR, PRINTED.write_ms)
    yield _flush(builder, "table-5.6", BATCH)
    yield _footprint(builder)


def ticks_words(seconds: int) -> str:
    """Return how a legend calls the thesis's numbers, which are of windows of `seconds`."""
    return f"as published (windows of {seconds} s)"


def events_words(mode: str) -> str:
    """Return a caption's sentence with the events that figure 5.1 or 5.7 of the thesis shows, by run."""
    each = (f"{system} {', '.join(f'{count:,}' for count in counts)}" for system, counts in EVENTS[mode].items())
    return f"The thesis's events in {WINDOW_S} s, on another machine, by run (0, 1, 2): {'; '.join(each)}."


def threads_words() -> str:
    """Return a caption's sentence with the events that figure 4.2 of the thesis shows, by threads."""
    each = (f"{system} {counts[1]:,} and {counts[16]:,}" for system, counts in OF_THREADS.items())
    return f"The thesis's events in a minute with 1 and with 16 threads, on another machine: {'; '.join(each)}."


def mode_words(builder: TableBuilder, mode: str) -> str:
    """Return the wording of a mode in titles; the batch size is the configured one, not always 1,000."""
    sizes = sorted({series.batch_size for series in builder.run_set.select(mode=mode)})
    if mode == SINGLE or not sizes:
        return "writing events one by one" if mode == SINGLE else "writing events in batches"
    return f"writing events in batches of {' or '.join(f'{size:,}' for size in sizes)}"


def _spread(
    builder: TableBuilder,
    name: str,
    mode: str,
    median: Metric,
    iqr: Metric,
    theirs: Mapping[str, Mapping[str, MedianIqr]],
) -> Table:
    """Return a table of median and IQR of the first hot run, as in the thesis, and of the median over all hot runs."""
    measures, unit = builder.measures, median.unit
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in builder.run_set.select(mode=mode, harness=False):
        of_thesis = theirs[mode].get(series.system)
        ours = [
            attempt(unit, partial(measures.first_hot, median, series)),
            attempt(unit, partial(measures.first_hot, iqr, series)),
            attempt(unit, partial(measures.hot, median, series)),
        ]
        samples = None if isinstance(ours[0], MissingCell) else ours[0].n
        rows.append(
            [
                series.title,
                *ours,
                len(series.hot_runs),
                samples,
                of_thesis.median if of_thesis else None,
                of_thesis.iqr if of_thesis else None,
            ]
        )
        runs += series.hot_runs
    what = "Bytes written to disk per second" if median is DISK_MEDIAN else "Write time"
    columns = (
        SYSTEM,
        Column("median", "Median", unit, interval=True),
        Column("iqr", "IQR", unit, interval=True),
        Column("median_hot", "Median, hot runs", unit, interval=True),
        Column("hot_runs", "Hot runs"),
        Column("n", "n"),
        Column("thesis_median", f"Median ({ORIGIN})", unit),
        Column("thesis_iqr", f"IQR ({ORIGIN})", unit),
    )
    notes = [*(NOTES("bytes-a-second") if median is DISK_MEDIAN else []), *NOTES("spread")]
    title = f"{what} when {mode_words(builder, mode)}: median and interquartile range"
    return builder.table(name, title, columns, rows, runs, notes)


def _flush(builder: TableBuilder, name: str, mode: str) -> Table:
    unit = "ms" if mode == SINGLE else "s"
    factor = 1000.0 if unit == "ms" else 1.0
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    inlining = [series for series in builder.run_set.select(mode=mode, harness=False) if _inlines(series)]
    for series in inlining:
        theirs = PRINTED.flush_s[mode] if series.system == "ducklake-inlined" else ()
        measured = {(run.repeat, run.number): run for run in series.runs}
        runs += series.runs
        for repeat, number in sorted({*measured, *((1, number) for number in range(max(len(theirs), 1)))}):
            run = measured.get((repeat, number))
            flush = run.manifest.flush if run else None
            rows.append(
                [
                    series.title,
                    series.repeat_of(run) if run else None,
                    number,
                    run.state if run else None,
                    flush.seconds * factor if flush else MissingCell(series.missing(number)),
                    flush.rows if flush else None,
                    flush.seconds / flush.rows * 1e6 if flush and flush.rows else None,
                    theirs[number] * factor if repeat == 1 and number < len(theirs) else None,
                ]
            )
    columns = (
        SYSTEM,
        REPEAT,
        RUN,
        STATE,
        Column("flush", "Flush", unit),
        Column("rows", "Rows flushed"),
        Column("per_row", "Flush per row", "µs"),
        Column("thesis_flush", f"Flush ({ORIGIN})", unit),
    )
    notes = NOTES("flush") if inlining else NOTES("no-flush")
    title = f"Time to flush inlined rows to Parquet after {mode_words(builder, mode)}"
    return builder.table(name, title, columns, rows, runs, notes)


def _inlines(series: Series) -> bool:
    if series.runs:
        return "flush" in series.runs[0].manifest.system.capabilities
    return "inlin" in series.system


def _footprint(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for mode in MODES:
        for series in builder.run_set.select(mode=mode, harness=False):
            theirs = PRINTED.files[mode].get(series.system)
            cells: list[Cell] = [series.title, series.mode_title, len(series.runs)]
            if series.runs:
                prints = [run.footprint for run in series.runs]
                catalogs = [each.catalog_bytes for each in prints if each.catalog_bytes is not None]
                whole = len(catalogs) == len(prints)
                cells += [
                    sum(run.manifest.events for run in series.runs),
                    sum(each.data_files for each in prints),
                    sum(each.data_bytes for each in prints) / 1e6,
                    sum(each.metadata_files for each in prints),
                    sum(each.metadata_bytes for each in prints) / 1e6,
                    sum(catalogs) / 1e6 if whole else MissingCell(prints[0].reason or "not measurable"),
                ]
            else:
                cells += [MissingCell(series.missing()), None, None, None, None, None]
            if theirs:
                cells += [theirs.data_files, theirs.data_mb, theirs.metadata_files, theirs.metadata_mb]
            else:
                cells += [None] * 4
            rows.append(cells)
            runs += series.runs
    columns = (
        *IDENTITY,
        Column("runs", "Runs"),
        Column("events", "Events"),
        Column("data_files", "Data files"),
        Column("data_mb", "Data", "MB"),
        Column("metadata_files", "Metadata files"),
        Column("metadata_mb", "Metadata", "MB"),
        Column("catalog_mb", "Catalog", "MB"),
        Column("thesis_data_files", f"Data files ({ORIGIN})"),
        Column("thesis_data_mb", f"Data ({ORIGIN})", "MB"),
        Column("thesis_metadata_files", f"Metadata files ({ORIGIN})"),
        Column("thesis_metadata_mb", f"Metadata ({ORIGIN})", "MB"),
    )
    title = "Files and bytes of each table"
    return builder.table("table-6.1", title, columns, rows, runs, NOTES("table-6.1"))
