"""The measures of claims: named functions from evidence to a number with its interval and its unit.

paper/claims.yaml names them with their arguments. All of them compare hot runs with hot runs, except for the cold
effect and the study of threads, whose series have one run each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tidemark.analysis.claims_quantities import METRICS, QUANTITIES, Evidence, extreme, mean, positive, unit_of
from tidemark.analysis.statistics import Replicates

type Measured = tuple[Replicates, str]
TIMES = "x"  # the unit of a ratio
REGISTRY: dict[str, Callable[..., Measured]] = {}
MODES = ("single", "batch")


def _measure(function: Callable[..., Measured]) -> Callable[..., Measured]:
    REGISTRY[function.__name__.replace("_", "-")] = function
    return function


@_measure
def value(evidence: Evidence, quantity: str, system: str, mode: str) -> Measured:
    """The quantity of the typical hot run; a share in percent."""
    found, unit = evidence.hot(quantity, system, mode), unit_of(quantity)
    return (found.scaled(100), unit.replace("1/", "% per ", 1)) if unit.startswith("1/") else (found, unit)


@_measure
def ratio(evidence: Evidence, quantity: str, system: str, vs: str, mode: str) -> Measured:
    """The quantity of one system over that of another."""
    first, second = (positive(evidence.hot(quantity, name, mode)) for name in (system, vs))
    return first.ratio(second), TIMES


@_measure
def difference(evidence: Evidence, quantity: str, system: str, vs: str, mode: str) -> Measured:
    """The quantity of one system less that of another."""
    return evidence.hot(quantity, system, mode).difference(evidence.hot(quantity, vs, mode)), unit_of(quantity)


@_measure
def quotient(
    evidence: Evidence, quantity: str, system: str, over: str, vs: str, mode: str, scale: float = 1.0
) -> Measured:
    """One quantity over another one, of the same or of another system; `scale` brings both to one unit."""
    first, second = positive(evidence.hot(quantity, system, mode)), positive(evidence.hot(over, vs, mode))
    return first.ratio(second).scaled(scale), TIMES


@_measure
def ratio_to_largest(evidence: Evidence, quantity: str, system: str, vs: list[str], mode: str) -> Measured:
    """The quantity of one system over the largest of others."""
    others = extreme([positive(evidence.hot(quantity, name, mode)) for name in vs], largest=True)
    return positive(evidence.hot(quantity, system, mode)).ratio(others), TIMES


@_measure
def difference_to_largest(evidence: Evidence, quantity: str, system: str, vs: list[str], mode: str) -> Measured:
    """The quantity of one system less the largest of others, for quantities that may be zero."""
    others = extreme([evidence.hot(quantity, name, mode) for name in vs], largest=True)
    return evidence.hot(quantity, system, mode).difference(others), unit_of(quantity)


@_measure
def largest(evidence: Evidence, quantity: str, systems: list[str], mode: str) -> Measured:
    """The quantity of the system that has the most of it."""
    return extreme([evidence.hot(quantity, name, mode) for name in systems], largest=True), unit_of(quantity)


@_measure
def spread(evidence: Evidence, quantity: str, systems: list[str], mode: str) -> Measured:
    """The largest over the smallest of several systems."""
    parts = [positive(evidence.hot(quantity, name, mode)) for name in systems]
    pairs = [a.ratio(b) for a in parts for b in parts if a is not b]
    return extreme(pairs, largest=True), TIMES


@_measure
def order(evidence: Evidence, quantity: str, systems: list[str], mode: str) -> Measured:
    """The smallest ratio of neighbours when systems stand in this order: above 1 if the quantity rises along it."""
    parts = [positive(evidence.hot(quantity, name, mode)) for name in systems]
    return extreme([after.ratio(before) for before, after in pairwise(parts)], largest=False), TIMES


@_measure
def mode_ratio(evidence: Evidence, quantity: str, system: str, inverse: bool = False) -> Measured:
    """The quantity in batches over that event by event, or the other way round."""
    single, batch = (positive(evidence.hot(quantity, system, mode)) for mode in MODES)
    return (single.ratio(batch) if inverse else batch.ratio(single)), TIMES


@_measure
def largest_mode_ratio(evidence: Evidence, quantity: str, systems: list[str]) -> Measured:
    """The largest of the systems' ratios of batches to single events."""
    return extreme([mode_ratio(evidence, quantity, name)[0] for name in systems], largest=True), TIMES


@_measure
def smallest_mode_ratio(evidence: Evidence, quantity: str, systems: list[str]) -> Measured:
    """The smallest of the systems' ratios of batches to single events."""
    return extreme([mode_ratio(evidence, quantity, name)[0] for name in systems], largest=False), TIMES


@_measure
def mode_ratio_to_largest(evidence: Evidence, quantity: str, system: str, vs: list[str]) -> Measured:
    """A system's ratio of batches to single events over the largest such ratio of others."""
    return mode_ratio(evidence, quantity, system)[0].ratio(largest_mode_ratio(evidence, quantity, vs)[0]), TIMES


@_measure
def cold_effect(evidence: Evidence, quantity: str, systems: list[str], mode: str) -> Measured:
    """Cold over hot, the geometric mean over systems."""
    return mean([evidence.cold_effect(quantity, name, mode) for name in systems]), TIMES


@_measure
def threads_ratio(evidence: Evidence, quantity: str, system: str, threads: list[int]) -> Measured:
    """The quantity with the first number of threads over that with the second, one run each."""
    many, few = (positive(evidence.one_run(quantity, system, count)) for count in threads)
    return many.ratio(few), TIMES


@_measure
def largest_threads_ratio(evidence: Evidence, quantity: str, systems: list[str], threads: list[int]) -> Measured:
    """The largest of the systems' ratios of many threads to few."""
    return extreme([threads_ratio(evidence, quantity, name, threads)[0] for name in systems], largest=True), TIMES


@_measure
def merge_over_flush(evidence: Evidence, system: str, vs: str, mode: str) -> Measured:
    """Time a row to merge the small files of one system over that to flush the inlined rows of another."""
    return evidence.merge(system, mode, vs).ratio(positive(evidence.hot("flush per row", vs, mode))), TIMES


@dataclass(frozen=True, slots=True)
class MeasureCall:
    """A measure with its arguments, as a claim names it."""

    name: str
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> MeasureCall:
        """ValueError when there is no such measure, or it does not take these arguments."""
        arguments = {key: item for key, item in given.items() if key != "name"}
        name = str(given.get("name"))
        if name not in REGISTRY:
            raise ValueError(f"found no measure '{name}'; allowed: {', '.join(REGISTRY)}")
        try:
            inspect.signature(REGISTRY[name]).bind(None, **arguments)
        except TypeError as error:
            raise ValueError(f"measure '{name}': {error}") from error
        known = {*METRICS, *QUANTITIES}
        for key in ("quantity", "over"):
            if key in arguments and arguments[key] not in known:
                raise ValueError(f"found no quantity '{arguments[key]}'; allowed: {', '.join(sorted(known))}")
        return cls(name, tuple(arguments.items()))

    def __call__(self, evidence: Evidence) -> Measured:
        """Absent when the runs cannot say it."""
        return REGISTRY[self.name](evidence, **dict(self.arguments))

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems that it looks at, each once."""
        found: list[str] = []
        for key, item in self.arguments:
            if key in ("system", "vs", "systems"):
                found += item if isinstance(item, list) else [item]
        return tuple(dict.fromkeys(found))

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that it looks at: the one it is told, single for threads, else both."""
        given = dict(self.arguments)
        if "threads" in given:
            return ("single",)
        return (str(given["mode"]),) if "mode" in given else MODES

    def __str__(self) -> str:
        """As a reader may quote it: ratio(quantity=write median, system=ducklake, ...)."""
        spelt = (
            f"{key}={'+'.join(map(str, item)) if isinstance(item, list) else item}" for key, item in self.arguments
        )
        return f"{self.name}({', '.join(spelt)})"
