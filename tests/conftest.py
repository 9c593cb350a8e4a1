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

TESTS = Path(__file__).parent
# One worker runs all tests of these folders: they share servers, or measure and must not do so side by side. The
# longest come first, so that what is short fills the workers at the end.
SHARED = ("pipeline", "conformance", "stacks", "services")
SPARK = ("conformance/test_lakehouses.py", "services/test_spark.py")  # files that share sessions of Spark


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group tests by folder or file for `--dist loadgroup`."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=lambda item: SHARED.index(folder) if (folder := _place(item).parts[0]) in SHARED else len(SHARED))


def _place(item: pytest.Item) -> Path:
    return item.path.relative_to(TESTS)


def _group(item: pytest.Item) -> str:
    path = _place(item)
    if path.as_posix() in SPARK:
        return "spark"
    return path.parts[0] if path.parts[0] in SHARED else path.as_posix()


class FailedTests:
    """Prints the name of a test that fails when it fails."""

    def __init__(self, config: pytest.Config) -> None:
        self._terminal = config.pluginmanager.get_plugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._terminal is not None:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"FAILED ({report.when}) {report.nodeid}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the process that people see, not a worker of it
        config.pluginmanager.register(FailedTests(config))


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
