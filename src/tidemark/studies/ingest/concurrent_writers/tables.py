"""Tables of the part `writers`: speed by number of writers, scaling, outcomes of commits, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.measures import NotAvailable
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import one_a_system
from tidemark.studies.ingest.metrics import (
    ABANDONED,
    COMMITS,
    CONFLICTS,
    FAIRNESS,
    FILES,
    P50,
    P99,
    P999,
    ROWS,
    SERVER_CPU,
    WRITER_CPU,
    outcomes,
    refusals,
)
from tidemark.studies.ingest.outcomes import ACKED, CONFLICT, FAILED, GIVEN_UP, UNKNOWN
from tidemark.studies.ingest.part import NEAR, UNEQUAL, VERDICT, column_of, hot_cell, of_part, verdict_of
from tidemark.studies.ingest.record import CheckRecord, CommitRecord
from tidemark.studies.ingest.settings import ONE, OWN, WRITERS, WritersSettings

COUNT, TABLES = Column("writers", "Writers"), Column("tables", "Tables")
COUNTED_BY = {
    "catalog": "the catalog: transactions that it rolled back",
    "client": "the client: commits that it tried",
    "caller": "the caller: what the client's own retries did not resolve",
}


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables ingest-writers, ingest-scaling, ingest-outcomes and ingest-settings."""
    yield _writers(builder)
    yield _scaling(builder)
    yield _outcomes(builder)
    yield _settings(builder)


def in_order(builder: TableBuilder) -> list[Series]:
    """Return all series of the part `writers`: those of one table by number of writers, then those of a table each."""

    def place(series: Series) -> tuple[bool, int]:
        given = WritersSettings.of(series)
        return given.tables == OWN, given.writers

    return sorted(of_part(builder.run_set, WRITERS).select(), key=place)


def _cell(series: Series) -> tuple[str, int]:
    given = WritersSettings.of(series)
    return given.tables, given.writers


def _mode(series: Series) -> list[Cell]:
    given = WritersSettings.of(series)
    return [series.title, given.writers, "one" if given.tables == ONE else "one each"]


def _null_share(builder: TableBuilder, series: Series) -> Cell:
    """Return the commit rate in percent of the null system's rate with as many writers."""
    null = next((each for each in builder.run_set.select(mode=series.mode) if each.is_null_baseline), None)
    if null is None or series.is_null_baseline or not series.runs:
        return None
    try:
        own, most = (builder.measures.hot(COMMITS, each).value for each in (series, null))
    except NotAvailable as absent:
        return MissingCell(str(absent))
    return 100 * own / most


def _runs(all_series: Sequence[Series]) -> list[Run]:
    return [run for series in all_series for run in series.hot_runs]


def _writers(builder: TableBuilder) -> Table:
    asked = (COMMITS, ROWS, P50, P99, P999, CONFLICTS, ABANDONED, FAIRNESS, FILES, SERVER_CPU, WRITER_CPU)
    all_series = in_order(builder)
    rows: list[list[Cell]] = [
        [
            *_mode(series),
            verdict_of(series),
            *(hot_cell(builder, quantity, series) for quantity in asked),
            _null_share(builder, series),
        ]
        for series in all_series
    ]
    columns = (
        SYSTEM, COUNT, TABLES, VERDICT, *(column_of(quantity) for quantity in asked),
        Column("null_share", "Of the rate of the null system", "%"),
    )  # fmt: skip
    notes = [
        "Hot runs, closed loop: a writer begins the next batch when the last was acknowledged. Commits that were "
        "acknowledged inside the window count; their times begin with the first try. Where the oracle does not report "
        "'exact', acknowledged rows are not in the table as they should be, and speeds are no results.",
        "Refused: as far as reported, see 'Counted by' in the table ingest-outcomes. Given up: refused in the last try "
        "of the writer itself. Fairness: Jain's index, 1 where all writers have as many commits. Data files are those "
        "on the disk, those of refused commits among them.",
        f"The null system stores nothing. Above {NEAR:g} % of its rate, a rate is in part that of the load generator.",
        UNEQUAL,
    ]
    title = "One table, many writers: commits, times, refusals"
    return builder.table("ingest-writers", title, columns, rows, _runs(all_series), notes)


def _scaling(builder: TableBuilder) -> Table:
    """Return the table of gains from more writers, and from a table for each of them."""
    all_series = in_order(builder)
    found = {(series.system, *_cell(series)): series for series in all_series}
    rows: list[list[Cell]] = []
    for series in all_series:
        tables, writers = _cell(series)
        row = [*_mode(series), attempt(COMMITS.unit, partial(builder.measures.hot, COMMITS, series))]
        others = (
            found.get((series.system, ONE, 1)) if writers > 1 else None,
            found.get((series.system, OWN, writers)) if tables == ONE else None,
        )
        row += [
            attempt("x", partial(builder.measures.ratio, COMMITS, series, other)) if other and series.runs else None
            for other in others
        ]
        rows.append(row)
    columns = (
        SYSTEM, COUNT, TABLES, column_of(COMMITS), Column("gain", "Over one writer", "x", interval=True),
        Column("efficiency", "One table over a table each", "x", interval=True),
    )  # fmt: skip
    notes = [
        "Hot runs. 'One table over a table each' is the part of a loss that the table is to blame for: with a table "
        "each, as many writers share the machine and the catalog's server, and do not overtake each other.",
        UNEQUAL,
    ]
    return builder.table("ingest-scaling", "What more writers bring", columns, rows, _runs(all_series), notes)


def _outcomes(builder: TableBuilder) -> Table:
    """Return the table of the outcomes of each run's commits, and of its oracle's findings."""
    all_series = in_order(builder)
    rows: list[list[Cell]] = []
    for series in all_series:
        for run in series.runs:
            told = outcomes(run)
            counts = [int((told == name).sum()) for name in (ACKED, CONFLICT, GIVEN_UP, FAILED, UNKNOWN)]
            oracle, found = run.record(CheckRecord).oracle, run.record(CommitRecord)
            refused, tried, by = refusals(run)
            verdict = oracle.words if run.manifest.oracle.applicable else "keeps nothing"
            rows.append([
                *_mode(series), run.number, run.state, verdict, len(told), *counts, tried, refused, COUNTED_BY[by],
                oracle.lost, oracle.doubled, oracle.risen, oracle.phantom, oracle.partial, oracle.done, oracle.not_done,
                run.footprint.data_files, found.referenced_files, "; ".join(found.first_errors)[:200] or None,
            ])  # fmt: skip
        if not series.runs:
            rows.append([*_mode(series), None, MissingCell(series.missing()), *[None] * 20])
    columns = (
        SYSTEM, COUNT, TABLES, Column("run", "Run"), Column("state", "State"), VERDICT,
        Column("attempts", "Attempts"), Column("acked", "Acknowledged"), Column("conflict", "Conflict, tried again"),
        Column("given_up", "Given up"), Column("failed", "Failed"), Column("unknown", "Unknown"),
        Column("tried", "Commits tried"), Column("refused", "Refused"), Column("counted_by", "Counted by"),
        Column("lost", "Lost rows"), Column("doubled", "Doubled rows"), Column("risen", "Refused and there"),
        Column("phantom", "Written by no writer"), Column("partial", "Batches in part"),
        Column("done", "Unknown: was done"), Column("not_done", "Unknown: was not"),
        Column("files", "Data files"), Column("referenced", "Of the table"), Column("errors", "First errors"),
    )  # fmt: skip
    notes = [
        "An attempt is one call of the client; what the client retries inside is one attempt. The oracle reads all ids "
        "through another client: each acknowledged row must be there once, and no refused one; rows of an unknown "
        "outcome may be there once or not at all, and are counted. Data files that are not of the table are left by "
        "refused commits.",
    ]
    runs = [run for series in all_series for run in series.runs]
    title = "Final status of commits, and what exists afterwards"
    return builder.table("ingest-outcomes", title, columns, rows, runs, notes)


def _settings(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    run_set = of_part(builder.run_set, WRITERS)
    all_series = run_set.select()
    for series in one_a_system(run_set):
        system = series.runs[0].manifest.system
        options = dict(system.options)
        retries = [options.get(name) for name in ("commit_retries", "retry_wait_ms")]
        own = "commit-retry" in system.capabilities
        row: list[Cell] = [series.title, f"{system.client}", system.catalog, "yes" if own else "no"]
        row += ["as shipped" if value is None else value for value in retries]
        rows.append([*row, system.durability, "; ".join(system.notes)])
    columns = (
        SYSTEM, Column("client", "Client"), Column("catalog", "Catalog"), Column("own", "Retries by itself"),
        Column("retries", "Retries of a commit"), Column("wait", "First wait", "ms"),
        Column("durability", "At the acknowledgement"), Column("notes", "Notes"),
    )  # fmt: skip
    notes = [
        "As shipped: DuckLake tries a commit again 10 times, first after 100 ms, then after half as much again each "
        "time; delta-rs 15 times; PyIceberg 0.10 and DuckDB's Iceberg and Delta extensions never. Whatever a client "
        "reports as refused is tried again by the writer itself, after a random wait of up to 10 ms, doubled each time "
        "up to 200 ms."
    ]
    title = "Retries of refused commits, and what an acknowledgement promises"
    return builder.table("ingest-settings", title, columns, rows, _runs(all_series), notes)
