"""kyma's page: its numbers (kyma.csv, typed from it), what claims compute of them, and tables of both.

Printed rates are rounded: a rate lies anywhere between `lowest` and `highest`. Each cell lasted 10 seconds.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.formatting import Cell, attempt, estimate_text, number
from tidemark.analysis.measures import Measures
from tidemark.analysis.statistics import BootstrapEstimate, Estimate, generator, share
from tidemark.results.claims.claim_data import ClaimData, extreme
from tidemark.results.claims.measures import TIMES, Measure, Measured, measure
from tidemark.results.publication import Publication, printed_number, printed_rows, the_row
from tidemark.results.tables.table import Column, Table, TableBuilder, not_here, notes_of, tables_by
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, DIRECT, STAGED
from tidemark.studies.ingest.load.records import ACKED
from tidemark.studies.ingest.metrics import COMMITS, P99, REQUESTS, REQUESTS_A_FILE, ROWS, outcomes
from tidemark.studies.ingest.settings import ONE, GroupSettings, WritersSettings
from tidemark.studies.ingest.tables.requests import gathered_series
from tidemark.studies.ingest.tables.writers import hot_column, in_order

PUBLICATION = Publication.read(__file__)
NOTES = notes_of(__file__)
SECONDS = 10
THRESHOLD_ROWS = 8_000  # rows in the buffer, above which it is flushed
KILLS = 2  # hard kills in its crash test; none lost anything
TWO_NODES_REQUESTS, TWO_NODES_CONFLICTS = 100, 207
TWO_NODES_AT_ONCE = 20  # of these requests, concurrent; from its script test-a-two-nodes.sh, not on the page
BEHIND = (500_000, 1_000_000)  # rows/s of the systems that it is "~10× behind"
# The page's sentences, each with what is computed of its numbers, what follows, and the measure with its arguments.
CONTRADICTIONS = Path(__file__).with_name("contradictions.csv")
PRINTED: dict[str, Measure] = {}


@dataclass(frozen=True, slots=True)
class Printed:
    """One cell of the page's tables; values that it does not print are None."""

    table: int  # number of the table on the page, from 1
    policy: str
    rows: int  # per request
    workers: int
    rows_per_s: float
    lowest: float
    highest: float
    p99_ms: float | None
    files: int | None
    least_files: int | None  # set if it prints a lower bound, as in "1300+ extents"
    errors: int | None

    @property
    def shape(self) -> str:
        return f"{self.rows} x {self.workers}"

    @property
    def requests_per_s(self) -> float:
        return self.rows_per_s / self.rows

    @property
    def requests_per_file(self) -> float | None:
        return None if self.files is None else self.requests_per_s * SECONDS / self.files


@cache
def cells() -> tuple[Printed, ...]:
    """Return all cells, in the order of the page."""
    return printed_rows(Path(__file__).with_name("kyma.csv"), Printed)


def cell(table: int, policy: str, rows: int, workers: int) -> Printed:
    """Return one cell; raise KeyError if the page has no such cell."""
    return the_row(cells(), table=table, policy=policy, rows=rows, workers=workers)


@measure(PRINTED)
def printed_rates(_evidence: ClaimData) -> Measured:
    """Return the page's highest over its lowest request rate, of direct cells with 500 or 100 rows, 8 to 64 workers."""
    rates = [_rate(each) for each in cells() if each.policy == DIRECT and each.rows in (100, 500)]
    return extreme(rates, largest=True).ratio(extreme(rates, largest=False)), TIMES


@measure(PRINTED)
def printed_objects(_evidence: ClaimData) -> Measured:
    """Return the page's objects per second of 32 workers with its coordinator, over those of 8 workers without it."""
    bundled, direct = cell(3, BUNDLED, 500, 32), cell(2, DIRECT, 500, 8)
    return _count(bundled.files, "bundled").ratio(_count(direct.files, "direct")), TIMES


@measure(PRINTED)
def printed_outstanding(_evidence: ClaimData, workers: int, rows: int) -> Measured:
    """Return the rows that workers with one request each can have waiting, over the buffer's limit; both are exact."""
    value = math.log(workers * rows / THRESHOLD_ROWS)
    return BootstrapEstimate(value, np.full(REPLICATES, value), 1), TIMES


@measure(PRINTED)
def printed_requests_a_file(
    _evidence: ClaimData, table: int, policy: str, rows: int, workers: int, by: int = 1
) -> Measured:
    """Return the requests per file of a cell of the page, divided by `by`."""
    chosen = cell(table, policy, rows, workers)
    found = _rate(chosen).scaled(SECONDS).ratio(_count(chosen.files, f"{table} {policy} {chosen.shape}"))
    return found.scaled(1 / by), TIMES


@measure(PRINTED)
def printed_files_twice(_evidence: ClaimData) -> Measured:
    """Return the files of one cell in the page's third table, over those of the same cell in its second."""
    later, earlier = (cell(table, STAGED, 500, 16) for table in (3, 2))
    return _count(later.files, "later").ratio(_count(earlier.files, "earlier")), TIMES


@measure(PRINTED)
def printed_gap(_evidence: ClaimData) -> Measured:
    """Return the ingest rate of others over kyma's sustained rate, both by the page's own numbers."""
    low, high = BEHIND
    draws = generator("printed", "gap").uniform(math.log(low), math.log(high), REPLICATES)
    others = BootstrapEstimate((math.log(low) + math.log(high)) / 2, draws, 1)
    return others.ratio(_rate(cell(1, DIRECT, 500, 8)).scaled(500)), TIMES


@measure(PRINTED)
def printed_over(_evidence: ClaimData, rows_per_s: float) -> Measured:
    """Return kyma's sustained rate over a rate that the page prints of another system."""
    return _rate(cell(1, DIRECT, 500, 8)).scaled(500 / rows_per_s), TIMES


@measure(PRINTED)
def printed_kills(_evidence: ClaimData) -> Measured:
    """Return the share of kills that lose something, given that none of the page's kills did (Jeffreys interval)."""
    return share(0, KILLS, generator("printed", "kills")), ""


def _rate(cell: Printed) -> BootstrapEstimate:
    """Return requests per second of a cell; replicates are uniform over the range that the printed rate rounds."""
    draws = generator("printed", cell.table, cell.policy, cell.shape).uniform(cell.lowest, cell.highest, REPLICATES)
    return BootstrapEstimate(math.log(cell.requests_per_s), np.log(draws / cell.rows), 1)


def _count(files: int | None, name: str) -> BootstrapEstimate:
    """Return a printed number of files, give or take one, since it may be the count of a moment."""
    assert files is not None, f"the page prints no files of {name}"
    return printed_number(files, files - 1, files + 1, "printed files", name)


def _cells(builder: TableBuilder) -> Table:
    """Return the table of each printed cell with the values derived from it, followed by Tidemark's series."""
    rows: list[list[Cell]] = []
    for each in cells():
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
    rows: list[list[Cell]] = []
    for words, computed, meaning, call in list(csv.reader(CONTRADICTIONS.read_text().splitlines()))[1:]:
        name, *given = call.split()
        pairs = (each.split("=") for each in given)
        arguments = {key: int(value) if value.isdigit() else value for key, value in pairs}
        found, unit = PRINTED[name].compute(claim_data, **arguments)
        rows.append([words, computed, found.estimate(unit), unit, meaning])
    rows.append([
        '"207 conflicts retried correctly under 100-way contention"',
        "requests under way at once, by its script test-a-two-nodes.sh: the page does not say it",
        TWO_NODES_AT_ONCE, "",
        f"{TWO_NODES_CONFLICTS / TWO_NODES_REQUESTS:g} conflicts a request among "
        f"{TWO_NODES_AT_ONCE}, not among {TWO_NODES_REQUESTS}",
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
        f"the store that it calls saturated was not. Its {KILLS} kills without loss leave room for up to "
        f"{number(100 * bound, 2)} % of kills that lose something, and hit no write."
    )


NOT_HERE = partial(not_here, name="ingest-not-here", title="What is not measured, and why", module=__file__)
build = tables_by(_cells, _contradictions, NOT_HERE)
