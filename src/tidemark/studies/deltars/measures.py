"""The study's own measures of claims: ratios over several tables, and what another processor brings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidemark.analysis.quantities import Quantity
from tidemark.analysis.statistics import Replicates, counted, known
from tidemark.results.claims.evidence import Evidence, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, Measure, Measured, measure
from tidemark.studies.deltars import published
from tidemark.studies.deltars.parts import of, size_of


class DeltarsEvidence(Evidence):
    """Runs whose tables are their source's. Each series has one run, which is what it says."""

    def hot(self, quantity: Quantity, system: str, mode: str) -> Replicates:
        return of(self.measures, quantity, self.speaking(quantity, system, mode))


OWN: dict[str, Measure] = {}


def _ratios(evidence: Evidence, quantity: Quantity, system: str, vs: str, tables: Sequence[str]) -> list[Replicates]:
    return [
        positive(evidence.hot(quantity, system, f"{data}-1")).ratio(positive(evidence.hot(quantity, vs, f"{data}-1")))
        for data in tables
    ]


@measure(OWN)
def least_ratio(evidence: Evidence, quantity: Quantity, system: str, vs: str, tables: list[str]) -> Measured:
    """The smallest ratio of two systems over tables, with one processor."""
    return extreme(_ratios(evidence, quantity, system, vs, tables), largest=False), TIMES


@measure(OWN)
def largest_ratio(evidence: Evidence, quantity: Quantity, system: str, vs: str, tables: list[str]) -> Measured:
    """The largest ratio of two systems over tables, with one processor."""
    return extreme(_ratios(evidence, quantity, system, vs, tables), largest=True), TIMES


@measure(OWN)
def exponent(evidence: Evidence, quantity: Quantity, system: str, tables: list[str]) -> Measured:
    """The power of the rows by which it grows from the first of two tables of one kind to the second; 1: as they do."""
    few, many = (positive(evidence.hot(quantity, system, f"{data}-1")) for data in tables)
    growth = many.ratio(few)
    rows = math.log(size_of(tables[1])[1] / size_of(tables[0])[1])
    return Replicates(growth.centre, growth.draws, growth.n, growth.runs, growth.degrees, False).scaled(1 / rows), ""


@measure(OWN)
def gap_closed(evidence: Evidence, quantity: Quantity, system: str, vs: str, by: str, mode: str) -> Measured:
    """How much of what `system` takes longer than `vs` a third one does not take, in percent of it."""
    long, short, between = (evidence.hot(quantity, name, mode) for name in (system, vs, by))
    return positive(long.difference(between)).ratio(positive(long.difference(short))).linear().scaled(100), "%"


@measure(OWN)
def decrease(evidence: Evidence, quantity: Quantity, system: str, data: str, cores: int) -> Measured:
    """By how many percent less it is with so many processors than with one."""
    one, more = (positive(evidence.hot(quantity, system, f"{data}-{count}")) for count in (1, cores))
    share = more.ratio(one).linear()
    return known(1.0, log=False).difference(share).scaled(100), "%"


@measure(OWN)
def overlapping(evidence: Evidence, quantity: Quantity, system: str, vs: str, modes: list[str]) -> Measured:
    """In how many modes the intervals of two systems overlap."""
    pairs = [[evidence.hot(quantity, name, mode).estimate(quantity.unit) for name in (system, vs)] for mode in modes]
    overlaps = [
        first.low <= second.high and second.low <= first.high
        for first, second in pairs
        if first.low is not None and first.high is not None and second.low is not None and second.high is not None
    ]
    return counted(float(sum(overlaps))), ""


@measure(OWN)
def printed_ratio(evidence: Evidence, operation: str, pipeline: str, other: str, tables: list[str]) -> Measured:
    """The smallest ratio of what the thesis prints of two pipelines with one processor: a check of the thesis."""
    del evidence
    found = [
        published.seconds(operation, pipeline, data) / published.seconds(operation, other, data) for data in tables
    ]
    return counted(min(found)), TIMES


@measure(OWN)
def printed_growth(evidence: Evidence, operation: str, pipeline: str, data: str, before: str) -> Measured:
    """The time that the thesis prints for one table over that for another: ten times the rows, at best."""
    del evidence
    return counted(published.seconds(operation, pipeline, data) / published.seconds(operation, pipeline, before)), TIMES


@measure(OWN)
def printed_decrease(evidence: Evidence, operation: str, pipeline: str, other: str, data: str) -> Measured:
    """By how many percent the printed latency of a pipeline is below that of another."""
    del evidence
    return counted(
        100 * (1 - published.seconds(operation, pipeline, data) / published.seconds(operation, other, data))
    ), "%"


@measure(OWN)
def printed_share(evidence: Evidence, operation: str, of_pipeline: str, data: str) -> Measured:
    """The share, in percent, of one step in the printed legacy write."""
    del evidence
    whole = sum(published.seconds(each, of_pipeline, data) for each in (published.UPLOAD, published.MATERIALISE))
    return counted(100 * published.seconds(operation, of_pipeline, data) / whole), "%"


@measure(OWN)
def printed_overlaps(evidence: Evidence) -> Measured:
    """In how many cells of the appendices the intervals of two pipelines overlap."""
    del evidence
    cells: dict[tuple[str, str, int], list[published.Printed]] = {}
    for each in published.rows():
        if each.quantity == published.LATENCY and each.operation in (published.WRITE, published.READ):
            cells.setdefault((each.operation, each.data, each.cores), []).append(each)
    pairs = [(a, b) for found in cells.values() for place, a in enumerate(found) for b in found[:place]]
    return counted(float(sum(a.low <= b.high and b.low <= a.high for a, b in pairs))), ""


MEASURES = GENERAL | OWN
