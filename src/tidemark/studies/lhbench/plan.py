"""Plan of the series: each system in each part, repeated as the protocol states, with a separate session per repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.lhbench.settings import PARTS, SECTION, LhbenchSection, LhbenchSettings
from tidemark.systems.registry import spec_of, variant, with_defaults
from tidemark.systems.spark_sql import SqlEngineTable


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """Return the series of `config` under one stack, in no particular order; `base` holds their common fields."""
    section = _section(config)
    master = section.given["engine"]["master"]
    if master is not None:
        base = replace(base, services=replace(config.services, spark_master=master))
    made: list[SeriesSpec] = []
    for given in section.measured:
        entry = with_defaults(given, section.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"), SqlEngineTable)
        for settings, repeats in _cells(section, given.name):
            spec = spec_of(
                base,
                entry,
                chosen,
                settings,
                window_seconds=float(section.sizes["window_seconds"]),
                runs=section.sizes["runs"],
            )
            made += [replace(spec, repeat=number) for number in range(1, repeats + 1)]
    return made


def _cells(section: LhbenchSection, system: str) -> Iterator[tuple[LhbenchSettings, int]]:
    """Yield each setting that a system is measured with, and its number of repeats."""
    for part in section.given["parts"]:
        sizes = section.part(part, system)
        if sizes is not None:
            yield from ((settings, sizes["repeats"]) for settings in PARTS[part].cells(section, sizes))


def limits(config: Config) -> list[str]:
    """Validate the settings and return no limits: a size that exceeds the disk ends its series with that reason."""
    section = _section(config)
    for each in section.measured:
        list(_cells(section, each.name))
    return []


def _section(config: Config) -> LhbenchSection:
    return LhbenchSection.parse(config.sections[SECTION], config.protocol, config.origin, config.seed)
