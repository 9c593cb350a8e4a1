"""Run sets that several tests read; none of them writes into one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.runset import STANDARD, write_run_set

from tidemark.analysis.measures import Measures
from tidemark.analysis.runs import RunSet


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The standard run set: several systems in two modes, a series that failed and one that was not run."""
    return write_run_set(tmp_path_factory.mktemp("standard"), STANDARD, window_s=20)


@pytest.fixture(scope="session")
def measures(results: Path) -> Measures:
    return Measures(RunSet.load(results))
