"""Claim measures of the study: by numbers of users, of the report's own numbers, and of rows that cannot run here."""

from __future__ import annotations

from tidemark.analysis.formatting import estimate_text
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.claims.claim_data import ClaimData, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, Measure, Measured, measure
from tidemark.runs.runset import Series
from tidemark.runs.spec import MAIN
from tidemark.studies.catalogs import published
from tidemark.studies.catalogs.metrics import SORTS
from tidemark.studies.catalogs.record import USERS, users_of

STAND_IN = "rest-jdbc-postgres"  # system that is reported next to rows that cannot be tested here
WHY_NOT = {
    published.RELATIONAL: "Polaris with EclipseLink is in no registry, and was removed from its sources",
    published.DOCUMENT: "Polaris with pull request 1189 and MongoDB are in no registry",
}


class CatalogClaimData(ClaimData):
    """Evidence from catalog servers; for an unmeasured number of users, NotAvailable names the measured ones."""

    def series(self, system: str, mode: str, sweep: str = MAIN) -> Series:
        found = self.of_sweep(system, mode, sweep)
        if not found:
            others = [each.mode for each in self.measures.run_set.select(stack=self.stack) if each.system == system]
            if others:
                raise NotAvailable(f"{system} was measured with {', '.join(others)} and not with {mode}")
        return self.require_runs(found, f"{system} with {mode}")

    def catalogs(self) -> tuple[Series, ...]:
        """Return the series of all systems except the null baseline. Raises NotAvailable if there is none."""
        return require(self.measures.run_set.select(stack=self.stack, harness=False), "no catalog is in this run set")

    def hot_of_each(self, quantity: Metric, mode: str) -> list[BootstrapEstimate]:
        """Return the quantity of every system's hot runs; without a `mode`, with the most users."""
        systems = dict.fromkeys(each.system for each in self.catalogs())
        return [self.hot(quantity, system, mode or self.most_users()) for system in systems]

    def most_users(self) -> str:
        """Return the mode with the most users. Raises NotAvailable if no catalog was measured."""
        return max(self.catalogs(), key=users_of).mode


OWN: dict[str, Measure] = {}


@measure(OWN)
def users_ratio(claim_data: CatalogClaimData, quantity: Metric, system: str, users: list[int]) -> Measured:
    """Return the quantity with the first number of users divided by that with the second."""
    many, few = (positive(claim_data.hot(quantity, system, f"{USERS}{count}")) for count in users)
    return many.ratio(few), TIMES


@measure(OWN)
def over_quantity(claim_data: CatalogClaimData, quantity: Metric, over: Metric, system: str, mode: str) -> Measured:
    """Return one quantity divided by another of the same system."""
    return positive(claim_data.hot(quantity, system, mode)).ratio(positive(claim_data.hot(over, system, mode))), TIMES


@measure(OWN)
def smallest(claim_data: CatalogClaimData, quantity: Metric, mode: str = "") -> Measured:
    """Return the quantity of the catalog with the smallest value; without a `mode`, with the most users."""
    return extreme(claim_data.hot_of_each(quantity, mode), largest=False), quantity.unit


@measure(OWN)
def most(claim_data: CatalogClaimData, quantity: Metric, mode: str = "") -> Measured:
    """Return the quantity of the catalog with the largest value; without a `mode`, with the most users."""
    return extreme(claim_data.hot_of_each(quantity, mode), largest=True), quantity.unit


@measure(OWN)
def printed_change(_evidence: CatalogClaimData, mode: str, case: str, query: str, what: str) -> Measured:
    """Return how much longer the report's new layer took than the old one, in percent, from its own appendix."""
    return published.change(mode, case, query, what), "%"


@measure(OWN)
def printed_gain(_evidence: CatalogClaimData, query: str, users: int) -> Measured:
    """Return the rate with many users divided by that with one, by Little's law from the report's own means."""
    return published.gain(query, users), TIMES


@measure(OWN)
def printed_spread(_evidence: CatalogClaimData, case: str, query: str) -> Measured:
    """Return the maximum divided by the median of the report's new layer under load, from its own appendix."""
    row = published.row(published.CONCURRENT, case, published.DOCUMENT, query)
    return published.rounded(row.maximum_ms, "maximum").ratio(published.rounded(row.median_ms, "median")), TIMES


@measure(OWN)
def not_here(claim_data: CatalogClaimData, mode: str, case: str, layer: str, query: str) -> Measured:
    """Raise NotAvailable for an appendix row of programs that cannot run here; it cites a similar system, unjudged."""
    row = published.row(mode, case, layer, query)
    raise NotAvailable(f"{WHY_NOT[row.system]}; {_stand_in(claim_data, row)}")


def _stand_in(claim_data: CatalogClaimData, row: published.Printed) -> str:
    act = row.query.lower()
    name = act if act.startswith("create ") else f"open-{row.case[:2]} {act}"  # Tidemark's, of the report's query
    sort = next((sort for sort in SORTS if sort.name == name), None)
    if sort is None:
        return "no catalog here has the operation"
    users = f"{USERS}1" if row.mode == published.SEQUENTIAL else claim_data.most_users()
    try:
        ours = claim_data.hot(sort.median, STAND_IN, users).estimate("ms")
    except NotAvailable as absent:
        return f"for comparison there would be {STAND_IN} ({absent})"
    return f"for comparison, not judged: {STAND_IN} with {users}, median {estimate_text(ours)}"


MEASURES = GENERAL | OWN
