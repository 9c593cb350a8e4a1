"""Tables that the report does not have: outcomes, contention, mixes, costs, distance, guarantees, durability."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from statistics import median

import numpy as np

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.tables import table
from tidemark.results.tables.table import SYSTEM, Column, ComputedColumn, Table, TableBuilder, computed
from tidemark.runs.manifest import SystemPart
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import one_a_system
from tidemark.services.mariadb import MariaDB
from tidemark.services.postgres import Postgres
from tidemark.studies.catalogs import metrics
from tidemark.studies.catalogs.published import UNEQUAL
from tidemark.studies.catalogs.record import (
    ACKED,
    CASCADED,
    CONFLICT,
    COUNTED_DEPTH,
    COUNTED_REQUESTS,
    FAILED,
    UNKNOWN,
    WRONG,
    CatalogRecord,
    users_of,
)

NOTES = table.notes_of(__file__)
ALL_NOTES = table.notes_of(__file__, UNEQUAL)  # for tables that compare systems

type Crashed = metrics.Kills | tuple[Series, str]  # kills of one server, or a series and the reason why none is killed
DATABASES = (Postgres.name, MariaDB.name)  # databases that are separate servers
RTT = "database_rtt_ms"  # option of a system: the round-trip time to its database
USERS = Column("users", "Users")
RESOLVED = ("resolved_done", "resolved_not")
OF_RUN = (SYSTEM, USERS, table.RUN, table.STATE)
COUNTS = {
    ACKED: "Succeeded", CONFLICT: "Conflict (409)", FAILED: "Refused", UNKNOWN: "Unknown", CASCADED: "Cascaded",
}  # fmt: skip


def _row(series: Series, run: Run) -> list[Cell]:
    """Return the cells of `OF_RUN`."""
    return [series.title, users_of(series), run.number, run.state]


def _measured(builder: TableBuilder, run: Run, *quantities: Metric) -> list[Cell]:
    """Return a cell for each of `quantities` of a run."""
    return [attempt(each.unit, partial(builder.measures.of_run, each, run)) for each in quantities]


def _counts(run: Run, sort: metrics.Sort | None = None) -> dict[str, int]:
    """Return the number of requests by outcome, of one sort or of the whole window."""
    outcome = run.words("outcome")
    if sort is not None:
        outcome = outcome[np.isin(run.words("part"), sort.parts)]
    return {name: int((outcome == name).sum()) for name in COUNTS}


def _outcomes(builder: TableBuilder) -> Table:
    """Return table catalog-outcomes: the outcomes of each run's requests, and its oracle's findings."""
    rows: list[list[Cell]] = []
    for series in builder.run_set.select():
        for run in series.runs:
            record, oracle = run.record(CatalogRecord), run.manifest.oracle
            differences = record.oracle if oracle.applicable else None
            asked = _measured(builder, run, metrics.CREATION.success)
            verdict = "holds" if oracle.verdict else "DOES NOT HOLD"
            resolved, wrong = ([getattr(differences, name, None) for name in names] for names in (RESOLVED, WRONG))
            rows.append([
                *_row(series, run), *_counts(run).values(), *resolved, *asked,
                verdict if oracle.applicable else "keeps nothing", *wrong, record.in_flight,
            ])  # fmt: skip
        if not series.runs:
            rows.append([series.title, users_of(series), None, MissingCell(series.missing())])
    columns = (
        *OF_RUN,
        *(Column(name, title) for name, title in COUNTS.items()),
        Column("resolved_done", "Unknown: was done"), Column("resolved_not", "Unknown: was not"),
        Column("success", "Creations that succeeded", interval=True), Column("oracle", "Oracle"),
        Column("lost", "Lost"),
        Column("lost_updates", "Lost updates"), Column("undead", "Dropped, and there"),
        Column("phantom", "Phantom"), Column("doubled", "Doubled"),
        Column("wrong", "Wrong"), Column("torn", "Torn"), Column("in_flight", "In flight, at most"),
    )  # fmt: skip
    title = "Final status of the requests, and what exists afterwards"
    return builder.table("catalog-outcomes", title, columns, rows, builder.runs, NOTES("catalog-outcomes"))


def _mixed(builder: TableBuilder) -> Table:
    """Return table catalog-mixed: reads and writes of each mix, in open and closed loops."""

    def cells(sort: metrics.Sort, run: Run) -> list[Cell]:
        return [*_measured(builder, run, sort.median, sort.p99, sort.tail, sort.rate), _late(run, sort)]

    rows = [
        [sort.title, *_row(series, run), *cells(sort, run)]
        for series in builder.run_set.select()
        for sort in metrics.MIXES
        for run in series.runs
    ]
    columns = (
        Column("mix", "Mix"), *OF_RUN,
        Column("median", "Median", "ms", interval=True), Column("p99", "p99", "ms", interval=True),
        Column("tail", "p99 / median", interval=True), Column("rate", "Rate", "requests/s", interval=True),
        Column("late", "Median lateness", "ms"),
    )  # fmt: skip
    notes = ALL_NOTES("catalog-mixed")
    return builder.table("catalog-mixed", "Mixes of reads and writes", columns, rows, builder.runs, notes)


def _late(run: Run, sort: metrics.Sort) -> Cell:
    """Return the median lateness of a mix in ms; None for a closed loop."""
    chosen = np.isin(run.words("part"), sort.parts)
    if not chosen.any() or not sort.parts[0].startswith("open"):
        return None
    return float(np.median(run.column("late_ns")[chosen])) / 1e6


def _contention(builder: TableBuilder) -> Table:
    """Return table catalog-contention: all users update one table, and all create one name, which one may get."""
    rows: list[list[Cell]] = []
    for series in builder.run_set.select():
        for run in series.runs:
            hot, race, appended, committed = (
                _counts(run, sort) for sort in (metrics.HOT, metrics.RACE, metrics.APPENDED, metrics.TRANSACTED)
            )
            transactions = sum(committed.values())
            rows.append([
                *_row(series, run), sum(hot.values()), hot[ACKED], hot[CONFLICT], hot[FAILED] + hot[UNKNOWN],
                *_measured(builder, run, metrics.HOT.rate, metrics.ATTEMPTS, metrics.HOT.median), _fairness(run),
                sum(appended.values()), appended[ACKED], appended[CONFLICT],
                *_measured(builder, run, metrics.APPENDED.rate, metrics.TRIES, metrics.APPENDED.median),
                transactions or None, committed[ACKED] if transactions else None,
                sum(race.values()) // users_of(series), race[ACKED], race[CONFLICT], race[FAILED] + race[UNKNOWN],
            ])  # fmt: skip
    columns = (
        *OF_RUN, Column("updates", "Updates of one table"),
        Column("acked", "Succeeded"), Column("conflicts", "Conflicts"), Column("other", "Refused or unknown"),
        Column("rate", "Rate", "requests/s", interval=True), Column("attempts", "Requests an update", interval=True),
        Column("median", "Median", "ms", interval=True), Column("fairness", "Least over most successes of a user"),
        Column("appends", "Snapshots for one table"), Column("appended", "Appended"),
        Column("gave_up", "Given up after 50 attempts"), Column("append_rate", "Rate", "requests/s", interval=True),
        Column("tries", "Attempts an append", interval=True), Column("append_median", "Median", "ms", interval=True),
        Column("transactions", "Snapshots by transactions"), Column("committed", "Acknowledged"),
        Column("names", "Names raced for"), Column("winners", "Winners"), Column("losers", "Got a conflict"),
        Column("others", "Refused or unknown"),
    )  # fmt: skip
    title = "One table that all users update, and one name that all create"
    return builder.table("catalog-contention", title, columns, rows, builder.runs, ALL_NOTES("catalog-contention"))


def _fairness(run: Run) -> Cell:
    chosen = (run.words("part") == metrics.HOT.parts[0]) & (run.words("outcome") == ACKED)
    if not chosen.any():
        return None
    counts = np.bincount(run.column("user")[chosen])
    return float(counts.min() / counts.max())


def _cost(builder: TableBuilder) -> Table:
    """Return table catalog-cost: CPU time and database work per request, by step."""
    rows: list[list[Cell]] = []
    for series in builder.run_set.select():
        for run in series.hot_runs[:1]:
            for step in run.record(CatalogRecord).steps:
                cpu = {name: 1000 * spent / step.requests for name, spent in step.cpu_s}
                counted = {name: value / step.requests for name, value in step.counted}
                rows.append([
                    series.title, users_of(series), step.name, step.requests,
                    sum(value for name, value in cpu.items() if metrics.is_asked(name) and name not in DATABASES),
                    next((value for name, value in cpu.items() if name in DATABASES), None), cpu.get("load generator"),
                    _statements(builder.measures, series, step.name), counted.get("write_transactions"),
                    counted.get("wal_bytes"), 1000 * step.elapsed_ns / 1e9 / step.requests,
                ])  # fmt: skip
    columns = (
        SYSTEM, USERS, Column("step", "Step"), Column("requests", "Requests"),
        Column("server_cpu", "CPU: server", "ms"),
        Column("database_cpu", "CPU: database", "ms"), Column("generator_cpu", "CPU: load generator", "ms"),
        Column("statements", "SQL statements"),
        Column("transactions", "Transactions that wrote"), Column("wal_bytes", "Log", "bytes"),
        Column("elapsed", "Time of the step", "ms"),
    )  # fmt: skip
    notes = NOTES("catalog-cost", counted_depth=COUNTED_DEPTH, counted_requests=COUNTED_REQUESTS)
    return builder.table("catalog-cost", "What a request costs, by step", columns, rows, builder.runs, notes)


def _statements(measures: Measures, series: Series, step: str) -> Cell:
    """Return the SQL statements of a request; None for a step whose statements are never counted."""
    if step not in metrics.STATEMENTS:
        return None
    try:
        return measures.hot(metrics.STATEMENTS[step], series).value
    except NotAvailable as absent:
        return MissingCell(str(absent))


def _durability(builder: TableBuilder) -> Table:
    """Return table catalog-durability: what each backend promises when it answers."""

    def column(key: str, title: str, value: Callable[[SystemPart], Cell]) -> ComputedColumn[Series]:
        return computed(key, title, lambda series: value(series.runs[0].manifest.system))

    columns = (
        table.SYSTEM_OF_SERIES, column("durability", "When a request is answered", lambda system: system.durability),
        column(
            "settings", "Read back from the backend",
            lambda system: ", ".join(f"{name} = {value}" for name, value in system.settings) or None,
        ),
        column("source", "Known from", lambda system: system.durability_source),
        column("notes", "Notes", lambda system: "; ".join(system.notes)),
    )  # fmt: skip
    notes = NOTES("catalog-durability")
    title, series = "What each backend promises", one_a_system(builder.run_set)
    return builder.computed_table("catalog-durability", title, columns, series, builder.runs, notes)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two series of one system and number of users, the nearest and the farthest from their database."""

    near: Series
    far: Series
    near_ms: int
    far_ms: int

    def round_trips(self, measures: Measures, quantity: Metric) -> BootstrapEstimate:
        """Return the growth in ms of `quantity`, a time in ms, per ms of additional round-trip time."""
        grown = measures.hot(quantity, self.far).difference(measures.hot(quantity, self.near))
        return grown.scaled(1 / (self.far_ms - self.near_ms))


def pairs(run_set: RunSet) -> Iterator[Pair]:
    """Yield a pair for each system, number of users and stack with two distances and all other options equal."""
    placed = []
    for series in run_set.select(harness=False):
        if series.hot_runs:
            system = series.hot_runs[0].manifest.system
            options = dict(system.options)
            if (rtt_ms := options.pop(RTT, None)) is not None:
                key = str((system.base, sorted(options.items()), users_of(series), series.stack))
                placed.append((key, rtt_ms, series))
    placed.sort(key=lambda each: each[:2])
    for _, group in groupby(placed, key=lambda each: each[0]):
        of_one = list(group)
        (_, near, first), (_, far, last) = of_one[0], of_one[-1]
        if far > near:
            yield Pair(first, last, near, far)


def _distance(builder: TableBuilder) -> Table:
    """Return table catalog-distance: the cost of the distance to the database, in time and round trips."""
    measures = builder.measures
    rows: list[list[Cell]] = []
    runs = []
    for pair in pairs(builder.run_set):
        runs += [*pair.near.runs, *pair.far.runs]
        for sort in (*metrics.CREATING, metrics.READ, metrics.UPDATE, metrics.HOT, metrics.APPENDED):
            row: list[Cell] = [pair.near.title, users_of(pair.near), sort.title, pair.near_ms, pair.far_ms]
            row += [attempt("ms", partial(measures.hot, sort.median, series)) for series in (pair.near, pair.far)]
            row.append(attempt("", partial(pair.round_trips, measures, sort.median)))
            rows.append([*row, _statements(measures, pair.near, sort.name)])
    if not rows:
        rows.append([*[None] * 7, MissingCell(f"no system over PostgreSQL was measured at two distances ({RTT})")])
    columns = (
        SYSTEM, USERS, Column("request", "Request"),
        Column("near_rtt", "Round trip, near", "ms"), Column("far_rtt", "Round trip, far", "ms"),
        Column("near", "Median, near", "ms", interval=True), Column("far", "Median, far", "ms", interval=True),
        Column("round_trips", "Round trips a request", interval=True), Column("statements", "SQL statements"),
    )  # fmt: skip
    notes = NOTES("catalog-distance")
    return builder.table("catalog-distance", "What the distance to the database costs", columns, rows, runs, notes)


def _crash(builder: TableBuilder) -> Table:
    """Return table catalog-crash: what exists after the kills of each server or database."""

    def of(row: Crashed) -> Series:
        return row.series if isinstance(row, metrics.Kills) else row[0]

    def killed(row: Crashed) -> Cell:
        return row.title if isinstance(row, metrics.Kills) else MissingCell(row[1])

    def column(key: str, title: str, value: Callable[[metrics.Kills], Cell], unit: str = "") -> ComputedColumn[Crashed]:
        return computed(key, title, lambda row: value(row) if isinstance(row, metrics.Kills) else None, unit)

    def total(key: str, title: str) -> ComputedColumn[Crashed]:
        return column(key, title, lambda kills: kills.total(key))

    def answered(kills: metrics.Kills) -> Cell:
        why = next((kill.said for kill in kills.each if kill.said), "")
        return median(kills.answered_s) if kills.answered_s else MissingCell(f"it never did: {why.splitlines()[0]}")

    columns: tuple[ComputedColumn[Crashed], ...] = (
        computed("system", SYSTEM.title, lambda row: of(row).title),
        computed("users", USERS.title, lambda row: users_of(of(row))),
        computed("killed", "Killed", killed), column("kills", "Kills", lambda kills: len(kills.each)),
        column("telling", "Of them while it took writes", lambda kills: kills.telling),
        column("in_flight", "Requests in flight, median", lambda kills: median(kill.in_flight for kill in kills.each)),
        total("acknowledged", "Acknowledged before"), total("unknown", "Unknown"),
        total("errors", "Unknown: an error, before the kill"), total("done", "Unknown: was done"),
        total("not_done", "Unknown: was not"), total("lost", "Lost"),
        column("lost_before", "Lost of the window before", lambda kills: kills.lost_of_window),
        column("with_loss", "Kills with a loss", lambda kills: kills.with_loss),
        column("answered", "Until it answered, median", answered, "s"),
        column("answered_most", "Until it answered, most", lambda kills: max(kills.answered_s, default=None), "s"),
        total("again", "Writes at once, then"), total("again_acked", "Of them acknowledged"),
        column("verdict", "Verdict", lambda kills: "holds" if kills.holds else "DOES NOT HOLD"),
        column("at_most", "Probability of a loss, below", lambda kills: kills.at_most),
    )  # fmt: skip
    notes = ALL_NOTES("catalog-crash")
    rows = list(metrics.crashes(builder.run_set))
    runs = [each.run for each in rows if isinstance(each, metrics.Kills)]
    return builder.computed_table("catalog-crash", "What is there after a kill", columns, rows, runs, notes)


def _churn(builder: TableBuilder) -> Table:
    """Return table catalog-churn: tables that users create, rename and drop while all of them are listed."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    asked = (*(sort.median for sort in metrics.CHURNING), metrics.CHURN.rate)
    for series in builder.run_set.select():
        for run in series.runs:
            churned = run.words("part") == "churn"
            if not churned.any():
                rows.append([*_row(series, run), MissingCell("it cannot rename or drop tables, or was not asked to")])
                continue
            runs.append(run)
            kind, outcome = (run.words(name)[churned] for name in ("kind", "outcome"))
            acked = [int((outcome[kind == f"{act} table"] == ACKED).sum()) for act in ("create", "rename", "drop")]
            counts = _counts(run, metrics.CHURN)
            rows.append([
                *_row(series, run), *acked, counts[CONFLICT], counts[UNKNOWN], counts[FAILED] + counts[CASCADED],
                int((kind == "list tables").sum()), int((run.column("doubled")[churned] > 0).sum()),
                run.record(CatalogRecord).oracle.undead if run.manifest.oracle.applicable else None,
                *_measured(builder, run, *asked),
            ])  # fmt: skip
    columns = (
        *OF_RUN, Column("created", "Created"),
        Column("renamed", "Renamed"), Column("dropped", "Dropped"), Column("conflicts", "Conflicts"),
        Column("unknown", "Unknown"), Column("refused", "Refused"), Column("listings", "Listings"),
        Column("twice", "Listings with a name twice"), Column("undead", "Dropped or renamed, and there"),
        Column("rename", "Rename: median", "ms", interval=True), Column("drop", "Drop: median", "ms", interval=True),
        Column("list", "List: median", "ms", interval=True), Column("rate", "Rate", "requests/s", interval=True),
    )  # fmt: skip
    return builder.table("catalog-churn", "Tables that come and go", columns, rows, runs, ALL_NOTES("catalog-churn"))


NOT_HERE = partial(table.not_here, name="catalog-not-here", title="What cannot run here, and why", module=__file__)
build = table.tables_by(_outcomes, _mixed, _contention, _cost, _durability, NOT_HERE, _distance, _crash, _churn)
