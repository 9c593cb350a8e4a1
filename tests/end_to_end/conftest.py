"""Fixtures for complete pipelines, each in a separate workspace; none of their processes outlives the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from .sandbox import Sandbox

MakeSandbox = Callable[..., Sandbox]


@pytest.fixture(scope="module")
def make_sandbox(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[MakeSandbox]:
    """Yield a function that makes a workspace with a configuration; processes left in it are killed at the end."""
    made: list[Sandbox] = []

    def make(config: dict[str, Any], jars: Path = cache) -> Sandbox:
        made.append(Sandbox(tmp_path_factory.mktemp("pipeline"), jars, config))
        return made[-1]

    yield make
    for sandbox in made:
        for process in sandbox.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
