"""Measures of claims: named functions that compute a number with its interval and unit from evidence.

A study's claims name them with their arguments. All of them compare hot runs with hot runs, except for the cold
effect. Studies add their own measures to a mapping like GENERAL.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tidemark.analysis.metrics import Metric, MetricSet, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.claims.claim_data import ClaimData, extreme, mean, positive

type Measured = tuple[BootstrapEstimate, str]
TIMES = "x"  # unit of a ratio
OF_QUANTITIES = ("quantity", "over")  # arguments that claims specify as names of quantities


@dataclass(frozen=True, slots=True)
class Measure:
    """A registered measure. `modes` are those that it uses if no argument names one."""

    name: str
    compute: Callable[..., Measured]
    modes: tuple[str, ...] = ()


GENERAL: dict[str, Measure] = {}
UNMEASURED: dict[str, Measure] = {}  # for studies with claims that cannot be measured here


def measure[**Arguments](
    registry: dict[str, Measure], modes: tuple[str, ...] = ()
) -> Callable[[Callable[Arguments, Measured]], Callable[Arguments, Measured]]:
    """Return a decorator that adds a function to `registry`, under its name with hyphens."""

    def put(function: Callable[Arguments, Measured]) -> Callable[Arguments, Measured]:
        name = function.__name__.replace("_", "-")
        registry[name] = Measure(name, function, modes)
        return function

    return put


@measure(GENERAL)
def value(claim_data: ClaimData, quantity: Metric, system: str, mode: str) -> Measured:
    """Return the quantity of the typical hot run; shares in percent."""
    return quantity.as_shown(claim_data.hot(quantity, system, mode)), quantity.shown_unit


@measure(GENERAL)
def ratio(claim_data: ClaimData, quantity: Metric, system: str, vs: str, mode: str) -> Measured:
    """Return the quantity of one system over that of another."""
    first, second = (positive(claim_data.hot(quantity, name, mode)) for name in (system, vs))
    return first.ratio(second), TIMES


@measure(GENERAL)
def difference(claim_data: ClaimData, quantity: Metric, system: str, vs: str, mode: str) -> Measured:
    """Return the quantity of one system minus that of another."""
    return claim_data.hot(quantity, system, mode).difference(claim_data.hot(quantity, vs, mode)), quantity.unit


@measure(GENERAL)
def quotient(
    claim_data: ClaimData, quantity: Metric, system: str, over: Metric, vs: str, mode: str, scale: float = 1.0
) -> Measured:
    """Return one quantity over another, of the same or another system; `scale` converts both to one unit."""
    first, second = positive(claim_data.hot(quantity, system, mode)), positive(claim_data.hot(over, vs, mode))
    return first.ratio(second).scaled(scale), TIMES


@measure(GENERAL)
def ratio_to_largest(claim_data: ClaimData, quantity: Metric, system: str, vs: list[str], mode: str) -> Measured:
    """Return the quantity of one system over the largest of the systems in `vs`."""
    one = positive(claim_data.hot(quantity, system, mode))
    ratios = [one.ratio(positive(claim_data.hot(quantity, name, mode))) for name in vs]
    return extreme(ratios, largest=False), TIMES


@measure(GENERAL)
def difference_to_largest(claim_data: ClaimData, quantity: Metric, system: str, vs: list[str], mode: str) -> Measured:
    """Return the quantity of one system minus the largest of the systems in `vs`, for quantities that may be zero."""
    one = claim_data.hot(quantity, system, mode)
    differences = [one.difference(claim_data.hot(quantity, name, mode)) for name in vs]
    return extreme(differences, largest=False), quantity.unit


@measure(GENERAL)
def largest(claim_data: ClaimData, quantity: Metric, systems: list[str], mode: str) -> Measured:
    """Return the largest value of the quantity among `systems`."""
    return extreme([claim_data.hot(quantity, name, mode) for name in systems], largest=True), quantity.unit


@measure(GENERAL)
def spread(claim_data: ClaimData, quantity: Metric, systems: list[str], mode: str) -> Measured:
    """Return the largest over the smallest value among `systems`."""
    parts = [positive(claim_data.hot(quantity, name, mode)) for name in systems]
    pairs = [a.ratio(b) for a in parts for b in parts if a is not b]
    return extreme(pairs, largest=True), TIMES


@measure(GENERAL)
def order(claim_data: ClaimData, quantity: Metric, systems: list[str], mode: str) -> Measured:
    """Return the smallest ratio of neighbours in the order of `systems`: above 1 if the quantity rises along it."""
    parts = [positive(claim_data.hot(quantity, name, mode)) for name in systems]
    return extreme([after.ratio(before) for before, after in pairwise(parts)], largest=False), TIMES


@measure(GENERAL)
def cold_effect(claim_data: ClaimData, quantity: Metric, systems: list[str], mode: str) -> Measured:
    """Return cold over hot, as the geometric mean over `systems`."""
    return mean([claim_data.cold_effect(quantity, name, mode) for name in systems]), TIMES


@measure(UNMEASURED)
def not_here(_evidence: ClaimData, reason: str) -> Measured:
    """Raise NotAvailable with `reason`: the claim cannot be measured here, or is no measurement."""
    raise NotAvailable(reason)


@dataclass(frozen=True, slots=True)
class MeasureCall:
    """A measure with its arguments, as specified by a claim."""

    measure: Measure
    arguments: tuple[tuple[str, Any], ...]

    @classmethod
    def parse(cls, given: Mapping[str, Any], measures: Mapping[str, Measure], quantities: MetricSet) -> MeasureCall:
        """Return the call; raise ValueError for an unknown measure or quantity, or if the arguments do not fit."""
        arguments = {key: item for key, item in given.items() if key != "name"}
        name = str(given.get("name"))
        if name not in measures:
            raise ValueError(f"found no measure '{name}'; allowed: {', '.join(measures)}")
        try:
            inspect.signature(measures[name].compute).bind(None, **arguments)
        except TypeError as error:
            raise ValueError(f"measure '{name}': {error}") from error
        known = quantities.names
        for key in OF_QUANTITIES:
            if key in arguments:
                if arguments[key] not in known:
                    raise ValueError(f"found no quantity '{arguments[key]}'; allowed: {', '.join(sorted(known))}")
                arguments[key] = known[arguments[key]]
        return cls(measures[name], tuple(arguments.items()))

    def __call__(self, claim_data: ClaimData) -> Measured:
        """Return the measured number and its unit; raise NotAvailable if the runs do not provide it."""
        return self.measure.compute(claim_data, **dict(self.arguments))

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def systems(self) -> tuple[str, ...]:
        """Systems that it uses, each once."""
        found: list[str] = []
        for key, item in self.arguments:
            if key in ("system", "vs", "systems", "by") and isinstance(item, str | list):
                found += item if isinstance(item, list) else [item]
        return tuple(dict.fromkeys(found))

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes that it uses: the one in its arguments, else those of the measure."""
        given = dict(self.arguments)
        return (str(given["mode"]),) if "mode" in given else self.measure.modes

    def __str__(self) -> str:
        """Return the call as text: ratio(quantity=write median, system=ducklake, ...)."""
        return f"{self.name}({', '.join(f'{key}={_spelt(item)}' for key, item in self.arguments)})"


def _spelt(item: object) -> str:
    if isinstance(item, Metric):
        return item.name
    return "+".join(map(str, item)) if isinstance(item, list) else str(item)
