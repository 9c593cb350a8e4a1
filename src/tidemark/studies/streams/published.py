"""Values printed in the thesis, from another machine, and its tables from our runs with these values next to them.

Source: "Evaluating Data Stream Write Performance in Lakehouse Systems", tables 4.1 to 6.1. Its systems are keyed
by Tidemark's names for them. Printed values are never mixed with Tidemark's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.results.publication import Publication
from tidemark.results.tables import table
from tidemark.results.tables.table import Column, ComputedColumn, Table, TableBuilder, computed
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.spec import BATCH, MODES, SINGLE
from tidemark.runs.views import all_hot_runs, all_runs
from tidemark.studies.streams.metrics import DISK_IQR, DISK_MEDIAN, WRITE_IQR, WRITE_MEDIAN
from tidemark.studies.streams.tables import HOT_RUNS, IDENTITY

NOTES = table.notes_of(__file__)
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
    for mode, first in ((SINGLE, 1), (BATCH, 4)):
        yield _spread(builder, f"table-5.{first}", mode, DISK_MEDIAN, DISK_IQR, PRINTED.disk_mb)
        yield _spread(builder, f"table-5.{first + 1}", mode, WRITE_MEDIAN, WRITE_IQR, PRINTED.write_ms)
        yield _flush(builder, f"table-5.{first + 2}", mode)
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
    medians = {system: each.median for system, each in theirs[mode].items()}
    iqrs = {system: each.iqr for system, each in theirs[mode].items()}

    def samples(series: Series) -> int | None:
        with suppress(NotAvailable):
            return measures.first_hot(median, series).n
        return None

    columns: list[ComputedColumn[Series]] = [
        table.SYSTEM_OF_SERIES,
        computed("median", "Median", partial(measures.first_hot, median), unit, interval=True),
        computed("iqr", "IQR", partial(measures.first_hot, iqr), unit, interval=True),
        computed("median_hot", "Median, hot runs", partial(measures.hot, median), unit, interval=True),
        HOT_RUNS,
        computed("n", "n", samples),
        computed("thesis_median", f"Median ({ORIGIN})", lambda series: medians.get(series.system), unit),
        computed("thesis_iqr", f"IQR ({ORIGIN})", lambda series: iqrs.get(series.system), unit),
    ]
    what = "Bytes written to disk per second" if median is DISK_MEDIAN else "Write time"
    notes = [*(NOTES("bytes-a-second") if median is DISK_MEDIAN else []), *NOTES("spread")]
    title = f"{what} when {mode_words(builder, mode)}: median and interquartile range"
    chosen = builder.run_set.select(mode=mode, harness=False)
    return builder.computed_table(name, title, columns, chosen, all_hot_runs(chosen), notes)


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
        table.SYSTEM,
        table.REPEAT,
        table.RUN,
        table.STATE,
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
    def events(series: Series) -> int:
        require(series.runs, series.missing())
        return sum(run.manifest.events for run in series.runs)

    def total(name: str, series: Series) -> int | None:
        counts: list[int] = [getattr(run.footprint, name) for run in series.runs]
        return sum(counts) if counts else None

    def megabytes(name: str, series: Series) -> float | None:
        found = total(name, series)
        return None if found is None else found / 1e6

    def catalog(series: Series) -> Cell:
        if any(run.footprint.catalog_bytes is None for run in series.runs):
            return MissingCell(series.runs[0].footprint.reason or "not measurable")
        return megabytes("catalog_bytes", series)

    def printed(name: str, series: Series) -> float | None:
        found: float | None = getattr(PRINTED.files[series.mode].get(series.system), name, None)
        return found

    columns: list[ComputedColumn[Series]] = [
        *IDENTITY,
        computed("runs", "Runs", lambda series: len(series.runs)),
        computed("events", "Events", events),
        computed("data_files", "Data files", partial(total, "data_files")),
        computed("data_mb", "Data", partial(megabytes, "data_bytes"), "MB"),
        computed("metadata_files", "Metadata files", partial(total, "metadata_files")),
        computed("metadata_mb", "Metadata", partial(megabytes, "metadata_bytes"), "MB"),
        computed("catalog_mb", "Catalog", catalog, "MB"),
        computed("thesis_data_files", f"Data files ({ORIGIN})", partial(printed, "data_files")),
        computed("thesis_data_mb", f"Data ({ORIGIN})", partial(printed, "data_mb"), "MB"),
        computed("thesis_metadata_files", f"Metadata files ({ORIGIN})", partial(printed, "metadata_files")),
        computed("thesis_metadata_mb", f"Metadata ({ORIGIN})", partial(printed, "metadata_mb"), "MB"),
    ]
    chosen = [series for mode in MODES for series in builder.run_set.select(mode=mode, harness=False)]
    title = "Files and bytes of each table"
    return builder.computed_table("table-6.1", title, columns, chosen, all_runs(chosen), NOTES("table-6.1"))
