"""SQL statements per request, counted after the last window of a series, because counting slows each of them.

The database is restarted with its counter, and then the servers that use it. A first tree is created uncounted, to
open connections and fill caches; on a second one, each step's statements are counted.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from tidemark.measure.workload import Rig, Show
from tidemark.paths import private_directory
from tidemark.services.postgres import Postgres
from tidemark.studies.catalogs.load.generator import Generator
from tidemark.studies.catalogs.settings import COUNTED_DEPTH, COUNTED_REQUESTS, CREATE, CatalogSettings
from tidemark.studies.catalogs.tree import Tree
from tidemark.studies.catalogs.window.phases import Phase, phases
from tidemark.systems.catalogs.base import CatalogSystem

PARTS = (CREATE, "read", "update", "hot", "append")  # parts whose statements are counted, if a window has them
LONGEST_S = 120.0


def why_not(rig: Rig, system: CatalogSystem) -> str | None:
    """Return why no statements are counted, or None if they are."""
    if not system.stores:
        return "keeps nothing"
    if any(rig.servers.by_class[kind].is_external for kind in rig.variant.needs):
        return "its server was not started here"
    if "statements" in system.counters():
        return "counted in its windows, at no cost: see the steps"
    if system.postgres is None:
        return "its backend is no server that counts SQL statements, or takes none"
    if system.postgres[0].is_external:
        return "its PostgreSQL was not started here"
    return None


def count(
    rig: Rig, settings: CatalogSettings, system: CatalogSystem, directory: Path, mark: str, private: Path, show: Show
) -> dict[str, Any]:
    """Return the statements and requests of each step as JSON data, or the reason why there are none.

    `mark` distinguishes its trees from all others.
    """
    if (reason := why_not(rig, system)) is not None:
        return {"excused": reason}
    assert system.postgres is not None
    postgres, database = system.postgres
    show("counting SQL statements")
    servers = rig.servers.by_class.values()
    clients = [each for each in servers if Postgres in each.needs and not each.is_instrument]
    for server in reversed(clients):
        server.stop()
    postgres.count_statements()
    for server in clients:
        server.start()
    system.reconnect()
    asked = _asked(settings, system, rig.spec.seed, mark)
    steps: list[dict[str, Any]] = []
    deadline = time.monotonic() + LONGEST_S
    folder = private_directory(directory / "statements")
    with Generator.of(system, private, folder, asked, settings.timeout_seconds) as generator:
        numbered = enumerate(asked)
        for (part, step), together in groupby(numbered, key=lambda each: (each[1].part, each[1].step)):
            played, before = list(together), postgres.statements(database)
            for number, _ in played:
                if generator.play(number, deadline) is None:
                    generator.abandon()
                    return {"excused": f"'{step}' was not answered within {LONGEST_S:g} s"}
            ended = postgres.statements(database) - before
            requests = sum(len(phase.requests) for _, phase in played)
            steps.append({"part": part, "name": step, "requests": requests, "statements": ended})
        status = iter(generator.played().columns["status"])
    for each in steps:
        each["succeeded"] = sum(200 <= code < 300 for code in islice(status, each["requests"]))
    return {"steps": [each for each in steps if each.pop("part")]}


def _asked(settings: CatalogSettings, system: CatalogSystem, seed: int, mark: str) -> list[Phase]:
    """Return all phases; those of the first tree, whose statements are not counted, belong to no part."""
    parts = [part for part in settings.parts.split(",") if part in PARTS]
    small = replace(settings, depth=COUNTED_DEPTH, parts=",".join(parts), hot_updates=COUNTED_REQUESTS)
    small = replace(small, appends=COUNTED_REQUESTS)
    trees = [Tree(small.depth, name) for name in (f"{mark}_opening", mark)]
    opening, counted = (phases(small, tree, seed, system.requests) for tree in trees)
    return [*(replace(phase, part="") for phase in opening), *counted]
