"""Claim measures of this study: across numbers of writers, and of what cannot run here."""

from __future__ import annotations

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import literal
from tidemark.results.claims.claim_data import ClaimData, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, UNMEASURED, Measure, Measured, measure
from tidemark.studies.ingest.load.records import BLIND
from tidemark.studies.ingest.metrics import CLOSED_P99, CONFLICTS, RESPONSE_P99
from tidemark.studies.ingest.parts import FAULTS
from tidemark.studies.ingest.published import PRINTED
from tidemark.studies.ingest.tables.faults import costly, retry_of, series_with_kills, twice
from tidemark.studies.ingest.tables.maintenance import ROUND, pairs

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
def refused(claim_data: ClaimData, system: str, mode: str) -> Measured:
    """Return the percentage of the tried commits that were refused."""
    return claim_data.hot(CONFLICTS, system, mode).scaled(100), "%"


@measure(OWN)
def accepted_ratio(claim_data: ClaimData, system: str, modes: list[str]) -> Measured:
    """Return the share of tried commits that succeed in the first mode, divided by that in the second."""
    first, second = (
        positive(literal(1.0, log=False).difference(claim_data.hot(CONFLICTS, system, mode))) for mode in modes
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
    found = series_with_kills(claim_data.measures.run_set, (part,), claim_data.stack)
    own = [each for each in found if each.system == system and retry_of(each) != BLIND]
    return costly(claim_data.require_runs(own, f"{system} with kills")), ""


@measure(OWN)
def sent_twice(claim_data: ClaimData, retry: str) -> Measured:
    """Return the share of kills after which a row is doubled, over all systems whose writers use this `retry`."""
    found = series_with_kills(claim_data.measures.run_set, (FAULTS,), claim_data.stack)
    own = [each for each in found if each.runs and retry_of(each) == retry]
    for each in own:
        claim_data.runs += each.runs
    return twice(own), ""


@measure(OWN)
def rounds_ratio(claim_data: ClaimData, system: str, vs: str) -> Measured:
    """Return the ratio of the duration of a maintenance round during writes to that of the system `vs`."""
    found = {own.system: own for own, _ in pairs(claim_data.measures.run_set, claim_data.stack)}
    series = [
        claim_data.require_runs([found[name]] if name in found else [], f"{name} with maintenance")
        for name in (system, vs)
    ]
    first, second = (positive(claim_data.measures.value(ROUND, each)) for each in series)
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


MEASURES = GENERAL | UNMEASURED | PRINTED | OWN
