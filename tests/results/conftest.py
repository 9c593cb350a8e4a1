"""Shared fixtures: a browser, and one report, which is expensive because it needs the resamples of every claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.results.browser import Browser, Page
from tests.results.links import REFERENCE
from tests.results.page_data import data_of, first_screen, gallery, with_data, write_report

from tidemark.pipeline.site import build_site
from tidemark.results.report.page import STEPS, thin


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder with claims and a report, which tests must not modify."""
    return write_report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site of the repository's reference results, which tests must not modify."""
    return build_site(REFERENCE, [], tmp_path_factory.mktemp("site") / "site").parent


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture(scope="session")
def pages(reported: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a file per kind of page: as built, with constructed first screen or gallery data, and thinned."""
    folder = tmp_path_factory.mktemp("pages")
    built = (reported / "report.html").read_text()
    data = data_of(built)
    kinds = {"built": first_screen() | data, "made": data | first_screen(), "gallery": gallery()}
    for name, steps in (("linked", 1), ("runless", len(STEPS))):
        kinds[name] = json.loads(json.dumps(kinds["built"]))
        answers = iter([False] * steps + [True])
        thin(kinds[name], lambda _, answers=answers: next(answers))  # type: ignore[misc]
    for name, each in kinds.items():
        (folder / f"{name}.html").write_text(with_data(built, each))
    return {name: folder / f"{name}.html" for name in kinds}


@pytest.fixture
def opened(browser: Browser, pages: dict[str, Path]) -> Iterator[Callable[..., Page]]:
    """Yield a function that opens a kind of page; at the end no page may have logged a problem or fetched anything."""
    found: list[Page] = []

    def open_page(kind: str, fragment: str = "", **how: Any) -> Page:
        found.append(browser.open(pages[kind], fragment, **how))
        return found[-1]

    yield open_page
    own = {path.name for path in pages.values()}
    for page in found:
        page.settle()
        assert not page.problems
        assert page.run("document.body.dataset.errors") == "0"
        asked = {url.partition("#")[0].rpartition("/")[2] for url in page.requests if not url.startswith("data:")}
        assert asked <= own, "the page asks for something"
        page.close()
