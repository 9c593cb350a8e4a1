"""Fixtures and hooks of all tests, such as a workspace that shares the provisioned jars with the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tidemark.paths import Workspace

if TYPE_CHECKING:
    from tidemark.analysis.measures import Measures

TESTS = Path(__file__).parent
# One worker runs all tests of these folders: they share servers, or measure and must not do so in parallel. The
# longest come first, so that short ones fill the workers at the end.
SHARED = ("pipeline", "conformance", "stacks", "services")
SPARK = ("conformance/test_lakehouses.py", "services/test_spark.py")  # files that share Spark sessions


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest groups first."""
    order = {folder: place for place, folder in enumerate(SHARED)}
    items.sort(key=lambda item: order.get(item.path.relative_to(TESTS).parts[0], len(order)))


@pytest.hookimpl(optionalhook=True)  # the other stacks, whose systems are tested as well, have no xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all tests that share servers to one worker; distribute the others by file."""
    from xdist.scheduler import LoadScopeScheduling

    class ByServers(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0].removeprefix("tests/")
            if file in SPARK:
                return "spark"
            folder = file.partition("/")[0]
            return folder if folder in SHARED else file

    return ByServers(config, log)


class FailedTests:
    """Pytest plugin that prints the name of a failing test as soon as it fails."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._plugins.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(f"FAILED ({report.when}) {report.nodeid}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the main process, not a worker of it
        config.pluginmanager.register(FailedTests(config))


@pytest.fixture(scope="session")
def cache() -> Iterator[Path]:
    """Yield the folder of provisioned artifacts: the repository's unless TIDEMARK_CACHE names another."""
    folder = Path(os.environ.get("TIDEMARK_CACHE", Path(__file__).parents[1] / ".tidemark" / "cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_CACHE", str(folder))
        yield folder


@pytest.fixture
def workspace(tmp_path: Path, cache: Path) -> Workspace:
    """Return an empty workspace; pytest's folders are readable only by their owner, as Tidemark's are."""
    assert cache
    return Workspace(tmp_path)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the standard run set, which tests must not modify: several systems, a failed series and one not run."""
    from tests.runs.runset import STANDARD, write_run_set

    return write_run_set(tmp_path_factory.mktemp("standard"), STANDARD, window_s=20)


@pytest.fixture(scope="session")
def measures(results: Path) -> Measures:
    from tidemark.analysis.measures import Measures
    from tidemark.runs.runset import RunSet
    from tidemark.studies.streams.metrics import QUANTITIES

    return Measures(RunSet.load(results), QUANTITIES)
