"""Claim measures of the study: ratios over several tables, and the effect of more processors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidemark.analysis.metrics import Metric, require
from tidemark.analysis.statistics import BootstrapEstimate, counted, known, literal
from tidemark.results.claims.claim_data import ClaimData, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, Measure, Measured, measure
from tidemark.results.publication import printed_number
from tidemark.results.reference.agreement import overlaps
from tidemark.studies.deltars import published
from tidemark.studies.deltars.metrics import size_of
from tidemark.studies.deltars.published import seconds

MILLION = 1e6


class DeltarsClaimData(ClaimData):
    """Evidence from runs whose tables match their source. Each series has one run, which gives its value."""

    def hot(self, quantity: Metric, system: str, mode: str) -> BootstrapEstimate:
        return self.measures.value(quantity, self.comparable_series(quantity, system, mode))


OWN: dict[str, Measure] = {}


def _ratios(
    claim_data: ClaimData, quantity: Metric, system: str, vs: str, tables: Sequence[str]
) -> list[BootstrapEstimate]:
    pairs = ((positive(claim_data.hot(quantity, each, f"{data}-1")) for each in (system, vs)) for data in tables)
    return [first.ratio(second) for first, second in pairs]


@measure(OWN)
def least_ratio(claim_data: ClaimData, quantity: Metric, system: str, vs: str, tables: list[str]) -> Measured:
    """Return the smallest ratio of two systems over the tables, with one processor."""
    return extreme(_ratios(claim_data, quantity, system, vs, tables), largest=False), TIMES


@measure(OWN)
def largest_ratio(claim_data: ClaimData, quantity: Metric, system: str, vs: str, tables: list[str]) -> Measured:
    """Return the largest ratio of two systems over the tables, with one processor."""
    return extreme(_ratios(claim_data, quantity, system, vs, tables), largest=True), TIMES


@measure(OWN)
def exponent(claim_data: ClaimData, quantity: Metric, system: str, tables: list[str]) -> Measured:
    """Return the exponent of growth with rows, from the first to the second table of one kind; 1 is proportional."""
    few, many = (positive(claim_data.hot(quantity, system, f"{data}-1")) for data in tables)
    growth = many.ratio(few)
    rows = math.log(size_of(tables[1])[1] / size_of(tables[0])[1])
    linear = BootstrapEstimate(growth.centre, growth.draws, growth.n, growth.runs, growth.degrees, False)
    return linear.scaled(1 / rows), ""


@measure(OWN)
def gap_closed(claim_data: ClaimData, quantity: Metric, system: str, vs: str, by: str, mode: str) -> Measured:
    """Return the percentage of the excess of `system` over `vs` that the third system, `by`, avoids."""
    long, short, between = (claim_data.hot(quantity, name, mode) for name in (system, vs, by))
    return positive(long.difference(between)).ratio(positive(long.difference(short))).linear().scaled(100), "%"


@measure(OWN)
def decrease(claim_data: ClaimData, quantity: Metric, system: str, data: str, cores: int) -> Measured:
    """Return the decrease of a quantity with `cores` processors from its value with one, in percent."""
    one, more = (positive(claim_data.hot(quantity, system, f"{data}-{count}")) for count in (1, cores))
    share = more.ratio(one).linear()
    return literal(1.0, log=False).difference(share).scaled(100), "%"


@measure(OWN)
def overlapping(claim_data: ClaimData, quantity: Metric, system: str, vs: str, modes: list[str]) -> Measured:
    """Return the number of modes in which the intervals of two systems overlap.

    Where some do and are of fewer writes than the thesis's, they may only be wide: the number then has no interval.
    Raise NotAvailable if one of the intervals does not exist.
    """
    found = [claim_data.hot(quantity, name, mode).estimate(quantity.unit) for mode in modes for name in (system, vs)]
    require(all(each.low is not None for each in found), "a time without an interval")
    overlapped = sum(overlaps(*pair) for pair in zip(found[::2], found[1::2], strict=True))
    if overlapped and min(each.n for each in found) < published.REPETITIONS:
        return known(overlapped, log=False), ""
    return counted(overlapped), ""


@measure(OWN)
def printed_ratio(_evidence: ClaimData, operation: str, pipeline: str, other: str, tables: list[str]) -> Measured:
    """Return the smallest ratio of two pipelines' printed times with one processor: a check of the thesis."""
    found = [seconds(operation, pipeline, data) / seconds(operation, other, data) for data in tables]
    return counted(min(found)), TIMES


@measure(OWN)
def printed_growth(_evidence: ClaimData, operation: str, pipeline: str, data: str, before: str) -> Measured:
    """Return the printed time for one table divided by that for another; it has at most ten times the rows."""
    return counted(seconds(operation, pipeline, data) / seconds(operation, pipeline, before)), TIMES


@measure(OWN)
def printed_crossover(_evidence: ClaimData, operation: str, pipeline: str, other: str) -> Measured:
    """Return the millions of rows at which lines through the printed times of the two largest tables cross.

    Both axes are logarithmic; replicates are uniform over the printed intervals.
    """
    tables = tuple(published.ROWS)[-2:]
    few, many = (math.log(published.ROWS[data]) for data in tables)

    def ratio(data: str) -> BootstrapEstimate:
        found = []
        for each in (pipeline, other):
            cell = published.printed(operation, each, data, cores=1)
            assert cell is not None
            names = ("printed", operation, each, data)
            found.append(printed_number(cell.mean, cell.low, cell.high, *names, n=published.REPETITIONS))
        return found[0].ratio(found[1])

    first, last = (ratio(data) for data in tables)
    steps = last.replicates / (first.replicates - last.replicates)
    centre = last.centre / (first.centre - last.centre)
    million = many - math.log(MILLION)
    return BootstrapEstimate(million + (many - few) * centre, million + (many - few) * steps, last.n), "million rows"


@measure(OWN)
def printed_decrease(_evidence: ClaimData, operation: str, pipeline: str, other: str, data: str) -> Measured:
    """Return the percentage by which the printed latency of a pipeline is below that of another."""
    return counted(100 * (1 - seconds(operation, pipeline, data) / seconds(operation, other, data))), "%"


@measure(OWN)
def printed_share(_evidence: ClaimData, operation: str, of_pipeline: str, data: str) -> Measured:
    """Return the share of one step in the printed legacy write, in percent."""
    whole = sum(seconds(each, of_pipeline, data) for each in (published.UPLOAD, published.MATERIALISE))
    return counted(100 * seconds(operation, of_pipeline, data) / whole), "%"


@measure(OWN)
def printed_overlaps(_evidence: ClaimData) -> Measured:
    """Return the number of pairs of pipelines whose intervals overlap, over all cells of the appendices."""
    cells: dict[tuple[str, str, int], list[published.Printed]] = {}
    for each in published.rows():
        if each.quantity == published.LATENCY and each.operation in (published.WRITE, published.READ):
            cells.setdefault((each.operation, each.data, each.cores), []).append(each)
    pairs = [(a, b) for found in cells.values() for place, a in enumerate(found) for b in found[:place]]
    return counted(float(sum(a.low <= b.high and b.low <= a.high for a, b in pairs))), ""


MEASURES = GENERAL | OWN
