"""The report's two tables next to Tidemark's values, rates by number of users, and the report's contradictions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.measures import Absent
from tidemark.analysis.words import Cell, Missing, attempt
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.runset import Series
from tidemark.studies.catalogs import published
from tidemark.studies.catalogs.measures import CatalogEvidence, printed_change, printed_gain
from tidemark.studies.catalogs.outcomes import ACKED
from tidemark.studies.catalogs.quantities import (
    CREATING,
    MAXIMUM,
    MEAN,
    MEDIAN,
    MINIMUM,
    MIXES,
    P99,
    RAMPED,
    RATE,
    Sort,
)
from tidemark.studies.catalogs.settings import ALONE, users_of

SHOWN = (*CREATING, *MIXES[:4])  # rows of the report; its mixes were open loops
CASES = {
    "create": "Dataset creation", "create-ramp": "Dataset creation, a user more each second",
    "open-50": "50/50 RW workload", "open-99": "99/01 RW workload",
}  # fmt: skip
TIMES = (MEAN, MINIMUM, MEDIAN, P99, MAXIMUM)
UNEQUAL = "Backends do not promise the same when a request is answered: see catalog-durability before comparing them."


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield tables catalog-sequential, catalog-concurrent, catalog-scaling and catalog-contradictions."""
    all_series = workshop.run_set.select()
    users = sorted({users_of(series.mode) for series in all_series})
    alone = [series for series in all_series if users_of(series.mode) == ALONE]
    many = [series for series in all_series if users_of(series.mode) == users[-1] and users[-1] > ALONE]
    yield _beside(workshop, published.SEQUENTIAL, alone, "One request at a time")
    yield _beside(workshop, published.CONCURRENT, many, f"Up to {users[-1]:,} users at once")
    yield _scaling(workshop)
    yield _contradictions(workshop)


def _beside(workshop: Workshop, mode: str, chosen: list[Series], words: str) -> Table:
    """Return a table with the columns of the report's appendix, and p99 and requests/s of Tidemark's runs."""
    rows: list[list[Cell]] = []
    for sort in (*SHOWN, RAMPED) if mode == published.CONCURRENT else SHOWN:
        rows += [_ours(workshop, series, sort) for series in chosen]
        case, query = CASES[sort.parts[0]], _query(sort)
        for each in published.rows():
            if (each.mode, each.case, each.query) == (mode, case, query):
                times: list[Cell] = [each.mean_ms, each.minimum_ms, each.median_ms, None, each.maximum_ms, None]
                counts: list[Cell] = [each.requests, each.succeeded, each.failed]
                gone: list[Cell] = [Missing("no request succeeded")] * 6
                rows.append(
                    [case, query, f"{each.system} (the report's)", *counts, *(times if each.succeeded else gone), None]
                )
    columns = (
        Column("case", "Test case"), Column("query", "Query"), SYSTEM, Column("requests", "Requests"),
        Column("succeeded", "Succeeded"), Column("failed", "Failed"), Column("mean", "Mean", "ms", interval=True),
        Column("minimum", "Minimum", "ms", interval=True), Column("median", "Median", "ms", interval=True),
        Column("p99", "p99", "ms", interval=True), Column("maximum", "Maximum", "ms", interval=True),
        Column("rate", "Rate", "requests/s", interval=True), Column("generator", "Load generator's share", "%"),
    )  # fmt: skip
    notes = [
        "Hot runs; times of requests that succeeded. Mixes are open loops: times count from when a request was due. "
        "The report's rows are another machine's, and of programs that cannot be had; its requests are not ours in "
        "number. It created namespaces as the row with a user more each second does: the first user alone, no child "
        "waits for its parent, and what the server fails at (500) is tried again at most five times.",
        "The load generator's share: the median of a server that answers at once, by the median here. Above 5 % a time "
        "is in part the load generator's.",
        UNEQUAL,
    ]
    runs = [run for series in chosen for run in series.hot_runs]
    return workshop.table(
        f"catalog-{mode}", f"{words}: response times, compared with the report's", columns, rows, runs, notes
    )


def _query(sort: Sort) -> str:
    if sort is RAMPED:
        return "Create Namespace"
    return sort.name.title() if sort in CREATING else sort.name.split()[-1].capitalize()


def _ours(workshop: Workshop, series: Series, sort: Sort) -> list[Cell]:
    counts: list[Cell] = [None, None, None]
    try:
        outcomes = [run.words("outcome")[sort.of(run)] for run in series.hot_runs]
        whole, done = (sum(int(each) for each in found) for found in (map(len, outcomes), (
            (outcome == ACKED).sum() for outcome in outcomes)))  # fmt: skip
        counts = [whole, done, whole - done]
    except Absent as absent:
        counts = [Missing(str(absent))] * 3
    found = [attempt("ms", partial(workshop.measures.hot, times[sort.name], series)) for times in TIMES]
    rate = attempt("requests/s", partial(workshop.measures.hot, RATE[sort.name], series))
    return [CASES[sort.parts[0]], _query(sort), series.title, *counts, *found, rate, _generator(workshop, series, sort)]


def _generator(workshop: Workshop, series: Series, sort: Sort) -> Cell:
    """Return the null server's median as a percentage of the median here."""
    null = next((each for each in workshop.run_set.select(mode=series.mode) if each.is_harness), None)
    if null is None or series.is_harness:
        return None
    try:
        own, whole = (workshop.measures.hot(MEDIAN[sort.name], each).value for each in (null, series))
    except Absent as absent:
        return Missing(str(absent))
    return 100 * own / whole


def _scaling(workshop: Workshop) -> Table:
    """Return table catalog-scaling: requests per second by number of users, and the report's by Little's law."""
    rows: list[list[Cell]] = []
    all_series = workshop.run_set.select()
    runs = [run for series in all_series for run in series.hot_runs]
    alone = {series.system: series for series in all_series if users_of(series.mode) == ALONE}
    for sort in CREATING:
        for series in all_series:
            hot = partial(workshop.measures.hot, RATE[sort.name], series)
            row: list[Cell] = [sort.title, series.title, users_of(series.mode), attempt("requests/s", hot)]
            first = alone.get(series.system)
            for quantity in (RATE[sort.name], MEAN[sort.name]):
                if first is None or first is series:
                    row.append(None)
                else:
                    row.append(attempt("x", partial(workshop.measures.ratio, quantity, series, first)))
            rows.append(row)
        theirs = f"{published.DOCUMENT} (the report's)"
        one, many = (
            published.row(mode, "Dataset", published.DOCUMENT, _query(sort)).mean_ms
            for mode in (published.SEQUENTIAL, published.CONCURRENT)
        )
        users = published.users_of(_query(sort))
        rows.append([sort.title, theirs, ALONE, 1000 / one, None, None])
        rows.append([sort.title, theirs, users, 1000 * users / many, users * one / many, many / one])
    columns = (
        Column("query", "Query"), SYSTEM, Column("users", "Users"), Column("rate", "Rate", "requests/s", interval=True),
        Column("gain", "Rate over that of one user", "x", interval=True),
        Column("slower", "Mean response over that of one user", "x", interval=True),
    )  # fmt: skip
    notes = [
        "Hot runs. The report gives no rates: its are users by the mean response (Little's law). Namespaces were "
        "created with at most 17 users at once by its program (pingtimeout/polaris, 39582664), not by its text.",
        UNEQUAL,
    ]
    return workshop.table("catalog-scaling", "How rates grow with the number of users", columns, rows, runs, notes)


def _contradictions(workshop: Workshop) -> Table:
    """Return table catalog-contradictions: the report's sentences compared with its own appendix."""
    evidence = CatalogEvidence(workshop.measures)
    rows: list[list[Cell]] = []
    said = (
        ('"Catalog creation was approximately 46% faster"', "Dataset", "Create Catalog"),
        ('"Namespace creation performance was equivalent"', "Dataset", "Create Namespace"),
        ('"Table creation was approximately 21% faster"', "Dataset", "Create Table"),
        ('"View creation was approximately 37% faster"', "Dataset", "Create View"),
        ('50/50: "read operations were approximately 13% slower"', "50/50", "Read"),
        ('50/50: "write operations were about 23% faster"', "50/50", "Write"),
        ('99/01: "read operations were approximately 13% slower"', "99/01", "Read"),
        ('99/01: "write operations were about 46% faster"', "99/01", "Write"),
    )
    for words, case, query in said:
        measured = printed_change(evidence, published.SEQUENTIAL, case, query, "mean")[0].estimate("%")
        wrong = measured.is_above(0) and words.endswith('faster"')
        old, new = (
            published.row(published.SEQUENTIAL, case, system, query).mean_ms
            for system in (published.RELATIONAL, published.DOCUMENT)
        )
        verdict = "contradicted: slower" if wrong else "as the appendix has it"
        rows.append([words, old, new, measured, "%", verdict])
    for query in ("Create Catalog", "Create Namespace", "Create Table", "Create View"):
        users = published.users_of(query)
        by = " (by its program)" if users == published.RAMP_USERS else ""
        gain = printed_gain(evidence, query, users)[0].estimate("x")
        old, new = (
            published.row(mode, "Dataset", published.DOCUMENT, query).mean_ms
            for mode in (published.SEQUENTIAL, published.CONCURRENT)
        )
        verdict = "contradicted: fewer a second than with one user" if gain.is_below(1) else "more a second"
        rows.append(
            [f'"a robust foundation for scaling": {query}, {users} users{by} against one', old, new, gain, "x", verdict]
        )
    columns = (
        Column("sentence", "The report's text"), Column("before", "Mean before", "ms"),
        Column("after", "Mean after", "ms"),
        Column("computed", "Computed from its appendix", interval=True), Column("unit", "Unit"),
        Column("verdict", "Verdict"),
    )  # fmt: skip
    notes = [
        "Before and after: the old layer and the new one; for scaling, one user and many, of the new layer. "
        "Intervals are those of rounding to whole milliseconds."
    ]
    return workshop.table(
        "catalog-contradictions", "The report's statements, compared with its own appendix", columns, rows, (), notes
    )
