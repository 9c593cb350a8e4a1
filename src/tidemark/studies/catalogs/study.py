"""Study of the report on a catalog's persistence: its series, and the workload of their windows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, product
from pathlib import Path

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.polaris import Polaris
from tidemark.studies.catalogs.requests import Tree, phases
from tidemark.studies.catalogs.settings import ALONE, SECTION, CatalogSettings, CatalogsSection
from tidemark.studies.study import Study
from tidemark.systems.base import Variant
from tidemark.systems.catalogs.base import CatalogSystem
from tidemark.systems.registry import repeated, spec_of, variant, with_defaults

STUDY = Study(
    name="catalogs",
    title="Apache Polaris persistence: EclipseLink with PostgreSQL against a new layer with MongoDB",
    question="What does each operation of a catalog cost, alone and with many users at once?",
)
REQUEST_SECONDS = 0.005  # per request, of one user or of many at once; 9 ms over PostgreSQL, below 1 in memory
KILL_SECONDS = 15.0  # of one kill, with the restart of a server and its database
COUNT_SECONDS = 8.0  # to count SQL statements, after the last window


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
    catalogs = section(config)
    made: list[SeriesSpec] = []
    for entry, users in product(catalogs.systems, catalogs.protocol.users):
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
        made += repeated(spec, catalogs.protocol.repeats)
    return made


class Catalogs(Workload):
    """Workload of users who send requests to a catalog one after another; run 0 is on a server that just started."""

    name = "catalogs"
    measurement = 1
    runner = "tidemark.studies.catalogs.window.runner"
    takes_trips = False
    ends_by_itself = True
    tools = ("locust",)

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, from measurements of such servers on two processors."""
        settings = CatalogSettings.of(spec)
        asked = phases(settings, Tree(settings.depth, ""), spec.seed)
        closed = sum(len(phase.requests) for phase in asked if phase.due_s is None)
        opened = sum(settings.open_seconds for phase in asked if phase.due_s is not None)
        after = (settings.kills * KILL_SECONDS + COUNT_SECONDS) / spec.runs  # only the last run has them
        return min(spec.window_seconds, opened + closed * REQUEST_SECONDS) + after

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        system, users = variant.system, CatalogSettings.of(spec).users
        if issubclass(system, CatalogSystem) and system.alone is not None and users > ALONE:
            return f"{system.alone}: measured with one user, and not with {users}"
        return super().unavailable(spec, variant)

    @contextmanager
    def start_processes(self, work: Path) -> Iterator[Iterator[int]]:
        """Yield the numbers of the session's windows, including those that are measured again."""
        del work
        yield count(1)

    @property
    def warms_up(self) -> bool:
        """False: a window is as long as its requests take, and the first one warms up the server for the others."""
        return False


WORKLOAD = Catalogs
