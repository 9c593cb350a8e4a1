"""Tables of the files that commits and queries wait for: ingest-storage, with commit costs, and ingest-pruning.

The number of files that a query reads is no speed of a stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from tidemark.analysis.formatting import Cell, estimate_text, listed
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, slope_of
from tidemark.planner.cost_model import Cell as Shape
from tidemark.planner.cost_model import Cost, rtt_of
from tidemark.results.tables.table import SYSTEM, SYSTEM_OF_SERIES, Column, Table, TableBuilder, computed, tables_by
from tidemark.runs.runset import Series
from tidemark.studies.ingest.metrics import (
    COMMITS,
    FILES,
    NOT_COMPARABLE,
    P50,
    P99,
    QUERY_ALL,
    QUERY_ONE,
    files_read,
)
from tidemark.studies.ingest.parts import of_part, part_name, settings_of
from tidemark.studies.ingest.settings import ONE, PRUNING, STORAGE, PruningSettings, StorageSettings, WritersSettings
from tidemark.studies.ingest.tables.writers import VERDICT, hot_column, hot_runs
from tidemark.systems.pruning_dataset import BY_NAME, PREDICATES

ASKED = (P50, P99, COMMITS, FILES)
NOTES = (
    "Hot runs, one writer in a closed loop. The S3 server (SeaweedFS) is on loopback behind a proxy that adds the "
    "round trip to each exchange, of clients and of the catalog server of Iceberg; databases stay. Bandwidth is not "
    "limited. An acknowledged object is not on the disk: SeaweedFS answers before.",
    "Serial round trips a commit: the slope of the median commit against the round trip (Theil-Sen; with two "
    "distances it is the difference). It predicts a commit's cost at another distance, as far as only waiting changes.",
)


def is_far(series: Series) -> bool:
    """Return True if its files are in an object store."""
    return part_name(series) == STORAGE


def far(measures: Measures) -> dict[str, list[Series]]:
    """Return the series of the part by system, the nearest store first."""
    found: dict[str, list[Series]] = {}
    for each in measures.run_set.select(harness=False):
        if is_far(each):
            found.setdefault(each.system, []).append(each)
    return {system: sorted(series, key=distance_ms) for system, series in found.items()}


def distance_ms(series: Series) -> int:
    """Return the round trip to the store in milliseconds."""
    return StorageSettings.of(series).rtt_ms


def local(measures: Measures, system: str) -> list[Series]:
    """Return the series of one writer of the same system with files on the local disk: one, or none."""
    return [each for each in measures.run_set.select(mode=f"{ONE}-1") if each.system == system][:1]


def medians(measures: Measures, series: list[Series]) -> list[tuple[int, BootstrapEstimate]]:
    """Return pairs of the round trip and the median commit, both in milliseconds; NotAvailable medians are left out."""
    found = []
    for each in series:
        with suppress(NotAvailable):
            found.append((distance_ms(each), measures.hot(P50, each).linear()))
    return found


def round_trips(measures: Measures, series: list[Series]) -> BootstrapEstimate:
    """Return the slope of the median commit over the store's round trip, both in ms (Theil 1950, Sen 1968).

    It is the number of serial waits of a commit for the store. Raise NotAvailable for fewer than two distances; the
    slope has no interval if one of the medians, of too few commits, has none.
    """
    found = medians(measures, series)
    if len(found) < 2:
        raise NotAvailable("needs the medians at two distances or more")
    return slope_of(found)


def _storage(builder: TableBuilder) -> Table:
    measures = builder.measures
    distant = far(measures)
    rows = [each for system, series in distant.items() for each in (*local(measures, system), *series)]

    def trips(series: Series) -> BootstrapEstimate | None:
        return round_trips(measures, distant[series.system]) if is_far(series) else None

    columns = (
        SYSTEM_OF_SERIES,
        computed("files", "Files", lambda series: "S3 server" if is_far(series) else "local disk"),
        computed("rtt", "Round trip", lambda series: distance_ms(series) if is_far(series) else None, "ms"),
        VERDICT,
        *(hot_column(builder, quantity) for quantity in ASKED),
        computed("trips", "Serial round trips a commit", trips, interval=True),
    )
    title = "Files in an S3 server: a commit by its distance"
    return builder.computed_table("ingest-storage", title, columns, rows, hot_runs(rows), NOTES)


def trips_sentence(measures: Measures) -> str:
    """Return the sentence on the number of waits of a commit for the store, by system, the fewest first."""
    parts = []
    for series in far(measures).values():
        with suppress(NotAvailable):
            slope = round_trips(measures, series).estimate("")
            parts.append((slope.value, f"{series[0].title} {estimate_text(slope)}"))
    if not parts:
        raise NotAvailable("no system was measured at two distances of an object store")
    return (
        "For each millisecond that the object store is farther away, the median commit takes this many "
        f"milliseconds longer, which is its number of serial waits for the store: "
        f"{listed([said for _, said in sorted(parts)])}."
    )


def costs(measures: Measures) -> Iterator[Cost]:
    """Yield the costs for closed-loop writers of one table, with a flaw if it does not hold what was acknowledged."""
    for series in measures.run_set.series:
        given = settings_of(series)
        if (
            isinstance(given, WritersSettings)
            and given.tables == ONE
            and series.hot_runs
            and not series.is_null_baseline
        ):
            yield _cost(measures, series, given)


def _cost(measures: Measures, series: Series, given: WritersSettings) -> Cost:
    run = series.hot_runs[0]
    writers, rtt_ms = given.writers, rtt_of(run)
    found = Cost(
        system=series.system,
        title=series.title,
        stack=series.stack,
        promise=run.manifest.system.durability,
        cell=Shape(given.rows, writers, rtt_ms),
    )
    where = f"{writers} writer{'s' if writers > 1 else ''}" + (
        "" if rtt_ms is None else f", a store {rtt_ms:g} ms away"
    )
    if not all(each.manifest.oracle.verdict for each in series.hot_runs):
        return replace(found, flaw=f"{NOT_COMPARABLE} ({where})")
    try:
        rate = measures.hot(COMMITS, series).value
    except NotAvailable as absent:
        return replace(found, flaw=f"{absent} ({where})")
    return replace(found, commit_ms=1000 * writers / rate, commits=rate * run.elapsed_s / 2)


def pruned_series(measures: Measures) -> list[Series]:
    """Return all series of the part, tables with fewer files first."""
    return sorted(of_part(measures.run_set, PRUNING).select(harness=False), key=files_of)


def files_of(series: Series) -> int:
    """Return the number of files in the table."""
    return PruningSettings.of(series).files


def _pruning(builder: TableBuilder) -> Table:
    """Return the table: a row per system and number of files, the least possible first, and a column per predicate."""
    rows: list[list[Cell]] = []
    found = pruned_series(builder.measures)
    for files in sorted({files_of(each) for each in found}):
        rows.append(
            ["(files with rows that fit)", files, None, *(each.files(files) for each in PREDICATES), None, None]
        )
        if files == 10:
            rows.append(["kyma, as printed", files, None, *(each.best for each in PREDICATES), None, None])
        for each in found:
            if files_of(each) == files:
                run = next(iter(each.hot_runs), None)
                counts: list[Cell] = [None if run is None else files_read(run, name) for name in BY_NAME]
                times = [None if run is None else hot_column(builder, one).cell(each) for one in (QUERY_ALL, QUERY_ONE)]
                rows.append([each.title, files, VERDICT.cell(each), *counts, *times])
    columns = (
        SYSTEM, Column("table_files", "Files"), VERDICT.column,
        *(Column(each.name.replace(" ", "_"), each.name) for each in PREDICATES),
        Column("query_all", "Median query: all rows", "ms", interval=True),
        Column("query_one", "Median query: region", "ms", interval=True),
    )  # fmt: skip
    notes = [
        "Data files that a query was left to read by what the format keeps of each file (lowest and highest value). "
        "File i holds hour i, one region, one integer and one word, so that files are as separate as they can be. "
        "DuckLake and Iceberg by DuckDB: 'Total Files Read' of the plan that was carried out; PyIceberg: the files of "
        "its plan; delta-rs: those that its log left to DataFusion. Rows were checked.",
        "DuckDB 1.4.4 writes no lowest and highest values into the manifests of an Iceberg table, so that its files "
        "cannot be distinguished; of a table that PyIceberg wrote, it reads no more files than PyIceberg does.",
        "kyma keeps an index of values and of words; no format here has one, and PyIceberg has no filter for a text "
        "that contains another. kyma's page has four more searches for words: whatever they look for, each reads all "
        "files here, as the one that is measured does.",
    ]
    return builder.table("ingest-pruning", "Files that a query is left to read", columns, rows, hot_runs(found), notes)


build = tables_by(_storage, _pruning)
