"""Frontier of policies: those that no other one beats in all of their costs at once (the Pareto front)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemark.analysis.formatting import number
from tidemark.planner.prediction import REACH


@dataclass(frozen=True, slots=True)
class PolicyCost:
    """Measured costs of a policy, which is a commit interval with upkeep, for one system under one stack."""

    system: str
    title: str  # of the system
    stack: str
    rate: int  # events per second that were due
    policy: str  # in words
    fresh_s: float  # p99 of the ages of events when a reader saw them
    cpu_s: float  # CPU-seconds of the writer and the servers per million events
    stall_s: float  # longest time in which the writer took no events

    @property
    def costs(self) -> tuple[float, float, float]:
        return self.fresh_s, self.cpu_s, self.stall_s

    @property
    def name(self) -> str:
        return f"{self.title} {self.policy}"

    @property
    def sentence(self) -> str:
        """Policy with its costs: `DuckLake every 1 s, merge after 100 commits: 1.9 s fresh, 3.1 CPU-s ...`."""
        return (
            f"{self.name}: {number(self.fresh_s, 2)} s fresh, {number(self.cpu_s, 2)} CPU-s a million events, "
            f"longest stall {number(self.stall_s, 2)} s"
        )

    def beats(self, other: PolicyCost) -> bool:
        """Return True if it was measured under the same load, has no cost above the other's, and one below."""
        if (self.rate, self.stack) != (other.rate, other.stack):
            return False
        return self.costs != other.costs and all(own <= its for own, its in zip(self.costs, other.costs, strict=True))


def unbeaten(policies: Iterable[PolicyCost]) -> list[PolicyCost]:
    """Return those of `policies` that no other one beats, the freshest first."""
    every = list(policies)
    left = [each for each in every if not any(other.beats(each) for other in every)]
    return sorted(left, key=lambda each: (each.costs, each.name))


def near(rate: float, policies: Sequence[PolicyCost]) -> list[PolicyCost]:
    """Return the policies at the measured rate nearest to `rate`, if that is within a factor of REACH."""
    rates = sorted({each.rate for each in policies}, key=lambda measured: abs(math.log(measured / rate)))
    if not rates or abs(math.log(rates[0] / rate)) > math.log(REACH):
        return []
    return [each for each in policies if each.rate == rates[0]]


def cheapest_of_others(policies: Sequence[PolicyCost], best: Sequence[PolicyCost], fresh_s: float) -> list[PolicyCost]:
    """Return, for each system without a policy among `best`, the cheapest of `policies` that is as fresh as asked."""
    found: dict[tuple[str, str], PolicyCost] = {}
    for each in sorted(policies, key=lambda policy: policy.cpu_s):
        key = each.system, each.stack
        if each.fresh_s <= fresh_s and key not in {(other.system, other.stack) for other in best}:
            found.setdefault(key, each)
    return list(found.values())


def beaten_by(policy: PolicyCost, policies: Sequence[PolicyCost]) -> PolicyCost | None:
    """Return the unbeaten policy that beats `policy` with the least processor time; None if none does."""
    stronger = [each for each in unbeaten(policies) if each.beats(policy)]
    return min(stronger, key=lambda each: each.cpu_s, default=None)
