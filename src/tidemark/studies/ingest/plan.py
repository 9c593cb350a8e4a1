"""Plan of the study: the series of all its parts, each of which plans its own."""

from __future__ import annotations

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.runs.spec import SeriesSpec
from tidemark.services.polaris import Polaris
from tidemark.studies.ingest.parts import PARTS
from tidemark.studies.ingest.settings import SECTION, IngestSection
from tidemark.systems.registry import spec_of, variant, with_defaults
from tidemark.systems.tables import TableSystem


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """Return the series of `config` under one stack, in no particular order; `base` has the fields that they share."""
    ingest = _section(config)
    missing = config.services.why_no_polaris()
    made: list[SeriesSpec] = []
    for given, settings in (cell for part in PARTS.values() for cell in part.cells(ingest)):
        entry = with_defaults(given, ingest.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"), TableSystem)
        if missing and Polaris in chosen.needs:
            place = config.origin.place((SECTION, "systems", entry.name))
            raise ConfigError(f"{place}: found catalog: polaris, but {missing}")
        spec = spec_of(
            base,
            entry,
            chosen,
            settings,
            window_seconds=float(ingest.sizes["window_seconds"]),
            runs=ingest.sizes["runs"],
        )
        made += settings.series(spec, ingest, chosen, config)
    return made


def limits(config: Config) -> list[str]:
    """Check the section and return no limits: more writers than processors are what the study examines."""
    for part in PARTS.values():
        list(part.cells(_section(config)))
    return []


def _section(config: Config) -> IngestSection:
    return IngestSection.parse(config.sections[SECTION], config.protocol, config.origin)
