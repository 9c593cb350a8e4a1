"""The series of the study: each system in each part, as often as the protocol says, a session of its own each time."""

from __future__ import annotations

from dataclasses import replace

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.lhbench.parts import PARTS
from tidemark.studies.lhbench.settings import SECTION, LhbenchSection
from tidemark.systems.lakehouses.kind import Lakehouse
from tidemark.systems.variants import spec_of, variant, with_defaults


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """The series of `config` under one stack, in no particular order; `base` has what the series have in common."""
    section = _section(config)
    master = section.given["engine"]["master"]
    if master is not None:
        base = replace(base, services=replace(config.services, spark_master=master))
    made: list[SeriesSpec] = []
    for given in section.measured:
        entry = with_defaults(given, section.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"), Lakehouse)
        for part in section.given["parts"]:
            for settings in PARTS[part].cells(section):
                spec = spec_of(
                    base,
                    entry,
                    chosen,
                    settings,
                    window_seconds=float(section.sizes["window_seconds"]),
                    runs=section.sizes["runs"],
                )
                made += [replace(spec, repeat=number) for number in range(1, section.sizes["repeats"] + 1)]
    return made


def limits(config: Config) -> list[str]:
    """Nothing: sizes that do not fit on the disk end a series with that reason."""
    section = _section(config)
    for part in section.given["parts"]:
        list(PARTS[part].cells(section))
    return []


def _section(config: Config) -> LhbenchSection:
    return LhbenchSection.parse(config.sections[SECTION], config.protocol, config.origin, config.seed)
