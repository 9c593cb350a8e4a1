"""Servers that systems need, started once for all tests, and tables opened for one test each."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.tiers import PROGRAMS, TOOLS

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceContext
from tidemark.services.http import keep_loopback_direct
from tidemark.services.polaris import Polaris
from tidemark.software.tools import packages, provide_tool
from tidemark.systems import releases
from tidemark.systems.base import Context, System, take
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

SINCE = {"ducklake-quack": (1, 5, 5)}  # the oldest DuckDB release that has a system's extensions
ODD = 'a b ü # "c" %d'  # folder name with characters that a URI encodes and characters that libraries treat specially
PACKAGE = {"paimon": "pypaimon"}  # Python package of a client that some stacks lack
OF_A_STACK = "TIDEMARK_TEST_OF_A_STACK"  # set when the suite runs again with a stack's libraries
POLARIS = os.environ.get("TIDEMARK_TEST_POLARIS")


# Tests of behaviour that does not depend on DuckLake's catalog: only --long runs them with these catalogs as well.
CATALOGS = ("ducklake-sqlite", "ducklake-quack")
IN_COMMON = {
    "test_green_trips",
    "test_codec_in_every_file",
    "test_thread_count_is_the_configured_one",
    "test_closes_twice",
    "test_writes_after_a_read",
    "test_full_durability_syncs_data_and_metadata_of_each_write",
    "test_full_durability_leaves_out_no_file_of_a_write",
    "test_files_of_one_client_are_committed_at_once_by_another",
    "test_with_each_setting",
    "test_a_commit_is_found_by_its_token",
}


# The default tier writes to these; it fetches no tool and no server of another system.
BY_DEFAULT = {
    name: kind
    for name, kind in of_kind(TableSystem).items()
    if set(kind.tools) <= set(TOOLS) and {lock for each in kind.needs for lock in each.locks} <= set(PROGRAMS)
}

# With a stack's libraries, only what these can change is tested again: not clients that have the same release in each
# stack or whose client another one tests (these write and read once, in core), and not tests of our servers and
# settings, in which no client of a stack makes a difference. DuckLake's catalog in PostgreSQL and its inlining are
# tested by one system each, and not by the one that has both.
SAME_IN_EACH_STACK = ("delta-rs", "lance", "null", "opensearch", "parquet-datafusion")
TESTED_BY_OTHERS = (*CATALOGS, "ducklake-inlined-postgres")
CORE = ("test_core.py", "test_other_tools.py")
ASKED_BY_US = ("nessie-", "rest-")  # servers of catalogs, whose client is Tidemark's own
WITHOUT_A_STACK = (
    "test_a_new_system.py",
    "test_hudi_timeline.py",
    "test_lance.py",
    "test_lost_answers.py",  # what a release does then is published for each
    "test_users_own.py",
)
OF_SERVERS = {
    "test_catalogs_server_writes_its_metadata_to_the_object_store",
    "test_secret_key_is_exposed_nowhere",
    "test_faulty_server_is_detected",
    "test_configured_round_trip_is_between_writers_and_files",
    "test_server_that_does_not_flush_is_reported_as_such",
    "test_server_that_does_not_flush_makes_fewer_syncs_than_writes",
    "test_catalog_that_writes_without_hadoop_starts_no_program",
    "test_full_durability_syncs_data_and_metadata_of_each_write",  # whether a file is left out is tested
}
BY_CATALOG = pytest.mark.long(reason="behaviour that does not depend on DuckLake's catalog")
BY_STACK = pytest.mark.long(reason="a stack's libraries do not change it")


def pytest_itemcollected(item: pytest.Item) -> None:
    if getattr(item, "originalname", "") in IN_COMMON and any(f"[{name}" in item.name for name in CATALOGS):
        item.add_marker(BY_CATALOG)
    if OF_A_STACK in os.environ and (
        item.path.name in WITHOUT_A_STACK
        or item.path.parent.name == "slow"  # engines, and clients that come with their own libraries
        or getattr(item, "originalname", "") in OF_SERVERS
        or (
            item.path.name not in CORE
            and any(f"[{name}" in item.name for name in (*SAME_IN_EACH_STACK, *TESTED_BY_OTHERS, *ASKED_BY_US))
        )
    ):
        item.add_marker(BY_STACK)


class Servers:
    """Servers, each started together with those it needs when it is first requested."""

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
            service = kind.from_config(ServiceContext(self.workspace, directory, config, self._running))
            self._running[kind] = self._stack.enter_context(service)
        return self._running[kind]

    def tools(self, kind: type[System]) -> dict[str, Path]:
        """Return the packages of a system's tools, and make them importable in this process."""
        for name in kind.tools:
            provide_tool(name, self.workspace)
        found = packages(kind.tools, self.workspace)
        take(found.values())
        return found


def is_here(kind: type[System]) -> bool:
    """Return True if this stack has the library that the system was written for."""
    package = PACKAGE.get(kind.name)
    return releases.parse_version(duckdb.__version__) >= SINCE.get(kind.name, (0,)) and (
        package is None or importlib.util.find_spec(package) is not None
    )


def skip_where_it_is_not(kind: type[System]) -> None:
    if not is_here(kind):
        pytest.skip(str(kind.unavailable(kind.Options())))


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Servers]:
    assert cache
    keep_loopback_direct()
    with ExitStack() as stack:
        yield Servers(Workspace(tmp_path_factory.mktemp("conformance")), stack)


@pytest.fixture
def open_table(servers: Servers, tmp_path: Path) -> Iterator[Callable[..., System]]:
    """Yield a function that opens a table of a system; the table is closed and dropped when the test ends."""
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
            stack.callback(system.drop)
            stack.callback(system.close)
            return system

        yield open_table


@pytest.fixture(params=of_kind(TableSystem).values(), ids=of_kind(TableSystem).keys())
def kind(request: pytest.FixtureRequest, servers: Servers) -> type[System]:
    servers.tools(request.param)
    return request.param
