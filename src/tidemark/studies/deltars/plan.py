"""Plan of the series: each system with each table and each number of the client's processors."""

from __future__ import annotations

from dataclasses import replace

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.deltars.settings import SECTION, DeltarsSection, processors
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.registry import spec_of, variant, with_defaults


def section(config: Config) -> DeltarsSection:
    """Return the study's section, parsed and validated; ConfigError if it is invalid."""
    return DeltarsSection.parse(config.sections[SECTION], config.protocol, config.origin)


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """Return the series of `config` under one stack, in no particular order; `base` holds their common fields."""
    deltars = section(config)
    made: list[SeriesSpec] = []
    for given in deltars.systems:
        # Checked first, so that a system of another kind is refused by its name.
        variant(given, config.origin, (SECTION, "systems"), BulkTable)
        entry = with_defaults(given, deltars.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"), BulkTable)
        assert issubclass(chosen.system, BulkTable)
        for settings in deltars.cells(entry.name, chosen.system.is_slow):
            longest = settings.repetitions * 2 * settings.timeout_seconds
            spec = spec_of(base, entry, chosen, settings, window_seconds=longest, runs=1)
            made += [replace(spec, cpus=settings.cores, repeat=number) for number in range(1, deltars.repeats + 1)]
    return made


def limits(config: Config) -> list[str]:
    """Return a message with the planned numbers of processors that this machine does not have; empty if none."""
    beyond = section(config).beyond()
    if not beyond:
        return []
    asked = ", ".join(map(str, beyond))
    return [f"study 'deltars': clients with {asked} processors were asked for, this machine has {processors()}"]
