"""Study of freshness, the age of the events that a table shows and the cost of a lower age: series and workload."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import UNSET

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.kafka import Kafka
from tidemark.services.servers import out_of_reach
from tidemark.settings import or_else
from tidemark.studies.freshness.settings import ALSO, PRODUCER, FreshnessSection, FreshnessSettings
from tidemark.studies.freshness.upkeep import Upkeep
from tidemark.studies.study import Study
from tidemark.systems.base import Capability, System, Variant
from tidemark.systems.object_store import is_in_bucket
from tidemark.systems.registry import SystemEntry, spec_of, variant, variant_of, with_defaults
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
    measurement = 2
    runner = "tidemark.studies.freshness.runner"
    services = (Kafka,)
    excluded_groups = (Kafka.name, PRODUCER)
    ends_by_itself = True

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, with half of the longest drain: none where a consumer maintains its table."""
        settings = FreshnessSettings.of(spec)
        if settings.upkeep:
            return 0.0 if cls.unavailable(spec, variant_of(spec)) else spec.window_seconds
        return spec.window_seconds + settings.drain_seconds / 2

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why it cannot run: also if the table has no history or only one writer, or no kill is possible."""
        system, settings = variant.system, FreshnessSettings.of(spec)
        if settings.upkeep and issubclass(system, TableSystem):
            kept = system.refuses_writers(variant.options)
            kept = kept or Upkeep.parse(settings.upkeep).refused_by(system, variant.options)
            if kept:
                return kept
        if Capability.HISTORY not in system.capabilities:
            return f"{system.title}: its table does not tell when it was written to"
        if is_in_bucket(variant.options):
            return "how old events are is measured of tables on the local disk; storage is s3"
        refused = system.refuses_writers(variant.options) if issubclass(system, TableSystem) else None
        if issubclass(system, StreamingSink) and settings.kills:
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
    upkeep = found.sizes.upkeep
    for name in () if upkeep is UNSET else upkeep.systems:
        found.check_name(name, (TableSystem,), "upkeep", "systems")
    return found


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    freshness = section(config)
    made: list[SeriesSpec] = []
    measured: dict[str, tuple[SystemEntry, Variant]] = {}
    for entry, chosen in freshness.systems(System):
        place = freshness.place("systems", entry.name)
        if not issubclass(chosen.system, TableSystem | StreamingSink):
            raise ConfigError(
                f"{place}: found '{entry.like}', which is {chosen.system.kind}; allowed: {TableSystem.kind}, or "
                f"{StreamingSink.kind}"
            )
        unreached = out_of_reach((*Freshness.services, *chosen.needs), config.services)
        if unreached:
            raise ConfigError(f"{place}: {unreached}")
        measured[entry.name] = (entry, chosen)
        for settings in freshness.cells(entry.name, issubclass(chosen.system, StreamingSink)):
            if settings.kills and Capability.READ_BACK not in chosen.system.capabilities:
                continue  # a system that stores nothing can lose nothing
            window_seconds = freshness.window_seconds(settings)
            made.append(spec_of(base, entry, chosen, settings, window_seconds=window_seconds, runs=1))
    measured |= _also(freshness, measured)
    for name, settings in freshness.upkeep_cells():
        if name in measured:
            entry, chosen = measured[name]
            if not issubclass(chosen.system, TableSystem):
                raise ConfigError(
                    f"{freshness.place_of_size('upkeep', 'systems')}: found '{name}', which is {chosen.system.kind}; "
                    f"allowed: {TableSystem.kind}, which Tidemark's own consumer writes to"
                )
            window_seconds = freshness.window_seconds(settings)
            made.append(spec_of(base, entry, chosen, settings, window_seconds=window_seconds, runs=1))
    return made


def _also(freshness: FreshnessSection, measured: Collection[str]) -> dict[str, tuple[SystemEntry, Variant]]:
    """Return the systems of `ALSO` that are not `measured`, while another one is for whose sake they are."""
    found: dict[str, tuple[SystemEntry, Variant]] = {}
    for name in (also for first, others in ALSO.items() if first in measured for also in others):
        if name not in measured:
            entry = with_defaults(SystemEntry.parse(name, {}), freshness.given)
            found[name] = (entry, variant(entry, freshness.config.origin))
    return found


WORKLOAD = Freshness
