"""What every test may ask for: a workspace of its own, which shares the provisioned jars with the repository."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.beside import (
    ENGINES,
    FLAKE,
    OF_ENGINES,
    OF_THE_FLAKE,
    OF_THE_OTHERS,
    REST,
    SERVERLESS,
    SERVICES,
    STACKS,
    Beside,
)

from tidemark.paths import Workspace

if TYPE_CHECKING:
    from tidemark.analysis.measures import Measures

TESTS = Path(__file__).parent
BESIDE = pytest.StashKey[Beside]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--beside", action="store_true", help="tests that start no server run beside the others")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What needs the machine for itself comes last, after what runs beside has ended."""
    if config.option.beside:
        others = [item for item in items if _is_beside(item)]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if not _is_beside(item)]
    items.sort(key=lambda item: (item.get_closest_marker("alone") is not None, item.name.startswith(OF_THE_OTHERS)))


def _is_beside(item: pytest.Item) -> bool:
    path = item.path.relative_to(TESTS)
    place = path.parts[0]
    return (
        place in (STACKS, SERVICES)
        or path.as_posix() in OF_ENGINES
        or (place in SERVERLESS and not item.get_closest_marker("services"))
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    commands: dict[str, list[str | Path]] = {}
    if any(item.name == OF_THE_FLAKE for item in session.items) and not session.config.option.collectonly:
        if shutil.which("nix") and not sys.prefix.startswith("/nix/store"):
            commands[FLAKE] = [TESTS / "nix" / "verify.sh"]
        if session.config.option.beside:
            chosen, pytest_ = session.config.option.markexpr, [sys.executable, "-m", "pytest", "-q", "-m"]
            serverless = " and ".join(filter(None, (chosen, "not services")))
            commands[REST] = [*pytest_, serverless, *(TESTS / name for name in SERVERLESS)]
            commands[STACKS] = [*pytest_, chosen, TESTS / STACKS]
            engines = [TESTS / name for name in OF_ENGINES]
            commands[ENGINES] = [*pytest_, chosen, *engines]
            commands[SERVICES] = [*pytest_, chosen, TESTS / SERVICES, *(f"--ignore={path}" for path in engines)]
    session.config.stash[BESIDE] = made = Beside(TESTS.parent, commands)
    made.begin()


def pytest_sessionfinish(session: pytest.Session) -> None:
    found = session.config.stash.get(BESIDE, None)
    if found is not None:
        found.stop()


@pytest.fixture
def beside(request: pytest.FixtureRequest) -> Beside:
    return request.config.stash[BESIDE]


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
