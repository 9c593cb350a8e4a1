"""Tables that the report does not have: outcomes of requests, contention, mixes, costs, durability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent
from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.runs.runset import Series
from tidemark.runs.views import one_a_system
from tidemark.services.mariadb import MariaDB
from tidemark.services.postgres import Postgres
from tidemark.studies.catalogs.outcomes import ACKED, CASCADED, CONFLICT, FAILED, OUTCOMES, UNKNOWN, WRONG
from tidemark.studies.catalogs.quantities import (
    APPENDED,
    ATTEMPTS,
    HOT,
    MEDIAN,
    MIXES,
    P99,
    RACE,
    RATE,
    STATEMENTS,
    SUCCESS,
    TAIL,
    TRANSACTED,
    TRIES,
    is_asked,
)
from tidemark.studies.catalogs.settings import COUNTED_DEPTH, COUNTED_REQUESTS, users_of
from tidemark.studies.catalogs.tables.published import UNEQUAL

DATABASES = (Postgres.name, MariaDB.name)  # databases that are separate servers
USERS = Column("users", "Users")
COUNTS = {
    ACKED: "Succeeded", CONFLICT: "Conflict (409)", FAILED: "Refused", UNKNOWN: "Unknown", CASCADED: "Cascaded",
}  # fmt: skip
NOT_HERE = (
    ("Apache Polaris", "measured where services.polaris_path or polaris_address names one: it is in no registry"),
    ("Apache Polaris with EclipseLink (the report's old layer)", "in no registry; removed from the sources since"),
    ("Apache Polaris with MongoDB (the report's new layer)", "a pull request; in no registry"),
    ("MongoDB", "no registry has the server"),
    ("Views in PyIceberg's SQL catalog", "it keeps none: what asks for them is not implemented"),
    ("Creation of catalogs", "no server that is started here creates a catalog by a request; Polaris does"),
)


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield tables catalog-outcomes, -mixed, -contention, -cost, -durability and -not-here."""
    yield _outcomes(workshop)
    yield _mixed(workshop)
    yield _contention(workshop)
    yield _cost(workshop)
    yield _durability(workshop)
    yield _not_here(workshop)


def _runs(all_series: Sequence[Series]) -> list[Run]:
    return [run for series in all_series for run in series.runs]


def _counts(run: Run, parts: Sequence[str] = ()) -> dict[str, int]:
    outcome = run.words("outcome")
    if parts:
        outcome = outcome[np.isin(run.words("part"), parts)]
    return {name: int((outcome == name).sum()) for name in OUTCOMES}


def _outcomes(workshop: Workshop) -> Table:
    """Return table catalog-outcomes: the outcomes of each run's requests, and its oracle's findings."""
    rows: list[list[Cell]] = []
    all_series = workshop.run_set.select()
    for series in all_series:
        for run in series.runs:
            counts = _counts(run)
            found: dict[str, Any] = dict(run.manifest.found)
            oracle = found["oracle"]
            share = attempt("", partial(workshop.measures.of_run, SUCCESS["creation"], run))
            told = [oracle.get(name) for name in WRONG]
            known: list[Cell] = [oracle.get("resolved_done"), oracle.get("resolved_not")]
            holds = "keeps nothing" if not run.manifest.oracle.applicable else (
                "holds" if run.manifest.oracle.verdict else "DOES NOT HOLD")  # fmt: skip
            row: list[Cell] = [series.title, users_of(series.mode), run.number, run.state]
            rows.append([*row, *counts.values(), *known, share, holds, *told, found["in_flight"]])
        if not series.runs:
            rows.append([series.title, users_of(series.mode), None, Missing(series.missing()), *[None] * 17])
    columns = (
        SYSTEM, USERS, Column("run", "Run"), Column("state", "State"),
        *(Column(name, COUNTS[name]) for name in OUTCOMES),
        Column("resolved_done", "Unknown: was done"), Column("resolved_not", "Unknown: was not"),
        Column("success", "Creations that succeeded", interval=True), Column("oracle", "Oracle"),
        Column("lost", "Lost"),
        Column("lost_updates", "Lost updates"), Column("undead", "Dropped, and there"),
        Column("phantom", "Phantom"), Column("doubled", "Doubled"),
        Column("wrong", "Wrong"), Column("torn", "Torn"), Column("in_flight", "In flight, at most"),
    )  # fmt: skip
    notes = [
        "A conflict is an answer: the update or the creation of a name that another user has was not done. "
        "Cascaded: refused because a parent does not exist, the consequence of another failure. Unknown: no answer, "
        "or the server's own failure (5xx); what was read back afterwards shows whether it was done. All parts of a "
        "window are counted; requests until a kill are in catalog-crash.",
        "The oracle reads everything back through another client. Lost: answered with success, and not there.",
    ]
    title = "Final status of the requests, and what exists afterwards"
    return workshop.table("catalog-outcomes", title, columns, rows, _runs(all_series), notes)


def _mixed(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    all_series = workshop.run_set.select()
    measures = workshop.measures
    for series in all_series:
        for sort in MIXES:
            for run in series.runs:
                row: list[Cell] = [sort.title, series.title, users_of(series.mode), run.number, run.state]
                asked = (MEDIAN[sort.name], P99[sort.name], TAIL[sort.name], RATE[sort.name])
                found = [attempt(quantity.unit, partial(measures.of_run, quantity, run)) for quantity in asked]
                rows.append([*row, *found, _late(run, sort.parts)])
    columns = (
        Column("mix", "Mix"), SYSTEM, USERS, Column("run", "Run"), Column("state", "State"),
        Column("median", "Median", "ms", interval=True), Column("p99", "p99", "ms", interval=True),
        Column("tail", "p99 / median", interval=True), Column("rate", "Rate", "requests/s", interval=True),
        Column("late", "Median lateness", "ms"),
    )  # fmt: skip
    notes = [
        "Open loop: requests arrive by themselves, as a Poisson process; times count from when each was due, "
        "whether or not one of the 50 places was free. Lateness: from when it was due to when it was sent. Closed "
        "loop: each user sends the next request when the last was answered.",
        UNEQUAL,
    ]
    return workshop.table("catalog-mixed", "Mixes of reads and writes", columns, rows, _runs(all_series), notes)


def _late(run: Run, parts: Sequence[str]) -> Cell:
    chosen = np.isin(run.words("part"), parts)
    if not chosen.any() or not parts[0].startswith("open"):
        return None
    return float(np.median(run.column("late_ns")[chosen])) / 1e6


def _contention(workshop: Workshop) -> Table:
    """Return table catalog-contention: all users update one table, and all create one name, which one may get."""
    rows: list[list[Cell]] = []
    all_series = workshop.run_set.select()
    measures = workshop.measures
    for series in all_series:
        for run in series.runs:
            hot, race = _counts(run, HOT.parts), _counts(run, RACE.parts)
            asked = sum(race.values())
            names = asked // users_of(series.mode)
            row: list[Cell] = [series.title, users_of(series.mode), run.number, run.state]
            row += [sum(hot.values()), hot[ACKED], hot[CONFLICT], hot[FAILED] + hot[UNKNOWN]]
            for_hot = (RATE[HOT.name], ATTEMPTS, MEDIAN[HOT.name])
            row += [attempt(quantity.unit, partial(measures.of_run, quantity, run)) for quantity in for_hot]
            appended = _counts(run, APPENDED.parts)
            row.append(_fairness(run))
            row += [sum(appended.values()), appended[ACKED], appended[CONFLICT]]
            for_append = (RATE[APPENDED.name], TRIES, MEDIAN[APPENDED.name])
            row += [attempt(quantity.unit, partial(measures.of_run, quantity, run)) for quantity in for_append]
            committed = _counts(run, TRANSACTED.parts)
            row += [sum(committed.values()) or None, committed[ACKED] if sum(committed.values()) else None]
            rows.append([*row, names, race[ACKED], race[CONFLICT], race[FAILED] + race[UNKNOWN]])
    columns = (
        SYSTEM, USERS, Column("run", "Run"), Column("state", "State"), Column("updates", "Updates of one table"),
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
    notes = [
        "Updates carry no requirement and each its own property: the server itself retries those that another one "
        "overtook (the reference server four times) before it answers 409; the client does not. An append reads the "
        "table and adds a snapshot on the condition that no other user did since, and starts again if one did: its "
        "time has all of that. By transactions: the same through the endpoint for changes of several tables, where the "
        "part append-transaction is asked for; acknowledged ones that do not exist afterwards are lost updates in "
        "catalog-outcomes. Of each name, one creation may win.",
        UNEQUAL,
    ]
    title = "One table that all users update, and one name that all create"
    return workshop.table("catalog-contention", title, columns, rows, _runs(all_series), notes)


def _fairness(run: Run) -> Cell:
    chosen = (run.words("part") == HOT.parts[0]) & (run.words("outcome") == ACKED)
    if not chosen.any():
        return None
    counts = np.bincount(run.column("user")[chosen])
    return float(counts.min() / counts.max())


def _cost(workshop: Workshop) -> Table:
    """Return table catalog-cost: CPU time and database work per request, by step."""
    rows: list[list[Cell]] = []
    all_series = workshop.run_set.select()
    for series in all_series:
        for run in series.hot_runs[:1]:
            found: dict[str, Any] = dict(run.manifest.found)
            for step in found["steps"]:
                count = step["requests"]
                cpu = {name: 1000 * spent / count for name, spent in step["cpu_s"].items()}
                database = next((value for name, value in cpu.items() if name in DATABASES), None)
                server = [value for name, value in cpu.items() if is_asked(name) and name not in DATABASES]
                counted = step["counted"]
                row: list[Cell] = [series.title, users_of(series.mode), step["name"], count]
                row += [sum(server), database, cpu.get("load generator")]
                row.append(statements(workshop.measures, series, step["name"]))
                row += [_each(counted.get(name), count) for name in ("write_transactions", "wal_bytes")]
                rows.append([*row, 1000 * step["elapsed_ns"] / 1e9 / count])
    columns = (
        SYSTEM, USERS, Column("step", "Step"), Column("requests", "Requests"),
        Column("server_cpu", "CPU: server", "ms"),
        Column("database_cpu", "CPU: database", "ms"), Column("generator_cpu", "CPU: load generator", "ms"),
        Column("statements", "SQL statements"),
        Column("transactions", "Transactions that wrote"), Column("wal_bytes", "Log", "bytes"),
        Column("elapsed", "Time of the step", "ms"),
    )  # fmt: skip
    notes = [
        "First hot run; all but the number of requests is for each request. Processor times are counted in "
        "hundredths of a second, the programs that a server started and that have ended among them. An embedded "
        "database is in the server's, and in the load generator's where there is no server: its users are the clients.",
        "SQL statements are those that the database counted as ended, BEGIN and COMMIT among them and failed ones not. "
        "PostgreSQL (pg_stat_statements) takes time to count, and does so after the last window alone: it is "
        f"restarted, and a tree of {COUNTED_DEPTH} levels is created, read and updated by as many users, "
        f"{COUNTED_REQUESTS} updates of one table and as many appends to one among it. MariaDB counts in the "
        "windows, as it always does.",
    ]
    return workshop.table("catalog-cost", "What a request costs, by step", columns, rows, _runs(all_series), notes)


def statements(measures: Measures, series: Series, step: str) -> Cell:
    if step not in STATEMENTS:
        return None
    try:
        return measures.hot(STATEMENTS[step], series).value
    except Absent as absent:
        return Missing(str(absent))


def _each(value: float | None, count: int) -> Cell:
    return None if value is None else value / count


def _durability(workshop: Workshop) -> Table:
    rows: list[list[Cell]] = []
    all_series = workshop.run_set.select()
    for series in one_a_system(workshop.run_set):
        system = series.runs[0].manifest.system
        read_back = ", ".join(f"{name} = {value}" for name, value in system.settings) or None
        rows.append([series.title, system.durability, read_back, system.durability_source, "; ".join(system.notes)])
    columns = (
        SYSTEM, Column("durability", "When a request is answered"), Column("settings", "Read back from the backend"),
        Column("source", "Known from"), Column("notes", "Notes"),
    )  # fmt: skip
    notes = ["Rates of backends that promise different things are no ranking of them."]
    return workshop.table("catalog-durability", "What each backend promises", columns, rows, _runs(all_series), notes)


def _not_here(workshop: Workshop) -> Table:
    columns = (Column("what", "What"), Column("reason", "Why it is not measured"))
    rows = [list(pair) for pair in NOT_HERE]
    return workshop.table("catalog-not-here", "What cannot run here, and why", columns, rows, ())
