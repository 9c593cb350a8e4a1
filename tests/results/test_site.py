"""Tests of the results site: its addresses stay, its links hold, its pages are small, and it replaces only a site."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.results.links import ADDRESSES, REFERENCE, addresses, pages, problems

from tidemark.errors import ConfigError
from tidemark.pipeline.build import books
from tidemark.pipeline.site import build_site
from tidemark.results.claims.claims import load_claims
from tidemark.results.tables.table import read_table

MOST_BYTES = 300_000
PLANTED = {
    'href="streams/index.html"': 'href="stream/index.html"',
    'src="images/glance.svg"': 'src="images/glanze.svg"',
    'href="style.css"': 'href="https://example.org/style.css"',
    'href="claims/index.html"': 'href="claims/index.html#nope"',
    'alt="Events': 'title="Events',
}


def test_addresses_are_those_that_were_published(site: Path) -> None:
    kept = ADDRESSES.read_text().splitlines()
    made = addresses(site)
    assert not set(kept) - set(made), "an address that others may link to is gone: keep a page there"
    assert made == kept, "new addresses: python -m tests.results.links adds them to the list"


def test_every_link_leads_to_a_file_of_the_site(site: Path) -> None:
    assert problems(site) == []


@pytest.mark.parametrize("right", PLANTED)
def test_planted_error_is_found(right: str, site: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(site, tmp_path / "site")
    text = (broken / "index.html").read_text()
    assert right in text
    (broken / "index.html").write_text(text.replace(right, PLANTED[right], 1))
    assert len(problems(broken)) == 1


def test_pages_are_small_and_have_no_script(site: Path) -> None:
    for path in pages(site):
        assert path.stat().st_size < MOST_BYTES, path
        text = path.read_text()
        assert "<script" not in text and text.count("<h1>") == 1
        assert re.search(r'<meta name="description" content="[^"]{20,}">', text), path


def test_every_claim_has_an_anchor_and_every_table_its_downloads(site: Path) -> None:
    found = pages(site)
    for book in books():
        wanted = {claim.id for claim in load_claims(book)}
        assert wanted <= found[site / "claims" / book.study / "index.html"].ids
    index = json.loads((site / "index.json").read_text())
    assert {entry["study"] for entry in index["sets"]} == {book.study for book in books()}
    for table in (table for entry in index["sets"] for table in entry["tables"]):
        assert read_table(site / table["json"]).csv() == (site / table["csv"]).read_text()


def test_colours_have_enough_contrast(site: Path) -> None:
    themes = re.findall(r":root \{([^}]*)\}", (site / "style.css").read_text())
    assert len(themes) == 2
    for theme in themes:
        colours = dict(re.findall(r"--([\w-]+): (#\w+)", theme))
        pairs = [(name, "paper") for name in ("ink", "faint", "accent", "held", "open", "warning")]
        for one, other in [*pairs, ("ink", "raised"), ("accent", "raised"), ("bar-ink", "bar-paper")]:
            light, dark = sorted((_luminance(colours[one]), _luminance(colours[other])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (one, other)


def _luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_only_a_site_is_replaced(site: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("mine")
    with pytest.raises(ConfigError, match="thesis: holds something else than a site"):
        build_site(REFERENCE, [], tmp_path / "thesis")
    old = tmp_path / "old"
    old.mkdir()
    shutil.copy(site / "index.json", old)
    (old / "gone.html").write_text("of an earlier site")
    assert build_site(REFERENCE, [], old) == old / "index.html"
    assert addresses(old) == addresses(site)
    assert {path.name for path in tmp_path.iterdir()} == {"thesis", "old"}
