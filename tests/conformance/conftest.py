"""The servers that systems need, started once for all tests, and tables opened for one test each."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import Service, Surroundings
from tidemark.services.http import keep_loopback_direct
from tidemark.services.polaris.server import Polaris
from tidemark.software.tools import packages, provide_tool
from tidemark.systems import releases
from tidemark.systems.base import Context, System, take

SINCE = {"ducklake-quack": (1, 5, 5)}  # the oldest DuckDB that has a system's extensions
ODD = 'a b ü # "c" %d'  # the name of a folder, with what a URI encodes and what means something to a library
PACKAGE = {"paimon": "pypaimon"}  # of a client that not all stacks have
OF_A_STACK = "TIDEMARK_TEST_OF_A_STACK"  # set where the suite runs once more, with a stack's libraries
POLARIS = os.environ.get("TIDEMARK_TEST_POLARIS")


# What DuckLakes have in common whatever their catalog is: asked of PostgreSQL's and the file's alone, unless in full.
CATALOGS = ("ducklake-sqlite", "ducklake-quack")
IN_COMMON = {
    "test_green_trips",
    "test_codec_in_every_file",
    "test_threads_are_what_was_asked_for",
    "test_closes_twice",
    "test_writes_after_a_read",
    "test_full_durability_syncs_data_and_metadata_of_each_write",
    "test_full_durability_leaves_out_no_file_of_a_write",
    "test_files_of_one_client_are_committed_at_once_by_another",
    "test_with_each_setting",
    "test_a_commit_is_found_by_its_token",
}


# With a stack's libraries Lance is what it is without them; its reader takes seconds to load there.
OF_NO_STACK = ("lance",)


def pytest_itemcollected(item: pytest.Item) -> None:
    names = (*CATALOGS, *OF_NO_STACK) if OF_A_STACK in os.environ else CATALOGS
    if getattr(item, "originalname", "") in IN_COMMON and any(f"[{name}" in item.name for name in names):
        item.add_marker(pytest.mark.long)


class Servers:
    """Starts a server, and those that it needs, when it is first asked for."""

    def __init__(self, workspace: Workspace, stack: ExitStack) -> None:
        self.workspace = workspace
        self._stack = stack
        self._running: dict[type[Service], Service] = {}

    def get(self, kind: type[Service]) -> Service:
        if kind is Polaris and POLARIS is None:
            pytest.skip("no Polaris is in a package registry; TIDEMARK_TEST_POLARIS names a distribution")
        if kind not in self._running:
            for name in kind.tools:
                provide_tool(name, self.workspace)
            for needed in kind.needs:
                self.get(needed)
            directory = self.workspace.work / kind.name
            config = ServicesConfig(polaris_path=POLARIS)
            service = kind.from_config(Surroundings(self.workspace, directory, config, self._running))
            self._running[kind] = self._stack.enter_context(service)
        return self._running[kind]

    def tools(self, kind: type[System]) -> dict[str, Path]:
        """The packages of a system's tools, which this process can import from then on."""
        for name in kind.tools:
            provide_tool(name, self.workspace)
        found = packages(kind.tools, self.workspace)
        take(found.values())
        return found


def is_here(kind: type[System]) -> bool:
    """Whether this stack has what the system was written for."""
    package = PACKAGE.get(kind.name)
    return releases.parse_version(duckdb.__version__) >= SINCE.get(kind.name, (0,)) and (
        package is None or importlib.util.find_spec(package) is not None
    )


def skip_where_it_is_not(kind: type[System]) -> None:
    if not is_here(kind):
        pytest.skip(str(kind.unavailable(kind.Options())))


# They end with these tests: the pipeline's own look at what is in the page cache, and must be alone with it.
@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Servers]:
    assert cache
    keep_loopback_direct()
    with ExitStack() as stack:
        yield Servers(Workspace(tmp_path_factory.mktemp("conformance")), stack)


@pytest.fixture
def open_table(servers: Servers, tmp_path: Path) -> Iterator[Callable[..., System]]:
    """A function that makes a table of a system, closed when the test ends."""
    with ExitStack() as stack:
        count = 0

        def open_table(kind: type[System], options: Any = None, below: str = "", **context: Any) -> System:
            nonlocal count
            skip_where_it_is_not(kind)
            count += 1
            directory = tmp_path / below / f"table-{count}"
            directory.mkdir(parents=True)
            chosen = kind.Options() if options is None else options
            services = {needed: servers.get(needed) for needed in kind.needs_for(chosen)}
            given = Context(directory, services, **{"rows_per_write": 1000, "tools": servers.tools(kind), **context})
            system = kind(given, chosen)
            stack.callback(system.close)
            return system

        yield open_table
