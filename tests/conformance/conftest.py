"""The servers that systems need, started once for all tests, and tables opened for one test each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services.base import Service
from tidemark.services.http import keep_loopback_direct
from tidemark.services.polaris.server import Polaris
from tidemark.software.tools import provide_tool
from tidemark.systems.base import Context, System

OF_A_STACK = "TIDEMARK_TEST_OF_A_STACK"  # set where the suite runs once more, with a stack's libraries
POLARIS = os.environ.get("TIDEMARK_TEST_POLARIS")


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
            service = kind.from_config(self.workspace, directory, ServicesConfig(polaris_path=POLARIS), self._running)
            self._running[kind] = self._stack.enter_context(service)
        return self._running[kind]


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

        def open_table(kind: type[System], options: Any = None, **context: Any) -> System:
            nonlocal count
            count += 1
            directory = tmp_path / f"table-{count}"
            directory.mkdir()
            chosen = kind.Options() if options is None else options
            services = {needed: servers.get(needed) for needed in kind.needs_for(chosen)}
            given = Context(directory, services, **{"rows_per_write": 1000, **context})
            system = kind(given, chosen)
            stack.callback(system.close)
            return system

        yield open_table
