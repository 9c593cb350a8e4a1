"""Claim measures of the study: by numbers of users, of the report's own numbers, and of rows that cannot run here."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates
from tidemark.analysis.words import estimate_text
from tidemark.results.claims.evidence import Evidence, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, Measure, Measured, measure
from tidemark.runs.names import MAIN
from tidemark.runs.runset import Series
from tidemark.studies.catalogs import published
from tidemark.studies.catalogs.metrics import SORTS
from tidemark.studies.catalogs.settings import USERS, users_of

STAND_IN = "rest-jdbc-postgres"  # system that is reported next to rows that cannot be tested here
WHY_NOT = {
    published.RELATIONAL: "Polaris with EclipseLink is in no registry, and was removed from its sources",
    published.DOCUMENT: "Polaris with pull request 1189 and MongoDB are in no registry",
}
SORT_OF = {  # Tidemark's name for each query of the report
    "Create Namespace": "create namespace",
    "Create Table": "create table",
    "Create View": "create view",
}


class CatalogEvidence(Evidence):
    """Evidence from catalog servers; for an unmeasured number of users, Absent names the measured ones."""

    def series(self, system: str, mode: str, sweep: str = MAIN) -> Series:
        found = self.of_sweep(system, mode, sweep)
        if not found:
            others = [each.mode for each in self.measures.run_set.select(stack=self.stack) if each.system == system]
            if others:
                raise Absent(f"{system} was measured with {', '.join(others)} and not with {mode}")
        return self.noted(found, f"{system} with {mode}")

    def of_each(self, measured: Callable[[str], Replicates]) -> list[Replicates]:
        """Return `measured` for every system except the null baseline. Raises Absent if there is none."""
        series = self.measures.run_set.select(stack=self.stack, harness=False)
        if not series:
            raise Absent("no catalog is in this run set")
        return [measured(system) for system in dict.fromkeys(each.system for each in series)]

    def hot_of_each(self, quantity: Quantity, mode: str) -> list[Replicates]:
        """Return the quantity of every system's hot runs; without a `mode`, with the most users."""
        return self.of_each(lambda system: self.hot(quantity, system, mode or self.most_users()))

    def most_users(self) -> str:
        """Return the mode with the most users. Raises Absent if no catalog was measured."""
        series = self.measures.run_set.select(stack=self.stack, harness=False)
        if not series:
            raise Absent("no catalog is in this run set")
        return max(series, key=users_of).mode


OWN: dict[str, Measure] = {}


@measure(OWN)
def users_ratio(evidence: CatalogEvidence, quantity: Quantity, system: str, users: list[int]) -> Measured:
    """Return the quantity with the first number of users divided by that with the second."""
    many, few = (positive(evidence.hot(quantity, system, f"{USERS}{count}")) for count in users)
    return many.ratio(few), TIMES


@measure(OWN)
def over_quantity(evidence: CatalogEvidence, quantity: Quantity, over: Quantity, system: str, mode: str) -> Measured:
    """Return one quantity divided by another of the same system."""
    return positive(evidence.hot(quantity, system, mode)).ratio(positive(evidence.hot(over, system, mode))), TIMES


@measure(OWN)
def largest_over_quantity(evidence: CatalogEvidence, quantity: Quantity, over: Quantity, mode: str) -> Measured:
    """Return one quantity divided by another, for the catalog with the largest ratio."""
    ratios = evidence.of_each(lambda system: over_quantity(evidence, quantity, over, system, mode)[0])
    return extreme(ratios, largest=True), TIMES


@measure(OWN)
def smallest(evidence: CatalogEvidence, quantity: Quantity, mode: str = "") -> Measured:
    """Return the quantity of the catalog with the smallest value; without a `mode`, with the most users."""
    return extreme(evidence.hot_of_each(quantity, mode), largest=False), quantity.unit


@measure(OWN)
def most(evidence: CatalogEvidence, quantity: Quantity, mode: str = "") -> Measured:
    """Return the quantity of the catalog with the largest value; without a `mode`, with the most users."""
    return extreme(evidence.hot_of_each(quantity, mode), largest=True), quantity.unit


@measure(OWN)
def printed_change(_evidence: CatalogEvidence, mode: str, case: str, query: str, what: str) -> Measured:
    """Return how much longer the report's new layer took than the old one, in percent, from its own appendix."""
    return published.change(mode, case, query, what), "%"


@measure(OWN)
def printed_gain(_evidence: CatalogEvidence, query: str, users: int) -> Measured:
    """Return the rate with many users divided by that with one, by Little's law from the report's own means."""
    return published.gain(query, users), TIMES


@measure(OWN)
def printed_spread(_evidence: CatalogEvidence, case: str, query: str) -> Measured:
    """Return the maximum divided by the median of the report's new layer under load, from its own appendix."""
    row = published.row(published.CONCURRENT, case, published.DOCUMENT, query)
    return published.rounded(row.maximum_ms, "maximum").ratio(published.rounded(row.median_ms, "median")), TIMES


@measure(OWN)
def not_here(evidence: CatalogEvidence, mode: str, case: str, layer: str, query: str) -> Measured:
    """Raise Absent for an appendix row of programs that cannot run here; it cites a similar system, unjudged."""
    row = published.row(mode, case, layer, query)
    raise Absent(f"{WHY_NOT[row.system]}; {_stand_in(evidence, row)}")


def _stand_in(evidence: CatalogEvidence, row: published.Printed) -> str:
    act = row.query.lower()
    name = SORT_OF.get(row.query, f"open-{row.case[:2]} {act}")
    sort = next((sort for sort in SORTS if sort.name == name), None)
    if sort is None:
        return "no catalog here has the operation"
    users = f"{USERS}1" if row.mode == published.SEQUENTIAL else evidence.most_users()
    try:
        ours = evidence.hot(sort.median, STAND_IN, users).estimate("ms")
    except Absent as absent:
        return f"for comparison there would be {STAND_IN} ({absent})"
    return f"for comparison, not judged: {STAND_IN} with {users}, median {estimate_text(ours)}"


MEASURES = GENERAL | OWN
