"""Tables of files: what commits wait for (ingest-storage, with their costs), and what queries and added columns read.

The number of files that a query reads is no speed of a stream. A column may be added without touching a file.
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
from tidemark.results.tables.table import (
    SYSTEM,
    SYSTEM_OF_SERIES,
    Column,
    Table,
    TableBuilder,
    computed,
    notes_of,
    tables_by,
)
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.metrics import (
    ADD_COLUMN,
    COMMITS,
    FILES,
    NOT_COMPARABLE,
    P50,
    P99,
    QUERY_ALL,
    QUERY_ONE,
    REWRITTEN,
    files_read,
)
from tidemark.studies.ingest.parts import of_part, part_name, settings_of
from tidemark.studies.ingest.record import EvolutionRecord
from tidemark.studies.ingest.settings import (
    EVOLUTION,
    ONE,
    PRUNING,
    STORAGE,
    EvolutionSettings,
    PruningSettings,
    StorageSettings,
    WritersSettings,
)
from tidemark.studies.ingest.tables.writers import VERDICT, hot_column, hot_runs
from tidemark.studies.ingest.window.evolution import ACCEPTED, EARLIER
from tidemark.systems.pruning_dataset import BY_NAME, PREDICATES

NOTES = notes_of(__file__)
ASKED = (P50, P99, COMMITS, FILES)


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
    return builder.computed_table("ingest-storage", title, columns, rows, hot_runs(rows), NOTES("ingest-storage"))


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
    notes = NOTES("ingest-pruning")
    return builder.table("ingest-pruning", "Files that a query is left to read", columns, rows, hot_runs(found), notes)


def evolved(run_set: RunSet) -> list[Series]:
    """Return the series of the part."""
    return list(of_part(run_set, EVOLUTION).select(harness=False))


def earlier_writer(series: Series) -> str | None:
    """Return how a writer that knows no added column fared, in all hot runs; None without runs."""
    found = dict.fromkeys(run.record(EvolutionRecord).earlier_writer for run in series.hot_runs)
    return "; ".join(found) or None


def _evolution(builder: TableBuilder) -> Table:
    chosen = evolved(builder.run_set)
    columns = (
        SYSTEM_OF_SERIES,
        computed("columns", "Columns added", lambda series: EvolutionSettings.of(series).columns),
        VERDICT,
        *(hot_column(builder, each) for each in (ADD_COLUMN, REWRITTEN)),
        computed("earlier_writer", "A writer that knows no added column", earlier_writer),
    )
    notes = NOTES("ingest-evolution", earlier=EARLIER)
    title = "Columns added to a table with rows: time, files rewritten, and earlier writers"
    return builder.computed_table("ingest-evolution", title, columns, chosen, hot_runs(chosen), notes)


def change_sentence(measures: Measures) -> str:
    """Return the sentence on the time of a change by system, and on writers that do not know the column."""
    chosen = [each for each in evolved(measures.run_set) if each.hot_runs]
    if not chosen:
        raise NotAvailable("no column was added to a table")
    found = sorted(((measures.hot(ADD_COLUMN, each), each.title) for each in chosen), key=lambda pair: pair[0].value)
    rewriting = [each.title for each in chosen if measures.hot(REWRITTEN, each).value]
    refused = [each.title for each in chosen if earlier_writer(each) != ACCEPTED]
    said = listed([f"{title} {estimate_text(time.estimate('ms'))}" for time, title in found])
    rewrite = f"{listed(rewriting)} rewrote data files for it" if rewriting else "no system rewrote a data file for it"
    others = (
        f"a writer that does not know the column is refused by {listed(refused)}"
        if refused
        else "writers that do not know the column go on"
    )
    return f"To add a column takes {said}; {rewrite}, and {others}."


build = tables_by(_storage, _pruning, _evolution)
