"""Tests of the results site: its addresses stay, its links hold, its pages are small, and it replaces only a site."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
from datetime import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.image import imread
from tests.results.links import ADDRESSES, REFERENCE, addresses, pages, problems

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.paths import REPOSITORY
from tidemark.pipeline.build import books
from tidemark.pipeline.plan import make_plan
from tidemark.pipeline.site import build_site
from tidemark.results.claims.claims import load_claims
from tidemark.results.reference.content import read_references
from tidemark.results.reference.front import study_page
from tidemark.results.site.html import Site, about_study
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


def test_link_to_a_section_of_a_study_leads_to_that_section(tmp_path: Path) -> None:
    made, page = Site(tmp_path, {"ingest/index.html"}), study_page("ingest")
    there, gone = f"[what to set]({page}#what-to-set)", f"[results]({page}#results)"
    assert 'href="ingest/index.html#what-to-set"' in made.markdown(there, "README.md", "index.html")
    assert 'href="ingest/index.html"' in made.markdown(gone, "README.md", "index.html"), "the site has others there"
    assert '<h3 id="what-to-set">' in made.markdown(about_study("ingest"), page, "ingest/index.html")


def test_planted_errors_are_found(site: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(site, tmp_path / "site")
    text = (broken / "index.html").read_text()
    for right, wrong in PLANTED.items():
        assert right in text and wrong not in text
        text = text.replace(right, wrong, 1)
    (broken / "index.html").write_text(text)
    found = problems(broken)
    assert len(found) == len(PLANTED) and len({*found}) == len(PLANTED), found


def test_pages_are_small_and_have_no_script_but_the_filters(site: Path) -> None:
    for path in pages(site):
        assert path.stat().st_size < MOST_BYTES, path
        text = path.read_text()
        filters = text.count(f'<script src="{"../" * path.relative_to(site).as_posix().count("/")}facets.js"></script>')
        assert text.count("<script") == filters <= 1 and text.count("<h1>") == 1
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


def test_rows_have_the_facets_in_which_they_differ(site: Path) -> None:
    text = (site / "streams" / "tables" / "matrix.html").read_text()
    row = next(line for line in text.splitlines() if "Delta (delta-rs)" in line and 'data-stack="current"' in line)
    assert all(facet in row for facet in ('data-format="Delta', 'data-client="delta-rs', "data-catalog="))
    assert "data-durability" not in text, "all have the same"


def test_a_name_leads_to_the_runs_of_the_system_and_to_a_command_that_plans_them(site: Path) -> None:
    assert '<th scope="row"><a href="../streams/runs/delta-rs.html">' in (site / "streams" / "index.html").read_text()
    kept = next(each for each in read_references(REFERENCE) if each.about.study == "streams")
    mine = [run for run in kept.runs if run.system == "delta-rs"]
    page = (site / "streams" / "runs" / "delta-rs.html").read_text()
    assert mine and page.count("<tr data-mode=") == len(mine)
    command = re.search(r"<pre><code>\./tidemark all --config (.*)</code></pre>", page)
    assert command is not None
    planned = make_plan(load(REPOSITORY / "config.yaml", shlex.split(html.unescape(command[1]))))
    assert {series.system for series in planned.series} == {"delta-rs"}
    assert {series.stack for series in planned.series} == set(kept.about.stacks)


def test_earlier_results_stay_at_their_address(site: Path, tmp_path: Path) -> None:
    newer = Path(shutil.copytree(REFERENCE, tmp_path / "newer"))
    path = newer / "streams" / "reference.json"
    content = path.read_text()
    earlier = next(each.parent for each in site.glob("streams/*/reference.json"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-[0-9a-f]{12}", earlier.name) and earlier.name[11:] in content
    path.write_text(content.replace(earlier.name[11:], "0" * 12))
    again = Path(shutil.copytree(site, tmp_path / "site"))
    build_site(newer, [], again)
    there = [
        sorted(each.relative_to(home) for each in home.rglob("*"))
        for home in (earlier, again / "streams" / earlier.name)
    ]
    assert there[0] == there[1]
    assert problems(again) == []
    newest = (again / "streams" / "index.html").read_text()
    assert f'{earlier.name[:11]}{"0" * 12}/index.html"' in newest and f"{earlier.name}/index.html" in newest
    assert set(ADDRESSES.read_text().splitlines()) <= set(addresses(again))


def test_site_with_an_address_has_cards_and_a_feed(site: Path, tmp_path: Path) -> None:
    there = "https://example.org/tidemark"
    made = build_site(REFERENCE, [], tmp_path / "site", there).parent
    assert problems(made) == []
    for path in pages(made):
        card = re.search(rf'<meta property="og:image" content="{there}/(cards/[\w-]+\.png)">', path.read_text())
        assert card is not None and (made / card[1]).read_bytes()[:4] == b"\x89PNG", path
    for card_file in made.glob("cards/*.png"):
        drawn = imread(card_file)
        assert drawn.shape[:2] == (630, 1200) and (drawn[:, -24:] == drawn[0, 0]).all(), f"{card_file}: a line is cut"
    feed = ElementTree.parse(made / "feed.xml").getroot()
    links = [each.attrib["href"] for each in feed.iterfind("{*}entry/{*}link")]
    assert links and all((made / link.removeprefix(f"{there}/")).is_file() for link in links)
    assert all(datetime.fromisoformat(each.text or "") for each in feed.iterfind("{*}entry/{*}updated"))
    text = (made / "streams" / "index.html").read_text()
    assert f'<link rel="canonical" href="{there}/streams/">' in text
    assert not list(site.glob("cards/*")) and "og:image" not in (site / "index.html").read_text()
    for wrong in ("example.org", "https://", "https://example.org/?page=1"):
        with pytest.raises(ConfigError, match="--address: found '"):
            build_site(REFERENCE, [], tmp_path / "other", wrong)
    assert not (tmp_path / "other").exists()


def test_releases_of_two_stacks_stand_side_by_side(site: Path) -> None:
    page = (site / "releases" / "then-and-now" / "index.html").read_text()
    part = page.partition('<h2 id="iceberg-pyiceberg">')[2].partition("<h2")[0]
    assert "pyiceberg 0.10.0 → 0.12.0" in part
    rates = re.search(r"<td>Events/s, commits 1 to 100, single</td>\s*(?:<td>[\d.,]+ [^<]*</td>\s*){3}", part)
    assert rates is not None, "a rate with each stack, and their ratio"
    assert re.search(r"<td>HTTP requests of a commit</td>\s*<td>\d", part)


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
