"""Tests of the results site in a real browser: narrow and wide, light and dark, and by keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.results.browser import CHROMIUM, Browser
from tests.results.screenshots import HEIGHT, TARGET, WIDTH, take

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on PATH")
PAGES = ("index", "streams/index", "streams/tables/matrix", "systems/index", "systems/ducklake/index")
PAGES += ("streams/runs/delta-rs", "releases/then-and-now/index")
PAGES += ("claims/streams/index", "findings/index", "machines/index", "releases/index", "archives/index")
WIDER = "document.documentElement.scrollWidth > window.innerWidth"


def size(picture: Path) -> tuple[int, int]:
    """Return the width and the height of a PNG."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG"), picture
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:])


def test_pictures_of_the_documentation_can_be_taken_again(browser: Browser, site: Path, tmp_path: Path) -> None:
    take(browser, site / "index.html", tmp_path / "site.png")
    assert size(tmp_path / "site.png") == (WIDTH, HEIGHT)
    for name in ("report", "site"):
        assert size(TARGET / f"{name}.png") == (WIDTH, HEIGHT)
        assert (TARGET / f"{name}.png").stat().st_size < 300_000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_pages_fit_their_width_and_log_nothing(browser: Browser, site: Path, width: int, dark: bool) -> None:
    papers = set()
    for name in PAGES:
        page = browser.open(site / f"{name}.html", width=width, dark=dark)
        assert not page.run(WIDER), name
        assert not page.problems, name
        assert all(each.startswith(("file://", "data:")) for each in page.requests), name
        papers.add(page.run("getComputedStyle(document.body).backgroundColor"))
        page.close()
    assert papers == {"rgb(20, 24, 27)" if dark else "rgb(255, 255, 255)"}


def test_tab_reaches_the_content_and_each_table(browser: Browser, site: Path) -> None:
    page = browser.open(site / "streams/index.html", width=400)
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(90):
        page.press("Tab")
        reached.add(page.run("document.activeElement.getAttribute('aria-label')"))
    assert "Published claims" in reached


def test_filters_hide_rows_and_are_in_the_address(browser: Browser, site: Path) -> None:
    page = browser.open(site / "streams/tables/matrix.html")
    shown = "[...document.querySelectorAll('tbody tr')].filter(row => !row.hidden).map(row => row.dataset.stack)"
    assert set(page.run(shown)) == {"thesis", "current"}
    pick = "(list => { list.value = 'current'; list.dispatchEvent(new Event('change', { bubbles: true })); })"
    page.run(f"{pick}(document.querySelector('select[name=stack]'))")
    assert set(page.run(shown)) == {"current"} and page.run("location.hash") == "#stack=current"
    rows = page.run("document.querySelectorAll('tbody tr').length")
    assert page.run("document.querySelector('output').value") == f"{len(page.run(shown))} of {rows} rows"
    again = browser.open(site / "streams/tables/matrix.html", "#stack=current&format=nothing")
    assert again.run(shown) == page.run(shown), "what the table does not have is ignored"
    assert not page.problems and not again.problems
    page.close()
    again.close()
