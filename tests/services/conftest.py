"""Fixtures that inspect server processes from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
import pytest

from tidemark.paths import Workspace


@pytest.fixture(scope="module")
def shared_workspace(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Workspace:
    """Return a workspace for the servers that a module's tests share; its path holds characters that need quoting."""
    assert cache
    root = tmp_path_factory.mktemp("spaced") / "wörk space, 'quoted'"
    root.mkdir()
    return Workspace(root)


@pytest.fixture(scope="session")
def listening() -> Callable[[Iterable[int]], set[str]]:
    """Return a function that lists the addresses on which the given processes accept connections."""

    def look(pids: Iterable[int]) -> set[str]:
        wanted = set(pids)
        found = psutil.net_connections(kind="inet")
        return {c.laddr.ip for c in found if c.pid in wanted and c.status == psutil.CONN_LISTEN}

    return look


@pytest.fixture(scope="session")
def wait_until_gone() -> Callable[[Iterable[int]], list[int]]:
    """Return a function that waits up to 10 s for processes to end and returns those still running."""

    def wait(pids: Iterable[int]) -> list[int]:
        left = list(pids)
        deadline = time.monotonic() + 10
        while left and time.monotonic() < deadline:
            left = [pid for pid in left if is_running(pid)]
            time.sleep(0.05)
        return left

    return wait


def is_running(pid: int) -> bool:
    """Return True until a process has ended with all its threads: until then it cannot be waited for."""
    try:
        process = psutil.Process(pid)
        return bool(process.status() != psutil.STATUS_ZOMBIE or process.num_threads() > 1)
    except psutil.NoSuchProcess:
        return False
