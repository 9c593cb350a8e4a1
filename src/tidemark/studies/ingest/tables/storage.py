"""Tables of files: what commits wait for (with their costs), what queries and added columns read, and old tables.

The number of files that a query reads is no speed of a stream. A column may be added without touching a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.aggregation import measured_once
from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.formatting import Cell, estimate_text, listed, number
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, generator, quantile, slope_of
from tidemark.planner.cost_model import Cell as Shape
from tidemark.planner.cost_model import Cost, rtt_of
from tidemark.results.tables import table
from tidemark.results.tables.table import SYSTEM, SYSTEM_OF_SERIES, Column, Row, Table, TableBuilder, computed
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import all_hot_runs, all_runs, by_system
from tidemark.studies.ingest import metrics, settings
from tidemark.studies.ingest.parts import of_part, part_name, settings_of
from tidemark.studies.ingest.record import AgesRecord, EvolutionRecord, SizeAtAge
from tidemark.studies.ingest.tables.writers import NOTES, VERDICT, hot_column
from tidemark.studies.ingest.window.one_client import ACCEPTED, COMMIT, EARLIER, PLAN, READ, READERS
from tidemark.systems.pruning_dataset import BY_NAME, PREDICATES

ASKED = (metrics.P50, metrics.P99, metrics.COMMITS, metrics.FILES)


def is_far(series: Series) -> bool:
    """Return True if its files are in an object store."""
    return part_name(series) == settings.STORAGE


def far(measures: Measures) -> dict[str, list[Series]]:
    """Return the series of the part by system, the nearest store first."""
    found = filter(is_far, measures.run_set.select(harness=False))
    return {series[0].system: series for series in by_system(found, distance_ms)}


def distance_ms(series: Series) -> int:
    """Return the round trip to the store in milliseconds."""
    return settings.StorageSettings.of(series).rtt_ms


def local(measures: Measures, system: str) -> list[Series]:
    """Return the series of one writer of the same system with files on the local disk: one, or none."""
    return [each for each in measures.run_set.select(mode=f"{settings.ONE}-1") if each.system == system][:1]


def medians(measures: Measures, series: list[Series]) -> list[tuple[int, BootstrapEstimate]]:
    """Return pairs of the round trip and the median commit, both in milliseconds; NotAvailable medians are left out."""
    found = []
    for each in series:
        with suppress(NotAvailable):
            found.append((distance_ms(each), measures.hot(metrics.P50, each).linear()))
    return found


def round_trips(measures: Measures, series: list[Series]) -> BootstrapEstimate:
    """Return the slope of the median commit over the store's round trip, both in ms (Theil 1950, Sen 1968).

    It is the number of serial waits of a commit for the store. Raise NotAvailable for fewer than two distances; the
    slope has no interval if one of the medians, of too few commits, has none.
    """
    found = medians(measures, series)
    require(len(found) >= 2, "needs the medians at two distances or more")
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
    return builder.computed_table("ingest-storage", title, columns, rows, all_hot_runs(rows), NOTES("ingest-storage"))


def trips_sentence(measures: Measures) -> str:
    """Return the sentence on the number of waits of a commit for the store, by system, the fewest first."""
    parts = []
    for series in far(measures).values():
        with suppress(NotAvailable):
            slope = round_trips(measures, series).estimate("")
            parts.append((slope.value, f"{series[0].title} {estimate_text(slope)}"))
    require(parts, "no system was measured at two distances of an object store")
    return (
        "For each millisecond that the object store is farther away, the median commit takes this many "
        f"milliseconds longer, which is its number of serial waits for the store: "
        f"{listed([said for _, said in sorted(parts)])}."
    )


def costs(measures: Measures) -> Iterator[Cost]:
    """Yield the costs for closed-loop writers of one table, with a flaw if it does not hold what was acknowledged."""
    for series in (each for each in measures.run_set.series if each.hot_runs and not each.is_null_baseline):
        given = settings_of(series)
        if isinstance(given, settings.WritersSettings) and given.tables == settings.ONE:
            yield _cost(measures, series, given)


def _cost(measures: Measures, series: Series, given: settings.WritersSettings) -> Cost:
    run = series.hot_runs[0]
    writers, rtt_ms = given.writers, rtt_of(run)
    found = Cost(
        system=series.system,
        title=series.title,
        stack=series.stack,
        promise=run.manifest.system.durability,
        cell=Shape(given.rows, writers, rtt_ms),
    )
    where = f"{writers} writer{'s' if writers > 1 else ''}"
    where += "" if rtt_ms is None else f", a store {rtt_ms:g} ms away"
    if not all(each.manifest.oracle.verdict for each in series.hot_runs):
        return replace(found, flaw=f"{metrics.NOT_COMPARABLE} ({where})")
    try:
        rate = measures.hot(metrics.COMMITS, series).value
    except NotAvailable as absent:
        return replace(found, flaw=f"{absent} ({where})")
    return replace(found, commit_ms=1000 * writers / rate, commits=rate * run.elapsed_s / 2)


def pruned_series(measures: Measures) -> list[Series]:
    """Return all series of the part, tables with fewer files first."""
    return sorted(of_part(measures.run_set, settings.PRUNING).select(harness=False), key=files_of)


def files_of(series: Series) -> int:
    """Return the number of files in the table."""
    return settings.PruningSettings.of(series).files


def _pruning(builder: TableBuilder) -> Table:
    """Return the table: a row per system and number of files, the least possible first, and a column per predicate."""
    rows: list[list[Cell]] = []
    found = pruned_series(builder.measures)
    for files in sorted({files_of(each) for each in found}):
        rows.append(["(files with rows that fit)", files, None, *(each.files(files) for each in PREDICATES)])
        if files == 10:
            rows.append(["kyma, as printed", files, None, *(each.best for each in PREDICATES)])
        for each in found:
            if files_of(each) == files:
                run = next(iter(each.hot_runs), None)
                counts: list[Cell] = [None if run is None else metrics.files_read(run, name) for name in BY_NAME]
                asked = (metrics.QUERY_ALL, metrics.QUERY_ONE)
                times = [None if run is None else hot_column(builder, one).cell(each) for one in asked]
                rows.append([each.title, files, VERDICT.cell(each), *counts, *times])
    columns = (
        SYSTEM, Column("table_files", "Files"), VERDICT.column,
        *(Column(each.name.replace(" ", "_"), each.name) for each in PREDICATES),
        Column("query_all", "Median query: all rows", "ms", interval=True),
        Column("query_one", "Median query: region", "ms", interval=True),
    )  # fmt: skip
    title = "Files that a query is left to read"
    return builder.table("ingest-pruning", title, columns, rows, all_hot_runs(found), NOTES("ingest-pruning"))


def earlier_writer(series: Series) -> str | None:
    """Return how a writer that knows no added column fared, in all hot runs; None without runs."""
    found = dict.fromkeys(run.record(EvolutionRecord).earlier_writer for run in series.hot_runs)
    return "; ".join(found) or None


def _evolution(builder: TableBuilder) -> Table:
    chosen = of_part(builder.run_set, settings.EVOLUTION).select(harness=False)
    columns = (
        SYSTEM_OF_SERIES,
        computed("columns", "Columns added", lambda series: settings.EvolutionSettings.of(series).columns),
        VERDICT,
        *(hot_column(builder, each) for each in (metrics.ADD_COLUMN, metrics.REWRITTEN)),
        computed("earlier_writer", "A writer that knows no added column", earlier_writer),
    )
    notes = NOTES("ingest-evolution", earlier=EARLIER)
    title = "Columns added to a table with rows: time, files rewritten, and earlier writers"
    return builder.computed_table("ingest-evolution", title, columns, chosen, all_hot_runs(chosen), notes)


def change_sentence(measures: Measures) -> str:
    """Return the sentence on the time of a change by system, and on writers that do not know the column."""
    added = of_part(measures.run_set, settings.EVOLUTION).select(harness=False)
    chosen = require([each for each in added if each.hot_runs], "no column was added to a table")
    times = ((measures.hot(metrics.ADD_COLUMN, each), each.title) for each in chosen)
    found = sorted(times, key=lambda pair: pair[0].value)
    rewriting = [each.title for each in chosen if measures.hot(metrics.REWRITTEN, each).value]
    refused = [each.title for each in chosen if earlier_writer(each) != ACCEPTED]
    said = listed([f"{title} {estimate_text(time.estimate('ms'))}" for time, title in found])
    rewrite = f"{listed(rewriting)} rewrote data files for it" if rewriting else "no system rewrote a data file for it"
    others = (
        f"a writer that does not know the column is refused by {listed(refused)}"
        if refused
        else "writers that do not know the column go on"
    )
    return f"To add a column takes {said}; {rewrite}, and {others}."


@dataclass(frozen=True, slots=True)
class Age:
    """A table of `age` commits in the only run of its series; it may not have been reached."""

    run: Run
    age: int

    @property
    def found(self) -> AgesRecord:
        return self.run.record(AgesRecord)

    @property
    def size(self) -> SizeAtAge:
        """The table's size; raise NotAvailable, with the reason, if the age was not reached."""
        for each in self.found.at_ages:
            if each.age == self.age:
                return each
        raise NotAvailable(self.found.ended)

    def times_ms(self, operation: str) -> NDArray[np.float64]:
        """Return the times of an operation in milliseconds; raise NotAvailable if there are none, or rows are wrong."""
        require(self.run.manifest.oracle.verdict, metrics.NOT_COMPARABLE)
        chosen = (self.run.column("age") == self.age) & (self.run.words("what") == operation)
        require(chosen.any(), self.found.ended)
        times: NDArray[np.float64] = self.run.column("elapsed_ns")[chosen] / 1e6
        return times

    def median(self, operation: str) -> BootstrapEstimate:
        sample = BlockSample.prepare(self.times_ms(operation), generator(self.run.label, self.age, operation))
        return measured_once(quantile(sample, 0.5))


def aged_series(run_set: RunSet) -> list[Series]:
    """Return the series of the part, including those without runs."""
    return list(of_part(run_set, settings.AGES).select(harness=False))


def ages_of(series: Series) -> list[Age]:
    """Return all ages of a series, the youngest first; none without a run."""
    return [Age(run, age) for run in series.runs[:1] for age in settings.AgesSettings.of(series).numbers]


def _made(age: Age) -> str:
    at_once = age.found.at_once
    return "its client" if at_once == 1 or age.age == 1 else f"the format's files, {at_once:,} commits at once"


def _ages(builder: TableBuilder) -> Table:
    chosen = aged_series(builder.run_set)
    rows = [row for each in chosen for row in Row.of(each, ages_of(each), "" if each.runs else each.missing())]
    columns: list[table.ComputedColumn[Row[Age]]] = [
        *table.series_columns(SYSTEM_OF_SERIES),
        table.part_column("age", "Commits before", lambda age: age.age),
        table.part_column("verdict", "Oracle", lambda age: age.found.oracle.words),
        table.part_column("made", "Made older by", _made),
        table.part_column("commit", "Commit: median", lambda age: age.median(COMMIT), "ms", interval=True),
        table.part_column("commit_max", "Commit: longest", lambda age: float(age.times_ms(COMMIT).max()), "ms"),
        table.part_column("plan", "Open and plan", lambda age: float(np.median(age.times_ms(PLAN))), "ms"),
        table.part_column("read", "Open and read all rows", lambda age: float(np.median(age.times_ms(READ))), "ms"),
        table.part_column("metadata_files", "Metadata files", lambda age: age.size.metadata_files),
        table.part_column("metadata_bytes", "Metadata", lambda age: age.size.metadata_bytes / 1e6, "MB"),
        table.part_column("catalog_bytes", "Catalog's database", _catalog_mb, "MB"),
        table.part_column("data_files", "Data files", lambda age: age.size.data_files),
        table.part_column("made_s", "Time to make it", lambda age: age.size.made_s, "s"),
    ]
    notes = NOTES("ingest-ages", commits=settings.COMMITS_AT_AGE, readers=READERS)
    title = "Old tables: a commit, a plan and a read, and the metadata, by the number of commits before"
    return builder.computed_table("ingest-ages", title, columns, rows, all_runs(chosen), notes)


def _catalog_mb(age: Age) -> float | None:
    size = age.size.catalog_bytes
    return None if size is None else size / 1e6


def aged_sentence(run_set: RunSet) -> str:
    """Return the sentence on the time of a commit at the oldest age that each system reached."""
    parts = []
    for series in aged_series(run_set):
        reached = []
        for age in ages_of(series):
            with suppress(NotAvailable):
                reached.append((age.age, age.median(COMMIT)))
        if len(reached) < 2:
            continue
        (young, first), (old, last) = reached[0], reached[-1]
        times = f"{number(last.value / first.value, 2)} times that at {young:,}"
        parts.append(f"{series.title} {estimate_text(last.estimate('ms'))} at {old:,} ({times})")
    require(parts, "no table was measured at two ages")
    return f"A commit to a table with so many commits before takes {listed(parts)}."


build = table.tables_by(_storage, _pruning, _evolution, _ages)
