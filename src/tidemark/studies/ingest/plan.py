"""The series of the study: each system with each number of writers, on one table and a table each, and with kills."""

from __future__ import annotations

from dataclasses import replace

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.runs.spec import SeriesSpec
from tidemark.schema import one_of
from tidemark.services.polaris.server import Polaris
from tidemark.services.servers import started_here
from tidemark.studies.ingest.settings import KILL_SECONDS, SECTION, FaultSettings, IngestSection
from tidemark.systems import of_kind
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem
from tidemark.systems.variants import variant, with_defaults


def section(config: Config) -> IngestSection:
    """The study's section, parsed and checked; ConfigError for what is wrong with it."""
    ingest = IngestSection.parse(config.sections[SECTION], config.protocol, config.origin)
    known = {entry.name for entry in ingest.systems} | set(of_kind(TableSystem))
    for name in ingest.protocol.group.systems:
        one_of(
            name,
            dict.fromkeys(sorted(known)),
            (SECTION, "protocols", config.protocol, "group", "systems"),
            config.origin,
        )
    return ingest


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """The series of `config` under one stack, in no particular order; `base` has what the series have in common."""
    ingest = section(config)
    missing = config.services.why_no_polaris()
    made: list[SeriesSpec] = []
    for given, settings in ((each, cell) for each in ingest.systems for cell in ingest.cells(each.name)):
        entry = with_defaults(given, ingest.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"), TableSystem)
        if missing and Polaris in chosen.needs:
            place = config.origin.place((SECTION, "systems", entry.name))
            raise ConfigError(f"{place}: found catalog: polaris, but {missing}")
        spec = replace(
            base,
            name=entry.name,
            title=chosen.title,
            system=entry.like,
            options=entry.options,
            mode=settings.label,
            settings=settings.pairs,
            window_seconds=float(ingest.protocol.window_seconds),
            runs=ingest.protocol.runs,
        )
        if isinstance(settings, FaultSettings):
            if Capability.READ_BACK not in chosen.system.capabilities:
                continue  # where nothing is kept, nothing can be lost
            killed = 1 + sum(not kind.is_instrument for kind in started_here(chosen.needs, config.services))
            made.append(replace(spec, window_seconds=KILL_SECONDS * settings.kills * killed, runs=1))
            continue
        made += [replace(spec, repeat=number) for number in range(1, ingest.protocol.repeats + 1)]
    return made


def limits(config: Config) -> list[str]:
    """Nothing: more writers than processors are what the study asks about."""
    section(config)
    return []
