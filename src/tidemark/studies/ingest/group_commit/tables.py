"""Table ingest-group: each shape of requests under each policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from tidemark.analysis.formatting import Cell, MissingCell, attempt
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.gateway.policies import DIRECT, POLICIES
from tidemark.studies.ingest.metrics import (
    COMMITS,
    ERRORS,
    P50,
    P99,
    P999,
    REQUESTS,
    REQUESTS_A_COMMIT,
    REQUESTS_A_FILE,
    ROWS,
)
from tidemark.studies.ingest.part import NEAR, UNEQUAL, VERDICT, column_of, hot_cell, of_part, verdict_of
from tidemark.studies.ingest.settings import GROUP, GroupSettings

MEASURED = (ROWS, REQUESTS, COMMITS, P50, P99, P999, ERRORS, REQUESTS_A_COMMIT, REQUESTS_A_FILE)

TITLES = {
    P50: "Request: median",
    P99: "Request: p99",
    P999: "Request: p99.9",
    ERRORS: "Requests that ended in an error",
}


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-group."""
    all_series = in_order(builder.run_set)
    rows: list[list[Cell]] = []
    for series in all_series:
        given = GroupSettings.of(series)
        policy = given.policy
        direct = of_shape(all_series, series, DIRECT) if policy != DIRECT else None
        over = [
            attempt("x", partial(builder.measures.ratio, quantity, series, direct)) if direct and series.runs else None
            for quantity in (ROWS, P99)
        ]
        share = null_share(builder.measures, all_series, series)
        is_near = not isinstance(share, float) or share > NEAR
        rows.append([
            series.title, f"{given.rows:,} x {given.clients}", policy, verdict_of(series),
            *(hot_cell(builder, quantity, series) for quantity in MEASURED), *over, share,
            None if share is None or isinstance(share, MissingCell) else "harness-bound" if is_near else "no",
        ])  # fmt: skip
    columns = (
        SYSTEM, Column("shape", "Rows a request x clients"), Column("policy", "Policy"), VERDICT,
        *(replace(column_of(quantity), title=TITLES.get(quantity, quantity.title)) for quantity in MEASURED),
        Column("rows_over_direct", "Rows over direct", "x", interval=True),
        Column("p99_over_direct", "p99 over direct", "x", interval=True),
        Column("null_share", "Of the null system's requests", "%"), Column("bound", "Bound by the load generator"),
    )  # fmt: skip
    notes = [
        "Hot runs, closed loop: a client sends its next request when the last is answered. direct: each request is a "
        "commit, by as many clients of the table as there are clients, at most as many as the section sets. staged: a "
        "buffer is one file and one commit, once it has 8,000 rows, 16 MiB, or a request that is 50 ms old, unless "
        "the section sets others. bundled: several buffers' files are one commit.",
        "The times are those of requests, from the client's sending to the answer, which comes after the commit that "
        "holds the request. Delta's files that are committed together have counts of rows in the log, and no other "
        "statistics.",
        f"The null system commits nothing: its requests without gathering are what clients and front can do. Above "
        f"{NEAR:g} % of them, a rate is in part that of the load generator. Its rows under the other policies are "
        "what their timers leave.",
        UNEQUAL,
    ]
    runs = [run for series in all_series for run in series.hot_runs]
    title = "Requests of many clients, committed one by one or gathered"
    yield builder.table("ingest-group", title, columns, rows, runs, notes)


def in_order(run_set: RunSet) -> list[Series]:
    """Return the series of the part by shape, then by system, then by policy."""
    policies = list(POLICIES)
    found = list(of_part(run_set, GROUP).select())
    systems = list(dict.fromkeys(each.system for each in found))

    def place(series: Series) -> tuple[int, int, int, int]:
        given = GroupSettings.of(series)
        return -given.rows, given.clients, systems.index(series.system), policies.index(given.policy)

    return sorted(found, key=place)


def shape(series: Series) -> tuple[int, int]:
    """Return rows per request and number of clients."""
    given = GroupSettings.of(series)
    return given.rows, given.clients


def of_shape(all_series: list[Series], series: Series, policy: str) -> Series | None:
    """Return the series of the same system and shape under `policy`, or None."""
    own = [each for each in all_series if each.system == series.system and GroupSettings.of(each).policy == policy]
    return next((each for each in own if shape(each) == shape(series)), None)


def null_share(measures: Measures, all_series: list[Series], series: Series) -> Cell:
    """Return requests per second in percent of the null system's with one commit per request; None if not available."""
    nulls = [each for each in all_series if each.is_null_baseline and GroupSettings.of(each).policy == DIRECT]
    null = next((each for each in nulls if shape(each) == shape(series)), None)
    if null is None or series.is_null_baseline or not series.runs:
        return None
    try:
        own, most = (measures.hot(REQUESTS, each).value for each in (series, null))
    except NotAvailable as absent:
        return MissingCell(str(absent))
    return 100 * own / most


def gains(measures: Measures, policy: str) -> list[tuple[Series, Estimate, Estimate | None]]:
    """Return each series under `policy` with rows/s and p99 over the direct ones; p99 is None with too few requests."""
    all_series = in_order(measures.run_set)
    found = []
    for series in all_series:
        direct = of_shape(all_series, series, DIRECT)
        if GroupSettings.of(series).policy == policy and not series.is_null_baseline:
            rate, tail = (attempt("x", partial(measures.ratio, quantity, series, direct)) for quantity in (ROWS, P99))
            if isinstance(rate, Estimate):
                found.append((series, rate, tail if isinstance(tail, Estimate) else None))
    return found
