"""Workload of the study: create a tree in a catalog, read and update it, and access it with many users at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.catalogs.settings import ALONE, CatalogSettings
from tidemark.studies.catalogs.tree import Tree
from tidemark.systems.base import Variant
from tidemark.systems.catalogs.base import CatalogSystem

REQUEST_SECONDS = 0.005  # per request, of one user or of many at once; 9 ms over PostgreSQL, below 1 in memory
KILL_SECONDS = 15.0  # of one kill, with the restart of a server and its database
COUNT_SECONDS = 8.0  # to count SQL statements, after the last window


class Catalogs(Workload):
    """Workload of users who send requests to a catalog one after another; run 0 is on a server that just started."""

    name = "catalogs"
    measurement = 1
    stage = "tidemark.studies.catalogs.window.stage"
    takes_trips = False
    ends_by_itself = True
    tools = ("locust",)

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

    @contextmanager
    def started(self, work: Path) -> Iterator[Iterator[int]]:
        """Yield the numbers of the session's windows, including those that are measured again."""
        del work
        yield count(1)

    @property
    def warms_up(self) -> bool:
        """False: a window is as long as its requests take, and the first one warms up the server for the others."""
        return False


WORKLOAD = Catalogs
