"""Tests of the report in a real browser: light and dark, wide and narrow, visually, by keyboard and screen reader."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from tests.results.browser import CHROMIUM, Page
from tests.results.page_data import states
from tests.results.report_page import DRAW_ALL, JUMPS, chosen, hidden, tables, text, tick, told

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on PATH")
Open = Callable[..., Page]
SIGNS = {"best": "★ best", "only": "only value", "alike": "all alike", "tied": "≈ best", "open": "no interval"}
SIGNS["outside"] = "not compared"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 1000, 500])
@pytest.mark.parametrize("kind", ["built", "made", "gallery"])
def test_page_is_drawn_without_console_messages(opened: Open, kind: str, width: int, dark: bool) -> None:
    page = opened(kind, width=width, dark=dark)
    assert page.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert not page.run("document.documentElement.scrollWidth > window.innerWidth"), "the page scrolls sideways"
    figures = "[...document.querySelectorAll('figure')].filter(each => !each.hidden)"
    page.run(DRAW_ALL)
    drawn = page.run(f"{figures}.map(each => Number(each.querySelector('canvas').dataset.drawn))")
    if kind != "gallery":
        assert len(drawn) >= 18 and min(drawn) > 0, "what has nothing to show is hidden"


def test_plot_is_drawn_when_it_comes_near_the_screen(opened: Open) -> None:
    page = opened("built")
    last = "[...document.querySelectorAll('figure')].filter(each => !each.hidden).at(-1).querySelector('canvas')"
    assert page.run(f"{last}.dataset.drawn") is None and page.run(f"{last}.ariaLabel").startswith("Bytes that reached")
    page.run(f"{last}.scrollIntoView()")
    page.settle()
    assert int(page.run(f"{last}.dataset.drawn")) > 0


@pytest.mark.parametrize("kind", ["built", "made"])
def test_the_first_screen_has_warnings_answers_and_the_matrix(opened: Open, pages: dict[str, Path], kind: str) -> None:
    page, data = opened(kind), told(pages, kind)
    first = re.sub(r"\s+", " ", page.run("document.getElementById('read-first').textContent"))
    assert data["read_first"] and all(re.sub(r"\s+", " ", fact["text"]) in first for fact in data["read_first"])
    assert "SYNTHETIC" in text(page, "warnings")
    assert data["answers"] and all(
        each["title"] in text(page, "answers") and each["text"] in text(page, "answers") for each in data["answers"]
    )
    assert page.run("document.querySelector('table.matrix tbody').getBoundingClientRect().top") < 900
    places = ("read-first", "answers", "matrix", "plots", "claims", "runs")
    order = [page.run(f"document.getElementById('{name}').getBoundingClientRect().top") for name in places]
    assert order == sorted(order)


@pytest.mark.parametrize("kind", ["built", "made", "gallery"])
def test_each_cell_shows_its_relation_to_the_best(opened: Open, pages: dict[str, Path], kind: str) -> None:
    page, data = opened(kind), told(pages, kind)
    page.run("change(null, () => { view.columns = new Set(CHOICES.columns.items); view.systems.add('null'); })")
    signed = {question["key"]: question["signed"] for question in data["matrix"]["questions"]}
    seen = set()
    for which, table in enumerate(tables(page)):
        assert table["group"] == data["matrix"]["groups"][which]["key"]
        cells = {(row["system"], key): found for row in table["rows"] for key, found in row["cells"].items()}
        for place, state in states(data, which, chosen(page, "systems")).items():
            assert state in cells[place]["kind"], place
            assert SIGNS.get(state, "" if signed[place[1]] else "×") in cells[place]["text"], place
            if state == "tied":
                assert "cannot be distinguished from the best" in cells[place]["text"]
            seen.add(state)
        assert table["rows"][-1]["system"] == "null", "the harness comes last"
    assert kind == "built" or {"best", "alike", "tied", "apart", "open", "outside"} <= seen


def test_missing_value_states_the_reason(opened: Open) -> None:
    page = opened("made")
    reason = "elta-rs refused the write: no such column 'Airport_fee'"
    why = "document.querySelector('tr[data-system=\"delta-rs\"] .missing .why')"
    assert reason in page.run(f"{why}.textContent")
    whole = "[...document.querySelectorAll('table.matrix td span')].every(each => getComputedStyle(each).overflow === "
    assert page.run(f"{whole}'visible' || each.className === 'unseen')"), "a cell is cut"


def test_hint_of_a_column_is_shown_to_the_keyboard_and_hidden_by_escape(opened: Open) -> None:
    page = opened("made")
    page.run("document.querySelector('table.matrix [data-column=rate-single]').focus()")
    assert text(page, "bubble").startswith("Events/s of hot runs") and not hidden(page, "bubble")
    page.press("Escape")
    assert hidden(page, "bubble")


def test_title_has_the_study_the_stack_and_the_day(opened: Open) -> None:
    page = opened("built")
    assert re.fullmatch(r"Tidemark: streams, stack thesis, \d{4}-\d\d-\d\d.*", page.run("document.title"))
    assert page.run("document.title") == text(page, "title")


def test_matrix_is_saved_as_it_is_shown(opened: Open) -> None:
    page = opened("made")
    tick(page, "systems", "ducklake")
    (table,) = tables(page)
    found = list(csv.DictReader(io.StringIO(page.run("asCsv()"))))
    assert len(found) == len(table["rows"]) and "DuckLake" not in {row["system"] for row in found}
    refused = next(row for row in found if row["system"] == "Delta Lake (delta-rs)")
    assert refused["rate-single [events/s]"] == "" and "no such column" in refused["rate-single_missing"]
    fastest = found[0]
    low, middle, high = (float(fastest[f"rate-single{name}"]) for name in ("_low", " [events/s]", "_high"))
    assert low < middle < high


def test_buttons_and_folds_are_large_enough_for_fingers(opened: Open) -> None:
    page = opened("built", width=400)
    low = "[...document.querySelectorAll('button, summary, #filters label, header a')].filter(each => each.offsetParent"
    assert page.run(f"{low} && each.getBoundingClientRect().height < 23.5).map(each => each.textContent)") == []


@pytest.mark.parametrize("kind", ["built", "made"])
def test_best_is_chosen_among_the_shown_systems(opened: Open, pages: dict[str, Path], kind: str) -> None:
    page, data = opened(kind), told(pages, kind)
    key = next(
        key
        for key in tables(page)[0]["keys"]
        if any("best" in row["cells"][key]["kind"] for row in tables(page)[0]["rows"])
    )
    winners = []
    while winner := next(
        (row["system"] for row in tables(page)[0]["rows"] if "best" in row["cells"][key]["kind"]), None
    ):
        winners.append(winner)
        tick(page, "systems", winner)
        expected = states(data, 0, chosen(page, "systems"))
        for row in tables(page)[0]["rows"]:
            assert row["system"] != winner
            assert expected.get((row["system"], key), "missing") in row["cells"][key]["kind"]
    assert winners and any("only" in row["cells"][key]["kind"] for row in tables(page)[0]["rows"])


def test_elements_have_names_for_screen_readers(opened: Open) -> None:
    page = opened("made")
    assert set(page.run("[...document.querySelectorAll('table.matrix th')].map(each => each.scope)")) == {
        "colgroup",
        "col",
        "row",
    }
    assert page.run("document.querySelector('table.matrix caption').textContent").startswith("Stack thesis")
    described = "[...document.querySelectorAll('table.matrix [aria-describedby]')]"
    hints = page.run(
        f"{described}.map(each => document.getElementById(each.getAttribute('aria-describedby')).textContent)"
    )
    assert hints and all("interval" in each for each in hints)
    asked = "button, input, [role=region], [role=img]"
    names = "each.textContent.trim() || each.ariaLabel || each.labels?.length || each.getAttribute('aria-labelledby')"
    assert page.run(f"[...document.querySelectorAll('{asked}')].filter(each => !({names})).length") == 0


def test_plots_zoom_and_step_by_keyboard_and_follow_the_theme(opened: Open) -> None:
    page = opened("built")
    plot = "plots.find(each => each.kind.title.startsWith('Times of operations') && each.mode === 'single').plot"
    page.run(f"{plot}.canvas.focus()")
    page.press("n")
    assert re.search(r"DuckLake, run 0: .* ms at .* s", text(page, "tip"))
    before = page.run(f"{plot}.view.x")
    page.press("+")
    zoomed = page.run(f"{plot}.view.x")
    assert zoomed[1] - zoomed[0] < before[1] - before[0]
    page.press("0")
    assert page.run(f"{plot}.view.x") == before
    picture = page.run(f"{plot}.canvas.toDataURL()")
    page.run("document.getElementById('theme').click()")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    assert page.run("document.getElementById('theme').ariaPressed") == "true"
    assert page.run(f"{plot}.canvas.toDataURL()") != picture
    page.run("localStorage.clear()")


def test_lines_are_named_at_their_ends_and_all_systems_above_the_plots(opened: Open) -> None:
    page = opened("built")
    page.run(DRAW_ALL)
    for kind in ("Time of a commit", "Operations slower"):
        plot = f"plots.find(each => each.kind.title.startsWith('{kind}') && each.mode === 'single').plot"
        drawn = set(page.run(f"{plot}.layers.map(layer => layer.name)"))
        named = page.run(f"{plot}.named.map(end => [end.layer.name, end.at])")
        assert {name for name, _ in named} == drawn and len(named) == len(drawn) > 1
        places = sorted(place for _, place in named)
        assert all(later - earlier > 12 for earlier, later in pairwise(places)), "names cover each other"
        assert all(name in text(page, "plot-legend") for name in drawn)


def test_systems_differ_in_shape_as_well_as_in_colour(opened: Open) -> None:
    page = opened("built")
    shapes = page.run("[...document.querySelectorAll('#plot-legend .swatch')].map(each => each.style.clipPath)")
    assert len(set(shapes)) == len(shapes) > 1 and all(each.startswith("polygon") for each in shapes)
    drawn = page.run("plots.flatMap(each => each.plot.layers).map(layer => layer.marker)")
    assert drawn and set(drawn) <= set(page.run("Object.keys(SHAPES)"))


def test_time_is_divided_once_for_each_system_and_mode(opened: Open, pages: dict[str, Path]) -> None:
    page = opened("built")
    names = page.run("[...document.querySelectorAll('#budget .bar > span')].map(each => each.textContent)")
    measured = {
        (each["title"], each["mode_title"])
        for each in told(pages, "built")["series"]
        if each["runs"] and each["system"] in chosen(page, "systems") and each["sweep"] == "main"
    }
    assert sorted(names) == sorted(f"{title}, {mode}" for title, mode in measured)


def test_claims_are_grouped_by_verdict(opened: Open, pages: dict[str, Path]) -> None:
    page, claims = opened("built"), told(pages, "built")["claims"]
    assert text(page, "totals").startswith(f"Of {len(claims['claims'])} published claims, ")
    of_each = "each => [each.dataset.verdict, [each.querySelectorAll('tbody tr').length, each.querySelector('.count')"
    of_each += ".textContent]]"
    groups = dict(page.run(f"[...document.querySelectorAll('#ledger .fold')].map({of_each})"))
    counts = {verdict.replace(" ", "-"): count for verdict, count in claims["counts"].items() if count}
    assert groups == {verdict: [count, f" ({count})"] for verdict, count in counts.items()}
    surprising = ["not-reproduced", "inconclusive", "reproduced", "not-tested-yet", "not-testable-here"]
    assert list(groups) == [verdict for verdict in surprising if verdict in groups]


def test_a_run_opens_with_its_manifest(opened: Open) -> None:
    page = opened("built")
    page.run("document.querySelector('#run-list details').open = true")
    page.settle()
    assert len(page.run("document.querySelector('#run-list details pre').textContent")) > 500


def test_a_thinned_page_links_to_the_manifest_of_a_run(opened: Open, pages: dict[str, Path]) -> None:
    page = opened("linked")
    page.run("document.querySelector('#run-list details').open = true")
    page.settle()
    run = next(run for series in told(pages, "linked")["series"] for run in series["runs"])
    link = page.run("document.querySelector('#run-list details a').getAttribute('href')")
    assert link == f"{run['place']}/run.json" and link.startswith("runs/")
    assert "manifests of runs" in text(page, "read-first")


def test_a_page_without_runs_still_compares_series(opened: Open) -> None:
    page = opened("runless")
    shown = page.run("[...document.querySelectorAll('figure')].filter(each => !each.hidden).length")
    assert shown >= 6 and not hidden(page, "matrix")
    assert "3 runs, which are not in this page" in text(page, "runs")
    assert "single runs (in the tables, and in metrics.duckdb)" in text(page, "read-first")


def test_gallery_has_its_archives_their_matrices_and_no_empty_sections(opened: Open) -> None:
    page = opened("gallery")
    assert page.run(JUMPS) == ["Results", "Matrix"]
    assert all(hidden(page, name) for name in ("plots", "claims", "runs", "answers", "about-systems"))
    rows = page.run("[...document.querySelectorAll('#archives tbody tr')].map(each => each.innerText)")
    assert len(rows) == 2 and "SYNTHETIC" in rows[0] and "SYNTHETIC" not in rows[1]
    captions = page.run("[...document.querySelectorAll('table.matrix caption')].map(each => each.innerText)")
    assert len(captions) == 3 and "laptop (8 cores)" in captions[1]
    tick(page, "archives", "cloud (2 cores)")
    tick(page, "stacks", "current")
    assert [table["group"] for table in tables(page)] == ["b-thesis"]
    again = opened("gallery", page.run("location.hash"))
    assert [table["group"] for table in tables(again)] == ["b-thesis"]


def test_printed_page_is_light_and_unfolded(opened: Open) -> None:
    page = opened("made", dark=True, width=500)
    folded = "document.querySelectorAll('#read-first details:not([open])').length"
    assert page.run(folded) == 2
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run(folded) == 0
    assert page.run("document.documentElement.dataset.theme") == "light"
    assert len(page.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"]) > 20_000
    page.run("dispatchEvent(new Event('afterprint'))")
    assert page.run(folded) == 2
    assert page.run("document.documentElement.dataset.theme") == "dark"
