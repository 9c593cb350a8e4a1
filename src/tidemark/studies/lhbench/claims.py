"""Claim measures of the study: comparisons of formats within one part, and of the paper's own numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.metrics import Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Floats, slope_of
from tidemark.results.claims.claim_data import ClaimData, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, UNMEASURED, Measure, Measured, measure
from tidemark.runs.runset import Series
from tidemark.studies.lhbench.metrics import QUERYING, TOTAL, in_part, merging, slowdown, subjects
from tidemark.studies.lhbench.published import printed, printed_over, reading
from tidemark.studies.lhbench.script import BEFORE, SELECTIVE
from tidemark.studies.lhbench.settings import FILES, LOAD, MERGE, REFRESH, settings_of

OWN: dict[str, Measure] = {}


class LakeClaimData(ClaimData):
    """Evidence by part; for a part with several scales, the largest that was measured."""

    def _in_part(self, system: str, part: str) -> list[Series]:
        return [each for each in in_part(self.measures.run_set, part, self.stack) if each.system == system]

    def of_part(self, system: str, part: str) -> Series:
        own = self._in_part(system, part)
        ran = [each for each in own if each.runs]
        return self.require_runs(ran[-1:] or own, f"{system} in the part '{part}'")

    def of_files(self, system: str, files: int) -> Series:
        """Return the series of the part `files` with `files` files; NotAvailable if the protocol plans none."""
        chosen = [each for each in self._in_part(system, FILES) if settings_of(each).size == files]
        require(chosen, f"no table of {files:,} files is planned under this protocol")
        return self.require_runs(chosen, f"{system} with {files:,} files")

    def at_files(self, quantity: Metric, system: str, files: int) -> BootstrapEstimate:
        return positive(self.measures.value(quantity, self.of_files(system, files)))

    def along_files(self, quantity: Metric, system: str) -> list[tuple[float, BootstrapEstimate]]:
        """Return (number of files, quantity) for each measured number of files.

        Raise NotAvailable if there are fewer than two.
        """
        ran = [self.require_runs([each], system) for each in self._in_part(system, FILES) if each.runs]
        require(len(ran) >= 2, f"{system} was measured with {len(ran)} number{'s' * (len(ran) != 1)} of files")
        return [(settings_of(each).size, self.measures.value(quantity, each)) for each in ran]

    def value(self, quantity: Metric, system: str, part: str) -> BootstrapEstimate:
        return positive(self.measures.value(quantity, self.of_part(system, part)))


def ratio(claim_data: LakeClaimData, quantity: Metric, system: str, vs: str, part: str) -> BootstrapEstimate:
    """Return the quantity of one format divided by that of another, in one part."""
    return claim_data.value(quantity, system, part).ratio(claim_data.value(quantity, vs, part))


@measure(OWN)
def part_ratio(claim_data: LakeClaimData, quantity: Metric, system: str, vs: str, part: str) -> Measured:
    """Return the quantity of one format divided by that of another, in one part."""
    return ratio(claim_data, quantity, system, vs, part), TIMES


@measure(OWN)
def part_spread(claim_data: LakeClaimData, quantity: Metric, systems: list[str], part: str) -> Measured:
    """Return the largest value of several formats divided by the smallest."""
    return _spread([claim_data.value(quantity, name, part) for name in systems]), TIMES


@measure(OWN)
def part_ratio_to_largest(
    claim_data: LakeClaimData, quantity: Metric, system: str, vs: list[str], part: str
) -> Measured:
    """Return the quantity of one format divided by the largest of the others."""
    return extreme([ratio(claim_data, quantity, system, name, part) for name in vs], largest=False), TIMES


@measure(OWN)
def part_ratio_to_smallest(
    claim_data: LakeClaimData, quantity: Metric, system: str, vs: list[str], part: str
) -> Measured:
    """Return the quantity of one format divided by the smallest of the others."""
    return extreme([ratio(claim_data, quantity, system, name, part) for name in vs], largest=True), TIMES


@measure(OWN)
def part_gap_share(
    claim_data: LakeClaimData, quantity: Metric, over: Metric, system: str, vs: str, part: str
) -> Measured:
    """Return the difference of two formats in `quantity` as a percentage of their difference in `over`."""
    gap, whole = (
        positive(claim_data.value(each, system, part).difference(claim_data.value(each, vs, part)))
        for each in (quantity, over)
    )
    return gap.ratio(whole).scaled(100), "%"


@measure(OWN)
def ratio_of_parts(claim_data: LakeClaimData, quantity: Metric, over: Metric, system: str, vs: str) -> Measured:
    """Return the ratio of two formats in `quantity`, divided by their ratio in `over`, both in the part `refresh`."""
    return ratio(claim_data, quantity, system, vs, REFRESH).ratio(ratio(claim_data, over, system, vs, REFRESH)), TIMES


@measure(OWN)
def query_spread(claim_data: LakeClaimData, systems: list[str]) -> Measured:
    """Return the largest time divided by the smallest, for the query in which the formats differ most."""
    return extreme([_spread(each) for each in _by_query(claim_data, systems).values()], largest=True), TIMES


@measure(OWN)
def query_margin(claim_data: LakeClaimData, query: str, system: str, vs: str) -> Measured:
    """Return the ratio of two formats in one query, divided by their ratio over all queries."""
    return ratio(claim_data, QUERYING[query], system, vs, LOAD).ratio(ratio(claim_data, TOTAL, system, vs, LOAD)), TIMES


@measure(OWN)
def query_share(claim_data: LakeClaimData, query: str, system: str) -> Measured:
    """Return one query's share of the time of all queries, in percent."""
    return claim_data.value(QUERYING[query], system, LOAD).ratio(claim_data.value(TOTAL, system, LOAD)).scaled(100), "%"


@measure(OWN)
def size_ratio(claim_data: LakeClaimData, system: str, vs: str, updates: int) -> Measured:
    """Return the ratio of two formats' times to merge `updates` updates into the synthetic table."""
    return ratio(claim_data, merging(updates), system, vs, MERGE), TIMES


@measure(OWN)
def size_slowdown(claim_data: LakeClaimData, system: str, vs: str, updates: int) -> Measured:
    """Return the ratio of two formats' query slowdowns after a merge of `updates` updates."""
    return ratio(claim_data, slowdown(updates), system, vs, MERGE), TIMES


@measure(OWN)
def files_ratio(claim_data: LakeClaimData, quantity: Metric, system: str, vs: str, files: int) -> Measured:
    """Return the quantity of one format divided by that of another, with `files` files."""
    return claim_data.at_files(quantity, system, files).ratio(claim_data.at_files(quantity, vs, files)), TIMES


@measure(OWN)
def files_growth(claim_data: LakeClaimData, quantity: Metric, system: str) -> Measured:
    """Return the growth of a selective query per thousand files, in ms: the median slope between numbers of files."""
    return _growth(claim_data, quantity, system), "ms"


@measure(OWN)
def files_growth_ratio(claim_data: LakeClaimData, quantity: Metric, system: str, vs: str) -> Measured:
    """Return `files_growth` of one format divided by that of `vs`; NotAvailable if `vs` may not grow with its files."""
    own, other = (_growth(claim_data, quantity, name) for name in (system, vs))
    if other.centre <= 0 or bool((other.replicates <= 0).any()):
        raise NotAvailable(f"{vs} may not grow with its files at all")
    draws = None if own.draws is None and other.draws is None else own.replicates / other.replicates
    centre, n, runs = own.centre / other.centre, own.n + other.n, min(own.runs, other.runs)
    return BootstrapEstimate(centre, draws, n, runs, min(own.degrees, other.degrees), log=False), TIMES


@measure(OWN)
def files_share(claim_data: LakeClaimData, quantity: Metric, over: Metric, system: str) -> Measured:
    """Return one quantity's share of another, in percent, at the largest measured number of files."""
    files = int(claim_data.along_files(quantity, system)[-1][0])
    return claim_data.at_files(quantity, system, files).ratio(claim_data.at_files(over, system, files)).scaled(100), "%"


@measure(OWN)
def files_crossover(claim_data: LakeClaimData, quantity: Metric, system: str, vs: str) -> Measured:
    """Return the number of files from which on `vs` needs less: ratios are interpolated, both axes logarithmic.

    NotAvailable if no two measured numbers of files have it between them. A replicate without a crossing counts as the
    end of the measured range on its side.
    """
    own, other = (dict(claim_data.along_files(quantity, name)) for name in (system, vs))
    files = sorted(own.keys() & other.keys())
    ratios = [positive(own[each]).ratio(positive(other[each])) for each in files]
    place = float(_crossing(files, np.array([[each.centre] for each in ratios]))[0])
    if not math.isfinite(place):
        first = system if place > 0 else vs
        raise NotAvailable(f"{first} needs less at all measured numbers of files, {files[0]:,.0f} to {files[-1]:,.0f}")
    draws = None
    if any(each.draws is not None for each in ratios):
        drawn = _crossing(files, np.stack([each.replicates for each in ratios]))
        draws = np.clip(drawn, math.log(files[0]), math.log(files[-1]))
    n, runs = sum(each.n for each in ratios), min(each.runs for each in ratios)
    return BootstrapEstimate(place, draws, n, runs, min(each.degrees for each in ratios)), "files"


@measure(OWN)
def printed_panels(_evidence: LakeClaimData, figure: int, panel: str, against: str, line: str) -> Measured:
    """Return the ratio of two panels' numbers of one line of a figure of the paper."""
    return printed(figure, panel, line).ratio(printed(figure, against, line)), TIMES


@measure(OWN)
def printed_ratio(
    _evidence: LakeClaimData, figure: int, panel: str, line: str, beside: str, x: int | None = None
) -> Measured:
    """Return the ratio of two numbers of one figure of the paper."""
    return printed_over(figure, panel, line, beside, x), TIMES


@measure(OWN)
def printed_change(_evidence: LakeClaimData, figure: int, panel: str, against: str, line: str, beside: str) -> Measured:
    """Return the ratio of two lines in one panel of a figure, divided by their ratio in another panel."""
    return printed_over(figure, panel, line, beside).ratio(printed_over(figure, against, line, beside)), TIMES


@measure(OWN)
def printed_share(_evidence: LakeClaimData, panel: str, line: str) -> Measured:
    """Return a query's share of the time of all queries in the paper's figure 1, in percent."""
    return printed(1, panel, line).ratio(printed(1, "total", line)).scaled(100), "%"


@measure(OWN)
def axis_error(_evidence: LakeClaimData, factor: float) -> Measured:
    """Return the largest error of the fit to figure 3's times, in percent, with its labels divided by `factor`."""
    worst = 100 * reading(factor).worst
    return BootstrapEstimate(worst, np.full(REPLICATES, worst), 4, log=False), "%"


def _spread(parts: Sequence[BootstrapEstimate]) -> BootstrapEstimate:
    return extreme([a.ratio(b) for a in parts for b in parts if a is not b], largest=True)


def _growth(claim_data: LakeClaimData, quantity: Metric, system: str) -> BootstrapEstimate:
    """Return the Theil-Sen slope of the mean of the selective queries, in milliseconds per thousand files."""
    points = [
        (files / 1_000, part.linear().scaled(1_000 / len(SELECTIVE)))
        for files, part in claim_data.along_files(quantity, system)
    ]
    if any(part.draws is not None for _, part in points):
        points = [(files, replace(part, draws=part.replicates)) for files, part in points]
    return slope_of(points)


def _crossing(files: Sequence[float], ratios: Floats) -> Floats:
    """Return the log number of files at which the log `ratios`, float64[files, k], rise above 0: float64[k].

    It is infinite where they are below 0 everywhere, and minus infinity where they are above it from the start.
    """
    axis = np.log(files)
    found = np.where(ratios[0] > 0, -math.inf, math.inf)
    for place in range(len(files) - 1):
        before, after = ratios[place], ratios[place + 1]
        step = axis[place] - before * (axis[place + 1] - axis[place]) / np.where(after == before, 1.0, after - before)
        found = np.where(np.isposinf(found) & (before <= 0) & (after > 0), step, found)
    return found


def _by_query(claim_data: LakeClaimData, systems: list[str]) -> dict[str, list[BootstrapEstimate]]:
    """Return the time of each query in each format, for the queries that ran in all of them."""
    asked = [subjects(run, BEFORE) for name in systems for run in claim_data.of_part(name, LOAD).runs]
    common = [name for name in asked[0] if all(name in each for each in asked)]
    return {name: [claim_data.value(QUERYING[name], system, LOAD) for system in systems] for name in common}


MEASURES = GENERAL | UNMEASURED | OWN
