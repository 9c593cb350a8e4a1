"""Series of the study: each catalog server with each number of users."""

from __future__ import annotations

import itertools
from dataclasses import replace

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.runs.spec import SeriesSpec
from tidemark.services.polaris.server import Polaris
from tidemark.studies.catalogs.settings import SECTION, CatalogsSection
from tidemark.systems.catalogs.base import CatalogSystem
from tidemark.systems.registry import spec_of, variant, with_defaults


def section(config: Config) -> CatalogsSection:
    """Return the study's section, parsed and checked. Raises ConfigError if it is invalid."""
    catalogs = CatalogsSection.parse(config.sections[SECTION], config.protocol, config.origin)
    missing = config.services.why_no_polaris()
    for entry in catalogs.systems:
        needed = variant(entry, config.origin, (SECTION, "systems"), CatalogSystem).needs
        if missing and Polaris in needed:
            place = config.origin.place((SECTION, "systems", entry.name))
            raise ConfigError(f"{place}: found '{entry.like}', but {missing}")
    return catalogs


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """Return the series of `config` under one stack, in no particular order; `base` holds the fields that all share."""
    catalogs = section(config)
    made: list[SeriesSpec] = []
    for entry, users in itertools.product(catalogs.systems, catalogs.protocol.users):
        chosen = variant(entry, config.origin, (SECTION, "systems"), CatalogSystem)
        settings = catalogs.settings(users)
        spec = spec_of(
            base,
            with_defaults(entry, catalogs.given),
            chosen,
            settings,
            window_seconds=float(catalogs.protocol.window_seconds),
            runs=catalogs.protocol.runs,
        )
        made += [replace(spec, repeat=number) for number in range(1, catalogs.protocol.repeats + 1)]
    return made


def limits(config: Config) -> list[str]:
    """Check the section and return no limits: users are connections, which no number of processors limits."""
    section(config)
    return []
