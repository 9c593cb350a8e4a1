"""Policies of upkeep: their series, their costs, and the sentence on those that no other one beats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tidemark.analysis.formatting import number
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.planner.frontier import PolicyCost, unbeaten
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.freshness.metrics import CPU, SEEN_P99, STALL, place_of, steady
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.studies.freshness.upkeep import Upkeep
from tidemark.systems.registry import registry
from tidemark.systems.sinks import StreamingSink


def upkeep_of(series: Series) -> Upkeep:
    return Upkeep.parse(FreshnessSettings.of(series).upkeep)


def maintained(run_set: RunSet) -> list[Series]:
    """Return the series with a policy of upkeep, also with none, by system, rate, commit policy and upkeep."""
    found = [each for each in run_set.select() if FreshnessSettings.of(each).upkeep]
    return sorted(found, key=lambda series: (*place_of(series), FreshnessSettings.of(series).upkeep))


def cost_of(measures: Measures, series: Series) -> PolicyCost:
    """Return the costs of the policy of `series`; raise NotAvailable if one of them was not measured."""
    require(series.runs, series.missing())
    fresh, cpu, stall = (measures.value(each, series).value for each in (SEEN_P99, CPU, STALL))
    settings = FreshnessSettings.of(series)
    policy = f"{settings.rules.words}, {upkeep_of(series).words}"
    return PolicyCost(series.system, series.title, series.stack, settings.rate, policy, fresh, cpu, stall)


def policy_costs(measures: Measures) -> list[tuple[Series, PolicyCost]]:
    """Return the series with a policy of upkeep whose tables hold each event once, and their costs."""
    found = []
    for series in maintained(measures.run_set):
        with suppress(NotAvailable):
            found.append((series, cost_of(measures, series)))
    return found


@dataclass(frozen=True, slots=True)
class PipelineCost:
    """Measured costs of a pipeline at its commit interval. Its stalls are not seen from outside."""

    series: Series
    fresh_s: float  # p99 of the ages of events when a reader saw them
    cpu_s: float  # CPU-seconds of the pipeline and the servers per million events

    @property
    def interval(self) -> str:
        return FreshnessSettings.of(self.series).policy

    @property
    def words(self) -> str:
        every = FreshnessSettings.of(self.series).rules.words
        return (
            f"{self.series.title} {every}: {number(self.fresh_s, 2)} s fresh, {number(self.cpu_s, 2)} CPU-s a million "
            "events"
        )


def pipeline_costs(measures: Measures, rate: int) -> list[PipelineCost]:
    """Return what the pipelines cost at `rate` events per second, of those whose tables hold each event once."""
    found = []
    for series in steady(measures.run_set):
        if FreshnessSettings.of(series).rate == rate and any(map(_is_of_pipeline, series.runs)):
            with suppress(NotAvailable):
                fresh, cpu = (measures.value(each, series).value for each in (SEEN_P99, CPU))
                found.append(PipelineCost(series, fresh, cpu))
    return found


def _is_of_pipeline(run: Run) -> bool:
    return issubclass(registry().get(run.manifest.system.base, object), StreamingSink)


def policies(measures: Measures) -> Iterator[PolicyCost]:
    """Yield the costs of the policies of upkeep under all stacks."""
    for series in measures.run_set.series:
        if FreshnessSettings.of(series).upkeep:
            with suppress(NotAvailable):
                yield cost_of(measures, series)


def frontier_sentence(costs: Sequence[PolicyCost]) -> str:
    """Return which policies no other one beats, for each rate; raise NotAvailable if there are no costs."""
    require(costs, "no policy of upkeep was measured")
    lines = []
    for rate in sorted({each.rate for each in costs}):
        of_rate = [each for each in costs if each.rate == rate]
        best = unbeaten(of_rate)
        lines.append(
            f"At {rate:,} events/s, {len(best)} of {len(of_rate)} policies are not beaten in p99 freshness, processor "
            f"time and longest stall at once. {'; '.join(each.sentence for each in best)}."
        )
    return " ".join(lines)
