"""Workload of the study: create a tree in a catalog, read and update it, and access it with many users at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine.sampler import Group
from tidemark.measure.workload import Rig, Show, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.catalogs.settings import ALONE, CatalogSettings
from tidemark.studies.catalogs.tree import Tree
from tidemark.systems.base import Variant
from tidemark.systems.catalogs.kind import CatalogSystem

if TYPE_CHECKING:
    from tidemark.studies.catalogs.load.generator import Generator
    from tidemark.studies.catalogs.window.phases import Phase
    from tidemark.studies.catalogs.window.stage import CatalogStage

GENERATOR = "load generator"
REQUEST_SECONDS = 0.005  # per request, of one user or of many at once; 9 ms over PostgreSQL, below 1 in memory
KILL_SECONDS = 15.0  # of one kill, with the restart of a server and its database
COUNT_SECONDS = 8.0  # to count SQL statements, after the last window


class Catalogs(Workload):
    """Workload of users who send requests to a catalog one after another; run 0 is on a server that just started."""

    name = "catalogs"
    measurement = 1
    takes_trips = False
    ends_by_itself = True
    tools = ("locust",)

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = CatalogSettings.of(spec)
        self._generator: Generator | None = None
        self._windows = 0  # of this session, including those that were measured again

    def mark(self, name: str) -> str:
        """Return the name that distinguishes a window's tree from all others in the same catalog."""
        self._windows += 1
        return f"{name.replace('-', '_')}_{self._windows}"

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, from measurements of such servers on two processors."""
        from tidemark.studies.catalogs.window.phases import phases

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

    def started(self, work: Path) -> AbstractContextManager[None]:
        del work  # the load generator belongs to a window: it gets its requests when it starts
        return nullcontext()

    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[CatalogStage]:
        from tidemark.studies.catalogs.window.stage import staged

        del seconds  # a window is as long as its requests take
        return staged(self, rig, name, show)

    def phases(self, tree: Tree) -> list[Phase]:
        """Return the phases of a window; the same tree gets the same phases."""
        from tidemark.studies.catalogs.window.phases import POOL, phases

        system = self.variant.system
        assert issubclass(system, CatalogSystem)
        return phases(self.settings, tree, self.spec.seed, system.requests, ALONE if system.alone else POOL)

    @contextmanager
    def playing(self, generator: Generator) -> Iterator[None]:
        """Attribute the process of `generator` to the load generator's group while the context is open."""
        self._generator = generator
        try:
            yield
        finally:
            self._generator = None

    def groups(self) -> Mapping[str, Group]:
        return {GENERATOR: Group(lambda: self._generator.pids if self._generator else [])}

    def has_ended(self) -> bool:
        return self._generator is not None and self._generator.has_ended()

    @property
    def warms_up(self) -> bool:
        """False: a window is as long as its requests take, and the first one warms up the server for the others."""
        return False


WORKLOAD = Catalogs
