"""What every test may ask for: a workspace of its own, which shares the provisioned jars with the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemark.paths import Workspace

if TYPE_CHECKING:
    from tidemark.analysis.measures import Measures


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


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The standard run set, which no test writes into: several systems, a series that failed and one not run."""
    from tests.runs.runset import STANDARD, write_run_set

    return write_run_set(tmp_path_factory.mktemp("standard"), STANDARD, window_s=20)


@pytest.fixture(scope="session")
def measures(results: Path) -> Measures:
    from tidemark.analysis.measures import Measures
    from tidemark.runs.runset import RunSet
    from tidemark.studies.streams.quantities import QUANTITIES

    return Measures(RunSet.load(results), QUANTITIES)
