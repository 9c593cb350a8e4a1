"""Tables of kyma's cells next to Tidemark's, of its page's contradictions, and of what is not measured here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from tidemark.analysis.formatting import Cell, attempt, estimate_text, number
from tidemark.analysis.measures import Measures
from tidemark.analysis.statistics import Estimate
from tidemark.results.claims.claim_data import ClaimData
from tidemark.results.tables.table import Column, Table, TableBuilder, not_here, notes_of
from tidemark.studies.ingest import published
from tidemark.studies.ingest.claims import (
    printed_files_twice,
    printed_gap,
    printed_kills,
    printed_objects,
    printed_outstanding,
    printed_over,
    printed_rates,
    printed_requests_a_file,
)
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, DIRECT, STAGED
from tidemark.studies.ingest.load.records import ACKED
from tidemark.studies.ingest.metrics import COMMITS, P99, REQUESTS, REQUESTS_A_FILE, ROWS, outcomes
from tidemark.studies.ingest.settings import ONE, GroupSettings, WritersSettings
from tidemark.studies.ingest.tables.requests import gathered_series
from tidemark.studies.ingest.tables.writers import hot_column, in_order

NOTES = notes_of(__file__)


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables ingest-kyma, ingest-contradictions and ingest-not-here."""
    yield _cells(builder)
    yield _contradictions(builder)
    yield not_here(builder, "ingest-not-here", "What is not measured, and why", __file__)


def _cells(builder: TableBuilder) -> Table:
    """Return the table of each printed cell with the values derived from it, followed by Tidemark's series."""
    rows: list[list[Cell]] = []
    for each in published.cells():
        row: list[Cell] = [f"kyma ({each.policy}), table {each.table}", each.rows, each.workers, each.rows_per_s]
        printed = each.files if each.least_files is None else f"at least {each.least_files:,}"
        row += [each.requests_per_s, each.p99_ms, printed, each.requests_per_file, each.errors]
        rows.append(row)
    runs = []
    batch = dict(builder.run_set.config.values).get("rows")
    for series in in_order(builder):
        own = WritersSettings.of(series)
        if own.tables == ONE and series.runs:
            found = [hot_column(builder, quantity).cell(series) for quantity in (ROWS, COMMITS, P99)]
            rows.append([series.title, batch, own.writers, *found])
            runs += list(series.hot_runs)
    for series in gathered_series(builder.run_set):
        if series.runs and not series.is_null_baseline:
            given = GroupSettings.of(series)
            gathered = [hot_column(builder, quantity).cell(series) for quantity in (ROWS, REQUESTS, P99)]
            files = attempt("", partial(builder.measures.hot, REQUESTS_A_FILE, series))
            each_file = files.value if isinstance(files, Estimate) else files
            errors = int(sum((~np.isin(outcomes(run), (ACKED,))).sum() for run in series.hot_runs))
            rows.append(
                [f"{series.title} ({given.policy})", given.rows, given.clients, *gathered, None, each_file, errors]
            )
            runs += list(series.hot_runs)
    columns = (
        Column("system", "System"), Column("rows", "Rows a request"), Column("clients", "Clients"),
        Column("rate", "Rows", "rows/s", interval=True), Column("requests", "Requests", "requests/s", interval=True),
        Column("p99", "p99", "ms", interval=True), Column("files", "Files"), Column("per_file", "Requests a file"),
        Column("errors", "Errors"),
    )  # fmt: skip
    return builder.table("ingest-kyma", "kyma's cells, and ours", columns, rows, runs, NOTES("ingest-kyma"))


def _contradictions(builder: TableBuilder) -> Table:
    """Return the table of the page's sentences next to values computed from its own numbers."""
    claim_data = ClaimData(builder.measures)
    requests = partial(printed_requests_a_file, claim_data)
    lines = (
        ('"Concurrent uploads saturate MinIO at ~16-32 parallel on loopback"',
         "most over fewest requests a second, from 8 to 64 workers",
         "eightfold clients bring hardly more requests: the load generator may be what is saturated",
         printed_rates(claim_data)),
        ('"The new bottleneck is MinIO-PUT parallelism"',
         "objects a second, 500 x 32 with the coordinator over 500 x 8 without",
         "a fraction of what the store took before cannot saturate it", printed_objects(claim_data)),
        ('"flush when buffer reaches N rows" (8000)', "rows that 8 workers x 500 can have waiting, over 8,000",
         "it never fills: each flush waits for its timer", printed_outstanding(claim_data, 8, 500)),
        ('"41× fewer extents" (500 x 16)', "requests a file, over 16 workers with one request each",
         "above 1 cannot be: files were merged before they were counted", requests(2, STAGED, 500, 16, by=16)),
        ('"55× fewer extents" (50 x 32)', "requests a file, over 32 workers with one request each",
         "above 1 cannot be", requests(3, BUNDLED, 50, 32, by=32)),
        ('"33 extents", "160 extents" (500 x 16, staging)', "files by its third table over those by its second",
         "one cell, two numbers", printed_files_twice(claim_data)),
        ('"each extent now carries ~50 rows from ~50 ingest requests"', "rows a file, over 50",
         "a request has 50 rows", requests(3, BUNDLED, 50, 32)),
        ('"20× fewer" extents (100 x 64)', "requests a file", "by its own numbers more than that",
         requests(3, BUNDLED, 100, 64)),
        ('Crash durability "100% (2 hard kills tested)"', "share of kills that lose something, after 2 that did not",
         "two kills say next to nothing, and nothing was being written", printed_kills(claim_data)),
        ('"~10× behind on raw ingest throughput"', "500,000 to 1,000,000 rows/s over 66,450",
         "as its numbers have it", printed_gap(claim_data)),
        ('"in the same ballpark on ingest" as Loki', "66,450 rows/s over 500,000 lines/s, Loki's least",
         "an eighth; the page says that Loki parses lines for its number", printed_over(claim_data, 500_000)),
        ('"One extent per HTTP request"', "requests a file, 500 x 8 direct", "as its numbers have it",
         requests(2, DIRECT, 500, 8)),
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [words, computed, found.estimate(unit), unit, meaning] for words, computed, meaning, (found, unit) in lines
    ]
    rows.append([
        '"207 conflicts retried correctly under 100-way contention"',
        "requests under way at once, by its script test-a-two-nodes.sh: the page does not say it",
        published.TWO_NODES_AT_ONCE, "",
        f"{published.TWO_NODES_CONFLICTS / published.TWO_NODES_REQUESTS:g} conflicts a request among "
        f"{published.TWO_NODES_AT_ONCE}, not among {published.TWO_NODES_REQUESTS}",
    ])  # fmt: skip
    columns = (
        Column("sentence", "The page"), Column("computed", "Computed from its numbers"),
        Column("value", "Value", interval=True), Column("unit", "Unit"), Column("meaning", "What follows"),
    )  # fmt: skip
    title = "The page's statements, compared with its own numbers"
    return builder.table("ingest-contradictions", title, columns, rows, (), NOTES("ingest-contradictions"))


def mistakes(measures: Measures) -> str:
    """Return the sentence on contradictions between the page's text and its own numbers."""
    claim_data = ClaimData(measures)
    rates, objects, kills = (
        each(claim_data)[0].estimate(unit)
        for each, unit in ((printed_rates, "x"), (printed_objects, "x"), (printed_kills, ""))
    )
    bound = kills.high or 1.0
    return (
        f"From 8 to 64 workers, its most requests a second are {estimate_text(rates)} its fewest, and with its "
        f"coordinator 32 workers put {estimate_text(objects)} as many objects a second as 8 had put without: "
        f"the store that it calls saturated was not. Its {published.KILLS} kills without loss leave room for up to "
        f"{number(100 * bound, 2)} % of kills that lose something, and hit no write."
    )
