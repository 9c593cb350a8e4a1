"""Study of the report on a catalog's persistence: its series, and the workload of their windows."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from itertools import count, product
from pathlib import Path

from msgspec import UNSET

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.settings import or_else
from tidemark.studies.catalogs.config import Protocol
from tidemark.studies.catalogs.record import ALONE, CRASH, CREATE, CatalogSettings, longest_path
from tidemark.studies.catalogs.requests import Tree, phases
from tidemark.studies.section import Section
from tidemark.studies.study import Study
from tidemark.systems.base import Variant
from tidemark.systems.catalogs.base import CatalogSystem
from tidemark.systems.registry import repeated, spec_of

STUDY = Study(
    name="catalogs",
    title="Apache Polaris persistence: EclipseLink with PostgreSQL against a new layer with MongoDB",
    question="What does each operation of a catalog cost, alone and with many users at once?",
)
REQUEST_SECONDS = 0.005  # per request, of one user or of many at once; 9 ms over PostgreSQL, below 1 in memory
KILL_SECONDS = 15.0  # of one kill, with the restart of a server and its database
COUNT_SECONDS = 8.0  # to count SQL statements, after the last window
CRASH_USERS = 8  # users during kills
LONGEST_PATH = 255  # characters of a namespace's path that fit into the reference server's databases


def section(config: Config) -> Section[Protocol]:
    """Return the study's section. Raises ConfigError, with the place of the key, for what cannot be measured."""
    found = Section.of(config, STUDY.name, Protocol)
    for key, depth in (("depth", found.sizes.depth), ("concurrent_depth", found.sizes.concurrent_depth)):
        if depth is not UNSET and longest_path(depth) > LONGEST_PATH:
            allowed = max(each for each in range(1, 21) if longest_path(each) <= LONGEST_PATH)
            raise ConfigError(
                f"{found.place_of_size(key)}: found {depth}; allowed: at most {allowed}, because catalogs keep a "
                f"namespace's path in {LONGEST_PATH} characters"
            )
    parts = found.given["parts"]
    if parts[0] != CREATE:
        raise ConfigError(
            f"{found.place('parts')}: found '{parts[0]}' first; allowed: '{CREATE}', without which there is nothing to "
            "read or to update"
        )
    if CRASH in parts[:-1]:
        raise ConfigError(
            f"{found.place('parts')}: found '{CRASH}' before '{parts[-1]}'; allowed: '{CRASH}' at the end, because a "
            "server that was killed is not the one that the other parts measure"
        )
    return found


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    catalogs = section(config)
    sizes = catalogs.sizes
    made: list[SeriesSpec] = []
    for (entry, chosen), users in product(catalogs.systems(CatalogSystem), sizes.users):
        settings, window_s = settings_with(catalogs, users), float(sizes.window_seconds)
        spec = spec_of(base, entry, chosen, settings, window_seconds=window_s, runs=sizes.runs)
        made += repeated(spec, sizes.repeats)
    return made


def settings_with(catalogs: Section[Protocol], users: int) -> CatalogSettings:
    """Return the settings of a series with this number of users.

    Servers are killed with CRASH_USERS, or with the nearest lower number that is measured.
    """
    sizes, given, several = catalogs.sizes, catalogs.given, users > ALONE
    killed = max((each for each in sizes.users if each <= CRASH_USERS), default=min(sizes.users))
    return CatalogSettings(
        users=users,
        depth=or_else(sizes.concurrent_depth, sizes.depth) if several else sizes.depth,
        parts=",".join(given["parts"]),
        mixed_requests=sizes.mixed_requests,
        open_seconds=float(sizes.open_seconds),
        rate=float(sizes.concurrent_rate if several else sizes.sequential_rate),
        hot_updates=sizes.hot_updates,
        appends=sizes.appends,
        races=sizes.races,
        churns=sizes.churns,
        kills=sizes.kills if CRASH in given["parts"] and users == killed else 0,
        timeout_seconds=float(given["timeout_seconds"]),
    )


class Catalogs(Workload):
    """Workload of users who send requests to a catalog one after another; run 0 is on a server that just started."""

    name = "catalogs"
    measurement = 1
    runner = "tidemark.studies.catalogs.window.runner"
    takes_trips = False
    ends_by_itself = True
    warms_up = False  # a window is as long as its requests take, and the first one warms up the server for the others
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

    def start_processes(self, _work: Path) -> AbstractContextManager[count[int]]:
        """Yield the numbers of the session's windows, including those that are measured again."""
        return nullcontext(count(1))


WORKLOAD = Catalogs
