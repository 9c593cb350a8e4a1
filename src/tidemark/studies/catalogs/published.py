"""Published report: the values of its appendix (report.csv), and tables that compare them with Tidemark's and its text.

Its machine and software are printed in the report as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.publication import Publication, printed_number, printed_rows, the_row
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder, notes_of
from tidemark.runs.runset import Series
from tidemark.runs.views import all_hot_runs
from tidemark.studies.catalogs.metrics import CREATING, MIXES, RAMPED, Sort
from tidemark.studies.catalogs.record import ACKED, ALONE, users_of

NOTES = notes_of(__file__)

SEQUENTIAL, CONCURRENT = "sequential", "concurrent"
USERS = 50  # at most, in its concurrent series
RAMP_USERS = 17  # at most, creating namespaces: from its program (pingtimeout/polaris, 39582664), not from the report
RELATIONAL, DOCUMENT = "EclipseLink-PG", "Persistence-Mongo"
PUBLICATION = Publication.read(__file__)
SHOWN = (*CREATING, *MIXES[:4])  # rows of the report; its mixes were open loops
CASES = {
    "create": "Dataset creation", "create-ramp": "Dataset creation, a user more each second",
    "open-50": "50/50 RW workload", "open-99": "99/01 RW workload",
}  # fmt: skip
UNEQUAL = "Backends do not promise the same when a request is answered: see catalog-durability before comparing them."


@dataclass(frozen=True, slots=True)
class Printed:
    """Row of the appendix; times in milliseconds."""

    mode: str
    case: str
    system: str
    query: str
    requests: int
    succeeded: int
    failed: int
    mean_ms: float
    minimum_ms: float
    median_ms: float
    maximum_ms: float


def printed_users(query: str) -> int:
    """Return the largest number of users behind a creation in the concurrent series."""
    return RAMP_USERS if query == "Create Namespace" else USERS


@cache
def rows() -> tuple[Printed, ...]:
    """Return all rows, in the order of the appendix."""
    return printed_rows(Path(__file__).with_name("report.csv"), Printed)


def row(mode: str, case: str, system: str, query: str) -> Printed:
    """Return the row whose case begins with `case`. Raises KeyError if the appendix has none."""
    of_case = (each for each in rows() if each.case.startswith(case))
    return the_row(of_case, mode=mode, system=system, query=query)


def change(mode: str, case: str, query: str, what: str) -> BootstrapEstimate:
    """Return how much longer the report's new layer took than the old one, in percent; `what` is mean, median, ...

    The appendix prints whole milliseconds, so each number has an error of up to half a millisecond.
    """
    old, new = (
        rounded(getattr(row(mode, case, system, query), f"{what}_ms"), f"{name} {query}")
        for system, name in ((RELATIONAL, "old"), (DOCUMENT, "new"))
    )
    changed = new.ratio(old).linear()
    draws = None if changed.draws is None else 100 * (changed.draws - 1)
    return BootstrapEstimate(100 * (changed.value - 1), draws, 2, log=False)


def gain(query: str, users: int) -> BootstrapEstimate:
    """Return the new layer's rate with many users divided by that with one, by Little's law from the printed means."""
    alone, many = (
        rounded(row(mode, "Dataset", DOCUMENT, query).mean_ms, f"{mode} {query}") for mode in (SEQUENTIAL, CONCURRENT)
    )
    return alone.ratio(many).scaled(users)


def rounded(value: float, name: str) -> BootstrapEstimate:
    """Return a printed whole number with the uncertainty of its rounding."""
    if value <= 0:
        raise NotAvailable("the report gives no time for requests that failed")
    return printed_number(value, value - 0.5, value + 0.5, "printed", name, value)


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield tables catalog-sequential, catalog-concurrent, catalog-scaling and catalog-contradictions."""
    all_series = builder.run_set.select()
    users = sorted({users_of(series) for series in all_series})
    alone = [series for series in all_series if users_of(series) == ALONE]
    many = [series for series in all_series if users_of(series) == users[-1] and users[-1] > ALONE]
    yield _beside(builder, SEQUENTIAL, alone, "One request at a time")
    yield _beside(builder, CONCURRENT, many, f"Up to {users[-1]:,} users at once")
    yield _scaling(builder)
    yield _contradictions(builder)


def _beside(builder: TableBuilder, mode: str, chosen: list[Series], words: str) -> Table:
    """Return a table with the columns of the report's appendix, and p99 and requests/s of Tidemark's runs."""
    found: list[list[Cell]] = []
    for sort in (*SHOWN, RAMPED) if mode == CONCURRENT else SHOWN:
        found += [_ours(builder, series, sort) for series in chosen]
        case, query = CASES[sort.parts[0]], _query(sort)
        for each in rows():
            if (each.mode, each.case, each.query) == (mode, case, query):
                times: list[Cell] = [each.mean_ms, each.minimum_ms, each.median_ms, None, each.maximum_ms, None]
                if not each.succeeded:
                    times = [MissingCell("no request succeeded")] * 6
                counts: list[Cell] = [each.requests, each.succeeded, each.failed]
                found.append([case, query, f"{each.system} (the report's)", *counts, *times, None])
    columns = (
        Column("case", "Test case"), Column("query", "Query"), SYSTEM, Column("requests", "Requests"),
        Column("succeeded", "Succeeded"), Column("failed", "Failed"), Column("mean", "Mean", "ms", interval=True),
        Column("minimum", "Minimum", "ms", interval=True), Column("median", "Median", "ms", interval=True),
        Column("p99", "p99", "ms", interval=True), Column("maximum", "Maximum", "ms", interval=True),
        Column("rate", "Rate", "requests/s", interval=True), Column("generator", "Load generator's share", "%"),
    )  # fmt: skip
    title = f"{words}: response times, compared with the report's"
    notes = [*NOTES(f"catalog-{mode}"), UNEQUAL]
    return builder.table(f"catalog-{mode}", title, columns, found, all_hot_runs(chosen), notes)


def _query(sort: Sort) -> str:
    if sort is RAMPED:
        return "Create Namespace"
    return sort.name.title() if sort in CREATING else sort.name.split()[-1].capitalize()


def _ours(builder: TableBuilder, series: Series, sort: Sort) -> list[Cell]:
    try:
        outcomes = [run.words("outcome")[sort.of(run)] for run in series.hot_runs]
        whole, done = sum(map(len, outcomes)), sum(int((outcome == ACKED).sum()) for outcome in outcomes)
        counts: list[Cell] = [whole, done, whole - done]
    except NotAvailable as absent:
        counts = [MissingCell(str(absent))] * 3
    times = (sort.mean, sort.minimum, sort.median, sort.p99, sort.maximum)
    found = [attempt("ms", partial(builder.measures.hot, each, series)) for each in times]
    rate = attempt("requests/s", partial(builder.measures.hot, sort.rate, series))
    return [CASES[sort.parts[0]], _query(sort), series.title, *counts, *found, rate, _generator(builder, series, sort)]


def _generator(builder: TableBuilder, series: Series, sort: Sort) -> Cell:
    """Return the null server's median as a percentage of the median here."""
    null = next((each for each in builder.run_set.select(mode=series.mode) if each.is_null_baseline), None)
    if null is None or series.is_null_baseline:
        return None
    try:
        own, whole = (builder.measures.hot(sort.median, each).value for each in (null, series))
    except NotAvailable as absent:
        return MissingCell(str(absent))
    return 100 * own / whole


def _scaling(builder: TableBuilder) -> Table:
    """Return table catalog-scaling: requests per second by number of users, and the report's by Little's law."""
    found: list[list[Cell]] = []
    all_series = builder.run_set.select()
    measures = builder.measures
    alone = {series.system: series for series in all_series if users_of(series) == ALONE}
    for sort in CREATING:
        for series in all_series:
            rate = attempt("requests/s", partial(measures.hot, sort.rate, series))
            cells: list[Cell] = [sort.title, series.title, users_of(series), rate]
            first = alone.get(series.system)
            if first is not None and first is not series:
                both = (sort.rate, sort.mean)
                cells += [attempt("x", partial(measures.ratio, each, series, first)) for each in both]
            found.append(cells)
        theirs = f"{DOCUMENT} (the report's)"
        one, many = (row(mode, "Dataset", DOCUMENT, _query(sort)).mean_ms for mode in (SEQUENTIAL, CONCURRENT))
        users = printed_users(_query(sort))
        found.append([sort.title, theirs, ALONE, 1000 / one])
        found.append([sort.title, theirs, users, 1000 * users / many, users * one / many, many / one])
    columns = (
        Column("query", "Query"), SYSTEM, Column("users", "Users"), Column("rate", "Rate", "requests/s", interval=True),
        Column("gain", "Rate over that of one user", "x", interval=True),
        Column("slower", "Mean response over that of one user", "x", interval=True),
    )  # fmt: skip
    notes = [*NOTES("catalog-scaling"), UNEQUAL]
    title, runs = "How rates grow with the number of users", all_hot_runs(all_series)
    return builder.table("catalog-scaling", title, columns, found, runs, notes)


def _contradictions(builder: TableBuilder) -> Table:
    """Return table catalog-contradictions: the report's sentences compared with its own appendix."""
    found: list[list[Cell]] = []
    lines = (
        ('"Catalog creation was approximately 46% faster"', "Dataset", "Create Catalog"),
        ('"Namespace creation performance was equivalent"', "Dataset", "Create Namespace"),
        ('"Table creation was approximately 21% faster"', "Dataset", "Create Table"),
        ('"View creation was approximately 37% faster"', "Dataset", "Create View"),
        ('50/50: "read operations were approximately 13% slower"', "50/50", "Read"),
        ('50/50: "write operations were about 23% faster"', "50/50", "Write"),
        ('99/01: "read operations were approximately 13% slower"', "99/01", "Read"),
        ('99/01: "write operations were about 46% faster"', "99/01", "Write"),
    )
    for words, case, query in lines:
        measured = change(SEQUENTIAL, case, query, "mean").estimate("%")
        wrong = measured.is_above(0) and words.endswith('faster"')
        old, new = (row(SEQUENTIAL, case, system, query).mean_ms for system in (RELATIONAL, DOCUMENT))
        found.append([words, old, new, measured, "%", "contradicted: slower" if wrong else "as the appendix has it"])
    for query in ("Create Catalog", "Create Namespace", "Create Table", "Create View"):
        users = printed_users(query)
        by = " (by its program)" if users == RAMP_USERS else ""
        words = f'"a robust foundation for scaling": {query}, {users} users{by} against one'
        gained = gain(query, users).estimate("x")
        old, new = (row(mode, "Dataset", DOCUMENT, query).mean_ms for mode in (SEQUENTIAL, CONCURRENT))
        verdict = "contradicted: fewer a second than with one user" if gained.is_below(1) else "more a second"
        found.append([words, old, new, gained, "x", verdict])
    columns = (
        Column("sentence", "The report's text"), Column("before", "Mean before", "ms"),
        Column("after", "Mean after", "ms"),
        Column("computed", "Computed from its appendix", interval=True), Column("unit", "Unit"),
        Column("verdict", "Verdict"),
    )  # fmt: skip
    title = "The report's statements, compared with its own appendix"
    return builder.table("catalog-contradictions", title, columns, found, (), NOTES("catalog-contradictions"))
