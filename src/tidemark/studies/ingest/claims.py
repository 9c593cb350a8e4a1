"""Claim measures of this study: across numbers of writers, of kyma's own numbers, and of what cannot run here."""

from __future__ import annotations

import math

import numpy as np

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, generator, known, share
from tidemark.results.claims.claim_data import ClaimData, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, UNMEASURED, Measure, Measured, measure
from tidemark.studies.ingest import published
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, DIRECT, STAGED
from tidemark.studies.ingest.load.records import BLIND
from tidemark.studies.ingest.metrics import CLOSED_P99, CONFLICTS, RESPONSE_P99
from tidemark.studies.ingest.parts import FAULTS
from tidemark.studies.ingest.published import Printed
from tidemark.studies.ingest.tables.faults import costly, retry_of, series_with_kills, twice
from tidemark.studies.ingest.tables.maintenance import kept_of, pairs, round_s

OWN: dict[str, Measure] = {}


@measure(OWN)
def modes_ratio(claim_data: ClaimData, quantity: Metric, system: str, modes: list[str]) -> Measured:
    """Return the ratio of the quantity in the first mode to that in the second."""
    first, second = (positive(claim_data.hot(quantity, system, mode)) for mode in modes)
    return first.ratio(second), TIMES


@measure(OWN)
def ratio_of_ratios(claim_data: ClaimData, quantity: Metric, system: str, vs: str, modes: list[str]) -> Measured:
    """Return the ratio of `system` to `vs` in the first mode, divided by the same ratio in the second."""
    first, second = (
        positive(claim_data.hot(quantity, system, mode)).ratio(positive(claim_data.hot(quantity, vs, mode)))
        for mode in modes
    )
    return first.ratio(second), TIMES


@measure(OWN)
def accepted_ratio(claim_data: ClaimData, system: str, modes: list[str]) -> Measured:
    """Return the share of tried commits that succeed in the first mode, divided by that in the second."""
    first, second = (
        positive(known(1.0, log=False).difference(claim_data.hot(CONFLICTS, system, mode))) for mode in modes
    )
    return first.ratio(second), TIMES


@measure(OWN)
def schedule_over_closed(claim_data: ClaimData, system: str, mode: str) -> Measured:
    """Return the ratio of the p99 of responses by a schedule to that of the closed loop before each window."""
    by_schedule, closed = (positive(claim_data.hot(quantity, system, mode)) for quantity in (RESPONSE_P99, CLOSED_P99))
    return by_schedule.ratio(closed), TIMES


@measure(OWN)
def killed(claim_data: ClaimData, system: str, part: str = FAULTS) -> Measured:
    """Return the share of kills (writers and servers, or a front) after which an acknowledged row is not there once."""
    found = series_with_kills(claim_data.measures.run_set, (part,))
    own = [
        each for each in found if (each.system, each.stack) == (system, claim_data.stack) and retry_of(each) != BLIND
    ]
    return costly(claim_data.require_runs(own, f"{system} with kills")), ""


@measure(OWN)
def sent_twice(claim_data: ClaimData, retry: str) -> Measured:
    """Return the share of kills after which a row is doubled, over all systems whose writers use this `retry`."""
    found = series_with_kills(claim_data.measures.run_set, (FAULTS,))
    own = [each for each in found if each.runs and each.stack == claim_data.stack and retry_of(each) == retry]
    for each in own:
        claim_data.runs += each.runs
    return twice(own), ""


@measure(OWN)
def rounds_ratio(claim_data: ClaimData, system: str, vs: str) -> Measured:
    """Return the ratio of the duration of a maintenance round during writes to that of the system `vs`."""
    found = {own.system: own for own, _ in pairs(claim_data.measures.run_set, claim_data.stack)}
    first, second = (
        round_s(kept_of(claim_data.require_runs([found[name]] if name in found else [], f"{name} with maintenance")))
        for name in (system, vs)
    )
    return first.ratio(second), TIMES


@measure(OWN)
def smallest_modes_ratio(
    claim_data: ClaimData, quantity: Metric, system: str, first: str, second: str, shapes: list[str]
) -> Measured:
    """Return the smallest ratio, over `shapes`, of the quantity under policy `first` to that under `second`."""
    ratios = [modes_ratio(claim_data, quantity, system, [f"{first}-{each}", f"{second}-{each}"])[0] for each in shapes]
    return extreme(ratios, largest=False), TIMES


@measure(OWN)
def gain_growth(
    claim_data: ClaimData, quantity: Metric, system: str, first: str, second: str, shapes: list[str]
) -> Measured:
    """Return the ratio between two policies in the second shape, divided by that in the first."""
    few, many = (
        modes_ratio(claim_data, quantity, system, [f"{first}-{each}", f"{second}-{each}"])[0] for each in shapes
    )
    return many.ratio(few), TIMES


@measure(OWN)
def beside(claim_data: ClaimData, quantity: Metric, system: str, mode: str, reason: str) -> Measured:
    """Raise NotAvailable: a number from another machine is not judged. The message gives Tidemark's own value."""
    try:
        ours = estimate_text(quantity.as_shown(claim_data.hot(quantity, system, mode)).estimate(quantity.shown_unit))
    except NotAvailable as absent:
        ours = f"nothing ({absent})"
    raise NotAvailable(f"{reason}; for comparison, not judged: {system}, {mode}: {ours}")


@measure(OWN)
def printed_rates(_evidence: ClaimData) -> Measured:
    """Return the page's highest over its lowest request rate, of direct cells with 500 or 100 rows, 8 to 64 workers."""
    rates = [_rate(each) for each in published.cells() if each.policy == DIRECT and each.rows in (100, 500)]
    return extreme(rates, largest=True).ratio(extreme(rates, largest=False)), TIMES


@measure(OWN)
def printed_objects(_evidence: ClaimData) -> Measured:
    """Return the page's objects per second of 32 workers with its coordinator, over those of 8 workers without it."""
    bundled, direct = published.cell(3, BUNDLED, 500, 32), published.cell(2, DIRECT, 500, 8)
    return _count(bundled.files, "bundled").ratio(_count(direct.files, "direct")), TIMES


@measure(OWN)
def printed_outstanding(_evidence: ClaimData, workers: int, rows: int) -> Measured:
    """Return the rows that workers with one request each can have waiting, over the buffer's limit; both are exact."""
    return _exact(workers * rows / published.THRESHOLD_ROWS), TIMES


@measure(OWN)
def printed_requests_a_file(
    _evidence: ClaimData, table: int, policy: str, rows: int, workers: int, by: int = 1
) -> Measured:
    """Return the requests per file of a cell of the page, divided by `by`."""
    chosen = published.cell(table, policy, rows, workers)
    found = _rate(chosen).scaled(published.SECONDS).ratio(_count(chosen.files, f"{table} {policy} {chosen.shape}"))
    return found.scaled(1 / by), TIMES


@measure(OWN)
def printed_files_twice(_evidence: ClaimData) -> Measured:
    """Return the files of one cell in the page's third table, over those of the same cell in its second."""
    later, earlier = (published.cell(table, STAGED, 500, 16) for table in (3, 2))
    return _count(later.files, "later").ratio(_count(earlier.files, "earlier")), TIMES


@measure(OWN)
def printed_gap(_evidence: ClaimData) -> Measured:
    """Return the ingest rate of others over kyma's sustained rate, both by the page's own numbers."""
    low, high = published.BEHIND
    draws = generator("printed", "gap").uniform(math.log(low), math.log(high), REPLICATES)
    others = BootstrapEstimate((math.log(low) + math.log(high)) / 2, draws, 1)
    return others.ratio(_rate(published.cell(1, DIRECT, 500, 8)).scaled(500)), TIMES


@measure(OWN)
def printed_over(_evidence: ClaimData, rows_per_s: float) -> Measured:
    """Return kyma's sustained rate over a rate that the page prints of another system."""
    return _rate(published.cell(1, DIRECT, 500, 8)).scaled(500 / rows_per_s), TIMES


@measure(OWN)
def printed_kills(_evidence: ClaimData) -> Measured:
    """Return the share of kills that lose something, given that none of the page's kills did (Jeffreys interval)."""
    return share(0, published.KILLS, generator("printed", "kills")), ""


def _rate(cell: Printed) -> BootstrapEstimate:
    """Return requests per second of a cell; replicates are uniform over the range that the printed rate rounds."""
    draws = generator("printed", cell.table, cell.policy, cell.shape).uniform(cell.lowest, cell.highest, REPLICATES)
    return BootstrapEstimate(math.log(cell.requests_per_s), np.log(draws / cell.rows), 1)


def _count(files: int | None, name: str) -> BootstrapEstimate:
    """Return a printed number of files, give or take one, since it may be the count of a moment."""
    assert files is not None, f"the page prints no files of {name}"
    draws = generator("printed files", name).uniform(files - 1, files + 1, REPLICATES)
    return BootstrapEstimate(math.log(files), np.log(draws), 1)


def _exact(value: float) -> BootstrapEstimate:
    return BootstrapEstimate(math.log(value), np.full(REPLICATES, math.log(value)), 1)


MEASURES = GENERAL | UNMEASURED | OWN
