"""Tests of the paper's layout: filled pages, readable text, findings first."""

from __future__ import annotations

import io
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typst
from PIL import Image
from tests.runs.runset import (
    DELTA,
    DELTA_DUCKDB,
    DUCKLAKE,
    ICEBERG_DUCKDB,
    INLINED,
    NULL,
    PYICEBERG,
    batched,
    write_run_set,
)

from tidemark.pipeline.build import build_claims, build_figures, build_paper, build_tables
from tidemark.results.figures import style
from tidemark.results.paper.paper_tables import LINE, blocks
from tidemark.results.paper.values import PAPER

WRITES = replace(DELTA, status="complete", reason=None, exit_code=0, factors=(1.0, 1.0, 1.0))
SINGLE = (DUCKLAKE, INLINED, PYICEBERG, ICEBERG_DUCKDB, WRITES, DELTA_DUCKDB, NULL)
MODELS = (*SINGLE, *(batched(model) for model in SINGLE))
PIXELS_PER_INCH = 36
MARGIN = 2.2 / 29.7  # of a page's height, above and below its text
MOST_BLANK = 1 / 3
LEAST_POINTS = 7.0
# Private wording that a reader of the paper would have to learn.
PRIVATE = (
    r"\bin one go\b", r"\ba go\b", r"\bgoes\b", r"\bmoodier\b", r"\btold (?:from|apart)\b", r"\bcan be told\b",
    r"\bset (?:against|beside)\b", r"\blearnt\b", r"\bunits? of a series\b", r"\bas far as can be seen\b",
    r"\bsuspects?\b", r"\bis in it\b", r"\bare in it\b",
)  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_run_set(tmp_path_factory.mktemp("pages"), MODELS, window_s=4.0)
    build_tables(made)
    build_figures(made)
    build_claims(made)
    build_paper(made)
    return made


def values(results: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((results / "paper" / "values.json").read_text())
    return found


def pages(results: Path) -> list[np.ndarray]:
    """Return every page as a greyscale array, without its margins and footer."""
    drawn = typst.compile(
        results / "paper" / "main.typ", root=results, ignore_system_fonts=True, format="png", ppi=PIXELS_PER_INCH
    )
    made = [np.asarray(Image.open(io.BytesIO(page)).convert("L")) for page in drawn]
    return [page[int(MARGIN * len(page)) : len(page) - int(MARGIN * len(page))] for page in made]


def longest_blank(page: np.ndarray) -> float:
    """Return the height of the page's highest white band, as a share of the page's height."""
    longest = here = 0
    for row in page:
        here = here + 1 if row.min() > 250 else 0
        longest = max(longest, here)
    return longest / len(page)


def test_no_page_but_the_last_is_a_third_blank(results: Path) -> None:
    blank = {number: longest_blank(page) for number, page in enumerate(pages(results), 1)}
    blank.pop(len(blank))
    assert len(blank) > 5
    assert not {number: f"{share:.0%}" for number, share in blank.items() if share > MOST_BLANK}


def test_blank_page_is_detected() -> None:
    page = np.full((300, 200), 255)
    page[:100] = 0
    assert longest_blank(page) == pytest.approx(2 / 3)


def test_no_text_of_the_paper_is_smaller_than_seven_points(results: Path) -> None:
    document = (results / "paper.pdf").read_bytes()
    sizes: set[float] = set()
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", document, re.DOTALL):
        try:
            content = zlib.decompress(stream)
        except zlib.error:
            continue
        sizes |= {float(size) for size in re.findall(rb"/\w+ ([0-9.]+) Tf\b", content)}
    assert sizes, "the document has no text that this test can find"
    assert min(sizes) >= LEAST_POINTS


def test_findings_and_synthetic_data_notice_are_on_the_first_page(results: Path) -> None:
    for selector in ("<findings>", "<synthetic>"):
        found = typst.query(results / "paper" / "main.typ", selector, root=results, ignore_system_fonts=True)
        assert {each["value"] for each in json.loads(found)} == {1}, selector


def test_findings_state_the_planted_results(results: Path) -> None:
    found = values(results)["findings"]
    assert 4 <= len(found) <= 6
    single, batch, growth, cold, claims = found
    assert re.match(r"One event at a time, DuckLake \+ inlining has the shortest median write", single), single
    assert "Iceberg (PyIceberg) the longest" in single
    assert batch.startswith("In batches, ")
    assert re.search(r"slows down most: .* leaves the most files, \d", growth), growth
    assert cold.startswith("In run 0 (cold start), ")
    assert re.match(r"Of \d+ published claims, \d+ holds? here, \d+ do(?:es)? not", claims), claims


def texts(results: Path) -> list[str]:
    """Return every sentence that the paper prints about the results, and its prose."""
    found = values(results)
    made = [*found["sentences"].values(), *found["findings"]]
    for figure in found["figures"]:
        made += [figure["title"], figure["finding"], *figure["notes"]]
    for table in found["tables"]:
        made += [table["title"], *table["notes"], *(head for block in table["blocks"] for head in block["heads"])]
    return made + [path.read_text() for path in (results / "paper").rglob("*.typ")]


@pytest.mark.parametrize("private", PRIVATE)
def test_no_private_word_is_in_the_paper(results: Path, private: str) -> None:
    wrong = [
        match[0] for text in texts(results) for match in [re.search(f".{{0,40}}{private}.{{0,40}}", text)] if match
    ]
    assert not wrong


def test_captions_state_the_finding_and_leave_the_runs_to_the_appendix(results: Path) -> None:
    drawn = [figure for figure in values(results)["figures"] if figure["file"]]
    assert len(drawn) > 30
    for figure in drawn:
        assert figure["finding"].endswith("."), figure["name"]
        assert not re.search(r"\b[0-9a-f]{6,}\b", " ".join([figure["finding"], *figure["notes"]])), figure["name"]
    sourced = [name for names, provenance in values(results)["sources"] for name in names if " of " in provenance]
    assert {figure["name"] for figure in drawn} == {*sourced}


def test_figure_widths_match_column_and_page_width() -> None:
    margin = re.search(r"#let margin = \(x: ([0-9.]+)cm", (PAPER / "template.typ").read_text())
    gap = re.search(r"#let gap = ([0-9.]+)pt", (PAPER / "template.typ").read_text())
    assert margin is not None and gap is not None
    width = (21.0 - 2 * float(margin[1])) / 2.54
    assert pytest.approx(width, rel=0.01) == style.PAGE
    assert pytest.approx((width - float(gap[1]) / 72) / 2, rel=0.01) == style.COLUMN


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_wide_tables_are_split_into_blocks_that_fit(count: int) -> None:
    widths = [12, 9, *(7 + place % 5 * 6 for place in range(count))]
    made = blocks(widths, 2)
    assert [place for block in made for place in block[2:]] == list(range(2, len(widths)))
    assert all(block[:2] == [0, 1] for block in made)
    assert all(sum(widths[place] for place in block) <= LINE for block in made)
    ends = [sum(widths[place] for place in block) for block in made]
    assert max(ends) - min(ends) < 40, "blocks are about as wide as each other"


def test_column_wider_than_the_page_has_a_separate_block() -> None:
    assert blocks([10, 200, 20], 1) == [[0, 1], [0, 2]]
