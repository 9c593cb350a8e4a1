"""Series of the study: each system with each policy and each rate, one with kills, and one with a rising rate."""

from __future__ import annotations

from msgspec import UNSET

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.runs.spec import SeriesSpec
from tidemark.schema import system_of
from tidemark.services.polaris import Polaris
from tidemark.services.servers import out_of_reach
from tidemark.settings import or_else
from tidemark.studies.freshness.settings import SECTION, FreshnessSection
from tidemark.studies.freshness.workload import WORKLOAD
from tidemark.systems.base import Capability
from tidemark.systems.registry import of_kind, spec_of, variant, with_defaults
from tidemark.systems.sinks import StreamingSink
from tidemark.systems.tables import TableSystem


def section(config: Config) -> FreshnessSection:
    """Return the study's section, parsed and checked. Raises ConfigError if it is invalid."""
    found = FreshnessSection.parse(config.sections[SECTION], config.protocol, config.origin)
    ramp = found.protocol.ramp
    for name in () if ramp is UNSET else or_else(ramp.without, ()):
        place = (SECTION, "protocols", config.protocol, "ramp", "without")
        known = [*of_kind(TableSystem), *of_kind(StreamingSink)]
        system_of(name, SECTION, found.given["systems"], known, place, config.origin)
    return found


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """Return the series of `config` under one stack, in no particular order; `base` holds the fields that all share."""
    freshness = section(config)
    missing = config.services.why_no_polaris()
    made: list[SeriesSpec] = []
    for given in freshness.systems:
        entry = with_defaults(given, freshness.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"))
        place = config.origin.place((SECTION, "systems", entry.name))
        if not issubclass(chosen.system, TableSystem | StreamingSink):
            raise ConfigError(
                f"{place}: found '{entry.like}', which is {chosen.system.kind}; allowed: {TableSystem.kind}, or "
                f"{StreamingSink.kind}"
            )
        if missing and Polaris in chosen.needs:
            raise ConfigError(f"{place}: found catalog: polaris, but {missing}")
        unreached = out_of_reach((*WORKLOAD.services, *chosen.needs), config.services)
        if unreached:
            raise ConfigError(f"{place}: {unreached}")
        for settings in freshness.cells(entry.name, issubclass(chosen.system, StreamingSink)):
            if settings.kills and Capability.READ_BACK not in chosen.system.capabilities:
                continue  # a system that stores nothing can lose nothing
            window_seconds = freshness.window_seconds(settings)
            made.append(spec_of(base, entry, chosen, settings, window_seconds=window_seconds, runs=1))
    return made


def limits(config: Config) -> list[str]:
    """Check the section and return no limits: a rate that is too high for a system is what the study looks for."""
    section(config)
    return []
