"""Study of freshness, the age of the events that a table shows and the cost of a lower age: series and workload."""

from __future__ import annotations

from msgspec import UNSET

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.kafka import Kafka
from tidemark.services.polaris import Polaris
from tidemark.services.servers import out_of_reach
from tidemark.settings import or_else
from tidemark.studies.freshness.settings import PRODUCER, FreshnessSection, FreshnessSettings
from tidemark.studies.study import Study
from tidemark.systems.base import Capability, System, Variant
from tidemark.systems.object_store import is_in_bucket
from tidemark.systems.registry import spec_of
from tidemark.systems.sinks import StreamingSink
from tidemark.systems.tables import TableSystem

STUDY = Study(
    name="freshness",
    title="Freshness: consumers, connectors and engines that land a topic in a table",
    question="How old is an event when a reader of the table can see it, at which rate and at what cost?",
)


class Freshness(Workload):
    """Workload of one window: a running pipeline, events at a rate, and a wait until all of them are visible."""

    name = "freshness"
    measurement = 1
    runner = "tidemark.studies.freshness.runner"
    services = (Kafka,)
    excluded_groups = (Kafka.name, PRODUCER)
    ends_by_itself = True

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, with half of the longest drain."""
        return spec.window_seconds + FreshnessSettings.of(spec).drain_seconds / 2

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why it cannot run: also if the table has no history or only one writer, or no kill is possible."""
        system = variant.system
        if Capability.HISTORY not in system.capabilities:
            return f"{system.title}: its table does not tell when it was written to"
        if is_in_bucket(variant.options):
            return "how old events are is measured of tables on the local disk; storage is s3"
        refused = system.refuses_writers(variant.options) if issubclass(system, TableSystem) else None
        if issubclass(system, StreamingSink) and FreshnessSettings.of(spec).kills:
            refused = system.why_no_kill(variant.options, spec.services)
        return super().unavailable(spec, variant) or refused

    @property
    def warms_up(self) -> bool:
        """False: the pipeline is restarted for each window, and moves uncounted events before it."""
        return False


def section(config: Config) -> FreshnessSection:
    """Return the study's section, parsed and checked. Raises ConfigError if it is invalid."""
    found = FreshnessSection.read(config)
    ramp = found.sizes.ramp
    for name in () if ramp is UNSET else or_else(ramp.without, ()):
        found.check_name(name, (TableSystem, StreamingSink), "ramp", "without")
    return found


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    freshness = section(config)
    missing = config.services.why_no_polaris()
    made: list[SeriesSpec] = []
    for entry, chosen in freshness.systems(System):
        place = freshness.place("systems", entry.name)
        if not issubclass(chosen.system, TableSystem | StreamingSink):
            raise ConfigError(
                f"{place}: found '{entry.like}', which is {chosen.system.kind}; allowed: {TableSystem.kind}, or "
                f"{StreamingSink.kind}"
            )
        if missing and Polaris in chosen.needs:
            raise ConfigError(f"{place}: found catalog: polaris, but {missing}")
        unreached = out_of_reach((*Freshness.services, *chosen.needs), config.services)
        if unreached:
            raise ConfigError(f"{place}: {unreached}")
        for settings in freshness.cells(entry.name, issubclass(chosen.system, StreamingSink)):
            if settings.kills and Capability.READ_BACK not in chosen.system.capabilities:
                continue  # a system that stores nothing can lose nothing
            window_seconds = freshness.window_seconds(settings)
            made.append(spec_of(base, entry, chosen, settings, window_seconds=window_seconds, runs=1))
    return made


WORKLOAD = Freshness
