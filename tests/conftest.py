"""Fixtures and hooks of all tests, such as a workspace that shares the provisioned jars with the repository."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.tiers import ALONE, CPU, QUICK_JVM, TIERS, tier_of

from tidemark.paths import Workspace
from tidemark.services.programs import java

if TYPE_CHECKING:
    from tidemark.analysis.measures import Measures

TESTS = Path(__file__).parent
# Files that share servers which take long to start, by name of the group; any other file is a group by itself.
TOGETHER = {"conformance/slow/test_lakehouses.py": "spark", "services/slow/test_spark.py": "spark"}
# The longest come first, so that short ones fill the processes at the end.
LONGEST = ("nix", "stacks", "end_to_end", "scale", "conformance")
NEED_A_REASON = ("alone", "long")
BEGAN = pytest.StashKey[float]()
# Servers of tests run for seconds, of which the optimising compiler would take a third; no test looks at their speed.
java.COMMON_OPTIONS += (QUICK_JVM,)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with its folder's tier, put the longest folders first, and refuse marks without a reason."""
    order = {folder: place for place, folder in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.relative_to(TESTS).parts[0], len(order)))
    for item in items:
        item.add_marker(tier_of(item.path.relative_to(TESTS)).name)
        for mark in item.iter_markers():
            if mark.name in NEED_A_REASON and not mark.kwargs.get("reason"):
                raise pytest.UsageError(f"{item.nodeid}: give the mark '{mark.name}' a reason")
            if mark.name == "alone" and ALONE not in item.path.read_text():
                raise pytest.UsageError(f"{item.nodeid}: write {ALONE}reason=...) in its file, or nothing would run it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remember when a test began, as CPU time of this process and of its children that have ended."""
    item.stash[BEGAN] = sum(os.times()[:4])
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Note the CPU time of a test, for its report, which is made when this has returned."""
    try:
        yield
    finally:
        item.user_properties.append((CPU, round(sum(os.times()[:4]) - item.stash[BEGAN], 2)))


@pytest.hookimpl(optionalhook=True)  # the other stacks, whose systems are tested as well, have no xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the tests of a file to one process, and those of files that share servers or measure."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0].removeprefix("tests/")
            return TOGETHER.get(file, file)

    return ByFile(config, log)


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
    for tier in TIERS:
        config.addinivalue_line("markers", f"{tier.name}: belongs to this tier by its folder (tests/tiers.py)")
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
