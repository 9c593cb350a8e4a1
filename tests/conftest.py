"""What every test may ask for: a workspace of its own, which shares the provisioned jars with the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.paths import Workspace


@pytest.fixture(scope="session")
def cache() -> Iterator[Path]:
    """The folder of provisioned artifacts, the repository's unless TIDEMARK_CACHE names another."""
    folder = Path(os.environ.get("TIDEMARK_CACHE", Path(__file__).parents[1] / ".tidemark" / "cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_CACHE", str(folder))
        yield folder


@pytest.fixture
def workspace(tmp_path: Path, cache: Path) -> Workspace:
    """An empty workspace; pytest's own folders are readable by their owner alone, as ours are."""
    assert cache
    return Workspace(tmp_path)
