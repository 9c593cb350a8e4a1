"""Tests of the report's view in a real browser: filters and sorting by mouse, by keyboard, and by URL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.results.browser import CHROMIUM, Page
from tests.results.report_page import JUMPS, SHOWN, chosen, hidden, sort_by, tables, text, tick, told

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on PATH")
Open = Callable[..., Page]
NONSENSE = (
    ("#systems=ducklake,no-such&columns=%3Cb%3E", ["systems no-such", "columns <b>"]),
    ("#sort=nothing&verdicts=false&__proto__=1&%E0%A4%A", ["sort nothing", "verdicts false", "__proto__", "%E0%A4%A"]),
    ("#sort=constructor,reversed,twice", ["sort constructor"]),
    ("#&&==&=a", ["=="]),
    ("#" + "x" * 5000, ["xxx"]),
)


@pytest.mark.parametrize("kind", ["built", "made"])
def test_column_head_sorts_and_shows_the_order(opened: Open, pages: dict[str, Path], kind: str) -> None:
    page, matrix = opened(kind), told(pages, kind)["matrix"]
    rows = matrix["groups"][0]["rows"]
    for question in matrix["questions"]:
        key = question["key"]
        value = {row["system"]: (row["cells"][key] or {}).get("value") for row in rows if not row["harness"]}
        if key not in tables(page)[0]["keys"] or sum(each is not None for each in value.values()) < 2:
            continue
        found = set()
        for _ in range(2):
            sort_by(page, key)
            (table,) = tables(page)
            order = [value[row["system"]] for row in table["rows"]]
            known = [each for each in order if each is not None]
            assert order[: len(known)] == known, "what has no value comes last"
            sorting = table["sorting"].pop(key)
            assert known == sorted(known, reverse=sorting == "descending")
            assert set(table["sorting"].values()) == {"none"}
            found.add(sorting)
        assert found == {"ascending", "descending"}
    for key in ("durability", "system"):
        sort_by(page, key)
        assert tables(page)[0]["sorting"][key] == "ascending"
    titles = page.run("[...document.querySelectorAll('table.matrix tbody .name')].map(each => each.textContent)")
    assert titles == sorted(titles, key=str.lower)


def test_keyboard_reaches_each_column_head_and_keeps_the_focus(opened: Open) -> None:
    page = opened("made")
    wanted, reached = set(tables(page)[0]["keys"]), set[str]()
    for _ in range(150):
        page.press("Tab")
        key = page.run("document.activeElement.dataset.column ?? ''")
        if key and key not in reached:
            reached.add(key)
            before = tables(page)[0]["sorting"][key]
            page.press("Enter")
            assert tables(page)[0]["sorting"][key] not in ("none", before)
            assert page.run("document.activeElement.dataset.column") == key, "the keyboard's place was lost"
            assert text(page, "announce").startswith("Sorted by ")
    assert reached == wanted


def test_filters_apply_to_matrix_plots_and_runs(opened: Open) -> None:
    page = opened("built")
    assert "null" not in chosen(page, "systems"), "the harness is as much as a thousand times as fast"
    labels = "plots.flatMap(each => each.figure.hidden ? [] : each.plot.layers).map(layer => layer.label)"
    runs = "[...document.querySelectorAll('#run-list [data-system]')].filter(each => !each.hidden)"
    assert any(label.startswith("DuckLake") for label in page.run(labels))
    tick(page, "systems", "ducklake")
    assert not any(label.startswith("DuckLake") for label in page.run(labels))
    rows = tables(page)[0]["rows"]
    assert rows and all(row["system"] != "ducklake" for row in rows)
    assert not page.run(f"{runs}.some(each => each.dataset.system === 'ducklake')")
    tick(page, "modes", "batch")
    assert not any(key.endswith("-batch") for key in tables(page)[0]["keys"])
    assert not page.run(f"{runs}.some(each => each.dataset.mode === 'batch')")
    tick(page, "runs", "0")
    assert not page.run(f"{runs}.some(each => each.dataset.run === '0')")
    assert not any("run 0" in label for label in page.run(labels))
    tick(page, "systems", "null")
    assert tables(page)[0]["rows"][-1]["system"] == "null"
    assert any(label.startswith("Null") for label in page.run(labels))


def alter(page: Page) -> None:
    """Change each part of the view, as a reader would."""
    tick(page, "systems", "iceberg-pyiceberg")
    tick(page, "systems", "null")
    tick(page, "modes", "batch")
    tick(page, "runs", "1")
    tick(page, "columns", page.run("CHOICES.columns.items.find(key => !view.columns.has(key))"))
    key = tables(page)[0]["keys"][2]
    sort_by(page, key)
    sort_by(page, key)
    page.run("document.querySelector('#ledger .fold summary').click()")
    page.settle()


@pytest.mark.parametrize("kind", ["built", "made"])
def test_url_restores_the_view(opened: Open, kind: str) -> None:
    page = opened(kind)
    assert page.run("location.hash") == "", "the default view needs no address"
    first = page.run(SHOWN)
    alter(page)
    fragment, shown = page.run("location.hash"), page.run(SHOWN)
    for part in ("systems=", "modes=single", "runs=", "columns=", "sort=", "reversed", "verdicts="):
        assert part in fragment
    other = opened(kind, fragment)
    assert other.run(SHOWN) == shown
    assert other.run("location.hash") == fragment
    # An open page follows changes of its URL as well.
    other.run("new Promise(done => { addEventListener('hashchange', done, { once: true }); location.hash = ''; })")
    other.settle()
    assert other.run(SHOWN) == first
    page.run("document.getElementById('reset-view').click()")
    page.settle()
    assert page.run("location.hash") == "" and page.run(SHOWN) == first


@pytest.mark.parametrize(("fragment", "unknown"), NONSENSE, ids=range(len(NONSENSE)))
def test_invalid_url_fragment_is_ignored_and_reported(opened: Open, fragment: str, unknown: list[str]) -> None:
    page = opened("made", fragment)
    assert not hidden(page, "view-note")
    note = text(page, "view-note")
    assert "Ignored parts of the link" in note and all(each in note for each in unknown)
    assert len(note) < 400
    systems = [row["system"] for row in tables(page)[0]["rows"]]
    assert systems == ["ducklake"] if "ducklake" in fragment else len(systems) == 5


def test_url_of_an_element_scrolls_to_it(opened: Open, pages: dict[str, Path]) -> None:
    claim = f"claim-{told(pages, 'made')['claims']['claims'][-1]['id']}"
    page = opened("made", f"#{claim}")
    page.settle()
    assert page.run(f"document.getElementById('{claim}').open")
    assert 0 < page.run(f"document.getElementById('{claim}').getBoundingClientRect().top") < 900
    assert hidden(page, "view-note")


def test_links_inside_the_page_leave_the_view_alone(opened: Open) -> None:
    page = opened("made", "#modes=single")
    assert page.run(JUMPS) == ["Answers", "Matrix", "Plots", "Claims", "Runs", "Downloads"]
    for place, name in enumerate(("answers", "matrix", "plots", "claims", "runs", "downloads")):
        page.run(f"document.querySelectorAll('#jumps a')[{place}].click()")
        page.settle()
        assert page.run("document.activeElement.id") == f"{name}-head"
        box = f"document.getElementById('{name}-head').getBoundingClientRect()"
        seen = page.run(f"(box => document.elementFromPoint(box.left + 5, box.top + 5)?.id)({box})")
        assert seen == f"{name}-head", "nothing covers what was jumped to"
    assert page.run("location.hash") == "#modes=single"


def test_a_link_that_cannot_be_copied_is_selected(opened: Open) -> None:
    page = opened("made", "#modes=single")
    page.run("navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))")
    page.run("copyLink()")
    assert page.run("document.activeElement.value").endswith("made.html#modes=single")
    assert page.run("document.activeElement.selectionEnd") > len("made.html#modes=single")
    page.run("navigator.clipboard.writeText = async words => { window.copied = words; }")
    page.run("copyLink()")
    assert page.run("window.copied").endswith("made.html#modes=single")


def test_empty_view_is_stated(opened: Open) -> None:
    page = opened("built", "#systems=")
    assert "No system is chosen." in text(page, "groups")
    assert not hidden(page, "no-plots") and hidden(page, "view-note")
