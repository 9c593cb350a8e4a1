"""The study's own measures of claims: of numbers of writers, of the page's own numbers, and of what cannot run here."""

from __future__ import annotations

import math

import numpy as np

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates, generator
from tidemark.analysis.words import estimate_text
from tidemark.results.claims.evidence import Evidence, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, Measure, Measured, measure
from tidemark.studies.ingest import published
from tidemark.studies.ingest.faults.kills import costly, retry_of, series_with_kills, twice
from tidemark.studies.ingest.faults.settings import BLIND, FAULTS
from tidemark.studies.ingest.maintenance.kept import kept_of, pairs, round_s
from tidemark.studies.ingest.published import BUNDLED, DIRECT, STAGED, Printed
from tidemark.studies.ingest.tail.quantities import CLOSED_P99, RESPONSE_P99


class IngestEvidence(Evidence):
    """Runs of writers. One whose table lost rows speaks of that; its speeds are Absent by themselves."""

    losses_count = True


OWN: dict[str, Measure] = {}


@measure(OWN)
def modes_ratio(evidence: IngestEvidence, quantity: Quantity, system: str, modes: list[str]) -> Measured:
    """The quantity in the first mode over that in the second."""
    first, second = (positive(evidence.hot(quantity, system, mode)) for mode in modes)
    return first.ratio(second), TIMES


@measure(OWN)
def ratio_of_ratios(evidence: IngestEvidence, quantity: Quantity, system: str, vs: str, modes: list[str]) -> Measured:
    """The quantity of one system over that of another in the first mode, over the same in the second."""
    first, second = (
        positive(evidence.hot(quantity, system, mode)).ratio(positive(evidence.hot(quantity, vs, mode)))
        for mode in modes
    )
    return first.ratio(second), TIMES


@measure(OWN)
def schedule_over_closed(evidence: IngestEvidence, system: str, mode: str) -> Measured:
    """The 99th percentile of responses by a schedule over that of the closed loop before each window."""
    by_schedule, closed = (positive(evidence.hot(quantity, system, mode)) for quantity in (RESPONSE_P99, CLOSED_P99))
    return by_schedule.ratio(closed), TIMES


@measure(OWN)
def killed(evidence: IngestEvidence, system: str, part: str = FAULTS) -> Measured:
    """The share of kills, of writers and servers or of a front, after which an acknowledged row was not there once."""
    found = series_with_kills(evidence.measures.run_set, (part,))
    own = [each for each in found if (each.system, each.stack) == (system, evidence.stack) and retry_of(each) != BLIND]
    return costly(evidence.noted(own, f"{system} with kills")), ""


@measure(OWN)
def sent_twice(evidence: IngestEvidence, retry: str) -> Measured:
    """The share of kills after which a row is there twice, of all systems whose writers send again like this."""
    found = series_with_kills(evidence.measures.run_set, (FAULTS,))
    own = [each for each in found if each.runs and each.stack == evidence.stack and retry_of(each) == retry]
    for each in own:
        evidence.runs += each.runs
    return twice(own), ""


@measure(OWN)
def rounds_ratio(evidence: IngestEvidence, system: str, vs: str) -> Measured:
    """How long a round of maintenance beside writers takes, over one of another system."""
    found = {own.system: own for own, _ in pairs(evidence.measures.run_set, evidence.stack)}
    first, second = (
        round_s(kept_of(evidence.noted([found[name]] if name in found else [], f"{name} with maintenance")))
        for name in (system, vs)
    )
    return first.ratio(second), TIMES


@measure(OWN)
def smallest_modes_ratio(
    evidence: IngestEvidence, quantity: Quantity, system: str, first: str, second: str, shapes: list[str]
) -> Measured:
    """The smallest, over shapes, of the quantity under the first policy over that under the second."""
    ratios = [modes_ratio(evidence, quantity, system, [f"{first}-{each}", f"{second}-{each}"])[0] for each in shapes]
    return extreme(ratios, largest=False), TIMES


@measure(OWN)
def gain_growth(
    evidence: IngestEvidence, quantity: Quantity, system: str, first: str, second: str, shapes: list[str]
) -> Measured:
    """The ratio of two policies in the second shape over that in the first."""
    few, many = (modes_ratio(evidence, quantity, system, [f"{first}-{each}", f"{second}-{each}"])[0] for each in shapes)
    return many.ratio(few), TIMES


@measure(OWN)
def beside(evidence: IngestEvidence, quantity: Quantity, system: str, mode: str, reason: str) -> Measured:
    """A number of another machine: what stands in its place here is said, and not judged."""
    try:
        ours = estimate_text(quantity.as_shown(evidence.hot(quantity, system, mode)).estimate(quantity.shown_unit))
    except Absent as absent:
        ours = f"nothing ({absent})"
    raise Absent(f"{reason}; beside it, not judged: {system}, {mode}: {ours}")


@measure(OWN)
def not_here(_evidence: IngestEvidence, reason: str) -> Measured:
    """What nobody can run here, or what is no measurement."""
    raise Absent(reason)


@measure(OWN)
def printed_rates(_evidence: IngestEvidence) -> Measured:
    """The most requests a second over the fewest, of the page's own cells with 500 or 100 rows and 8 to 64 workers."""
    rates = [_rate(each) for each in published.cells() if each.policy == DIRECT and each.rows in (100, 500)]
    return extreme(rates, largest=True).ratio(extreme(rates, largest=False)), TIMES


@measure(OWN)
def printed_objects(_evidence: IngestEvidence) -> Measured:
    """Objects put in a second by 32 workers through its coordinator, over those of 8 workers without, by its tables."""
    bundled, direct = published.cell(3, BUNDLED, 500, 32), published.cell(2, DIRECT, 500, 8)
    return _count(bundled.files, "bundled").ratio(_count(direct.files, "direct")), TIMES


@measure(OWN)
def printed_outstanding(_evidence: IngestEvidence, workers: int, rows: int) -> Measured:
    """Rows that workers with one request each can have waiting, over those that fill the buffer: both are exact."""
    return _exact(workers * rows / published.THRESHOLD_ROWS), TIMES


@measure(OWN)
def printed_requests_a_file(
    _evidence: IngestEvidence, table: int, policy: str, rows: int, workers: int, by: int = 1
) -> Measured:
    """Requests by files of a cell of the page, over a number."""
    chosen = published.cell(table, policy, rows, workers)
    found = _rate(chosen).scaled(published.SECONDS).ratio(_count(chosen.files, f"{table} {policy} {chosen.shape}"))
    return found.scaled(1 / by), TIMES


@measure(OWN)
def printed_files_twice(_evidence: IngestEvidence) -> Measured:
    """Files of one cell by the page's third table, over those of the same cell by its second."""
    later, earlier = (published.cell(table, STAGED, 500, 16) for table in (3, 2))
    return _count(later.files, "later").ratio(_count(earlier.files, "earlier")), TIMES


@measure(OWN)
def printed_gap(_evidence: IngestEvidence) -> Measured:
    """How many times as much others are said to take in as kyma's sustained rate, by the page's own numbers."""
    low, high = published.BEHIND
    draws = generator("printed", "gap").uniform(math.log(low), math.log(high), REPLICATES)
    others = Replicates((math.log(low) + math.log(high)) / 2, draws, 1)
    return others.ratio(_rate(published.cell(1, DIRECT, 500, 8)).scaled(500)), TIMES


@measure(OWN)
def printed_kills(_evidence: IngestEvidence) -> Measured:
    """The share of kills that lose something, after none of those did that the page tells of (Jeffreys)."""
    draws = generator("printed", "kills").beta(0.5, published.KILLS + 0.5, REPLICATES)
    return Replicates(0.0, draws, published.KILLS, log=False, bounds=(0.0, 1.0)), ""


def _rate(cell: Printed) -> Replicates:
    """Requests a second, of a rate that was rounded."""
    draws = generator("printed", cell.table, cell.policy, cell.shape).uniform(cell.lowest, cell.highest, REPLICATES)
    return Replicates(math.log(cell.requests_per_s), np.log(draws / cell.rows), 1)


def _count(files: int | None, name: str) -> Replicates:
    """A printed number of files, which may be of the moment: one more or less."""
    assert files is not None, f"the page prints no files of {name}"
    draws = generator("printed files", name).uniform(files - 1, files + 1, REPLICATES)
    return Replicates(math.log(files), np.log(draws), 1)


def _exact(value: float) -> Replicates:
    return Replicates(math.log(value), np.full(REPLICATES, math.log(value)), 1)


MEASURES = GENERAL | OWN
