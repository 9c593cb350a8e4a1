"""Values printed in the thesis, from another machine, and its tables from our runs with these values next to them.

Source: "Evaluating Data Stream Write Performance in Lakehouse Systems", tables 4.1 to 6.1. Its systems are keyed
by Tidemark's names for them. Printed values are never mixed with Tidemark's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

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


DISK_MB = {  # tables 5.1 and 5.4: MB written per second
    SINGLE: {
        "ducklake": MedianIqr(2.154, 0.502),
        "iceberg-pyiceberg": MedianIqr(0.291, 0.594),
        "ducklake-inlined": MedianIqr(1.204, 0.193),
        "iceberg-duckdb": MedianIqr(0.459, 0.380),
    },
    BATCH: {
        "ducklake": MedianIqr(0.154, 0.341),
        "iceberg-pyiceberg": MedianIqr(0.258, 0.502),
        "iceberg-duckdb": MedianIqr(0.242, 0.727),
        "ducklake-inlined": MedianIqr(0.573, 0.372),
    },
}
WRITE_MS = {  # tables 5.2 and 5.5
    SINGLE: {
        "ducklake": MedianIqr(9.889, 0.667),
        "iceberg-pyiceberg": MedianIqr(346.208, 341.194),
        "ducklake-inlined": MedianIqr(9.169, 0.711),
        "iceberg-duckdb": MedianIqr(124.303, 22.650),
    },
    BATCH: {
        "ducklake": MedianIqr(77.439, 6.942),
        "iceberg-pyiceberg": MedianIqr(644.842, 84.695),
        "ducklake-inlined": MedianIqr(189.746, 10.625),
        "iceberg-duckdb": MedianIqr(160.086, 8.189),
    },
}
FLUSH_S = {  # tables 5.3 and 5.6, by run
    SINGLE: (0.219874, 0.205867, 0.193615),
    BATCH: (2.287, 1.992, 1.974),
}
FILES = {  # table 6.1
    ("iceberg-duckdb", SINGLE): Files(7_249, 21.4, 21_785, 5_400.0),
    ("iceberg-duckdb", BATCH): Files(1_242, 46.4, 3_732, 183.5),
}
# Events by run (0, 1, 2), of figures 5.1 and 5.7, and by threads in one minute, of figure 4.2. The thesis prints bars:
# their labels are in the sources of these figures, in its author's public repository (schmidtvinicius/thesis).
EVENTS = {
    SINGLE: {
        "ducklake": (30_784, 28_587, 28_751),
        "iceberg-pyiceberg": (824, 805, 806),
        "ducklake-inlined": (32_207, 30_742, 30_935),
        "iceberg-duckdb": (2_481, 2_366, 2_402),
    },
    BATCH: {
        "ducklake": (439_418, 445_001, 431_874),
        "iceberg-pyiceberg": (255_000, 250_693, 250_853),
        "ducklake-inlined": (405_000, 376_000, 383_000),
        "iceberg-duckdb": (413_650, 413_706, 413_615),
    },
}
OF_THREADS = {"ducklake": {1: 3_482, 16: 2_970}, "iceberg-pyiceberg": {1: 301, 16: 296}}
WINDOW_S, THREADS_WINDOW_S = 300, 60
OF_A_BATCH = 1_000  # events
MERGE_S = 13.0  # section 6.3: about 30,000 files of one event each
EVENTS_OF_MERGE = 30_000
IN_SECONDS = (
    "Bytes per second that reached the data's device, of all processes. Topics are filled and synced before the "
    "window, so the broker writes next to nothing in it; a run in which broker and producer wrote more than a tenth "
    "of the bytes is left out, with the reason. The bytes of the sync after the window are in the table 'disk', not "
    "here."
)


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield tables 5.1 to 5.6 and 6.1."""
    yield _spread(builder, "table-5.1", SINGLE, DISK_MEDIAN, DISK_IQR, DISK_MB)
    yield _spread(builder, "table-5.2", SINGLE, WRITE_MEDIAN, WRITE_IQR, WRITE_MS)
    yield _flush(builder, "table-5.3", SINGLE)
    yield _spread(builder, "table-5.4", BATCH, DISK_MEDIAN, DISK_IQR, DISK_MB)
    yield _spread(builder, "table-5.5", BATCH, WRITE_MEDIAN, WRITE_IQR, WRITE_MS)
    yield _flush(builder, "table-5.6", BATCH)
    yield _footprint(builder)


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
    notes = [IN_SECONDS] if median is DISK_MEDIAN else []
    notes += [
        "Median, IQR and n are those of the first hot run (run 1), as in the thesis; their intervals cover that run "
        "only. The interval of 'Median, hot runs' also covers the variance between runs, or between repeats of a "
        "series. All intervals are 95 %; the table has no cold run."
    ]
    title = f"{what} when {mode_words(builder, mode)}: median and interquartile range"
    return builder.table(name, title, columns, rows, runs, notes)


def _flush(builder: TableBuilder, name: str, mode: str) -> Table:
    unit = "ms" if mode == SINGLE else "s"
    factor = 1000.0 if unit == "ms" else 1.0
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    inlining = [series for series in builder.run_set.select(mode=mode, harness=False) if _inlines(series)]
    for series in inlining:
        theirs = FLUSH_S[mode] if series.system == "ducklake-inlined" else ()
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
    notes = ["One value per run has no interval. The number of rows differs between runs: compare the time per row."]
    if not inlining:
        notes = ["No system of this configuration inlines rows in this mode."]
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
            theirs = FILES.get((series.system, mode))
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
