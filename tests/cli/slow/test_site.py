"""Tests of the documentation as a site: it builds without a warning, and its pages need nothing from outside."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from tests.cli.documents import PAGES, REPOSITORY

from tidemark.cli.main import main

REFERENCES = ("href", "src", "srcset", "data", "poster")  # attributes that name another file


class Page(HTMLParser):
    """Ids and references of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.references: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.references += [given[name] for name in REFERENCES if name in given]


@pytest.fixture(scope="module")
def site(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built from a folder that has nothing but the shared environments."""
    assert cache
    folder = tmp_path_factory.mktemp("documentation")
    command = [sys.executable, "-m", "tidemark", "docs", "--target", str(folder / "site")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"tidemark: wrote {folder / 'site' / 'index.html'}\n"
    assert "WARNING" not in done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_page_is_built_and_in_the_navigation(site: Path, pages: dict[Path, Page]) -> None:
    wanted = {site / page.removeprefix("docs/").replace(".md", ".html") for page in PAGES if page.startswith("docs/")}
    assert wanted <= pages.keys()
    linked = {(site / urlsplit(each).path).resolve() for each in pages[site / "glossary.html"].references}
    assert wanted - {site / "glossary.html"} <= linked


def test_no_page_refers_to_anything_outside(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for reference in page.references:
            parts = urlsplit(reference)
            assert parts.scheme in ("", "data") and not parts.netloc, f"{path}: {reference}"
            if parts.scheme == "data":
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert file.is_file() and file.is_relative_to(site), f"{path}: {reference}"
            if parts.fragment and file in pages:
                assert unquote(parts.fragment) in pages[file].ids, f"{path}: {reference}"


def test_no_style_loads_anything_from_outside(site: Path) -> None:
    styles = list(site.rglob("*.css"))
    assert styles
    for style in styles:
        text = style.read_text()
        assert not re.search(r"@import\s+(url\()?['\"]?(https?:)?//", text), style
        assert not [each for each in re.findall(r"url\(['\"]?([^)'\"]+)", text) if each.startswith(("http", "//"))], (
            style
        )


@pytest.mark.usefixtures("cache")
def test_a_broken_link_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Builds another page by the same settings."""
    for name in ("conf.py", "_static/tables.css", "_templates/page.html"):
        (tmp_path / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / "docs" / name, tmp_path / "docs" / name)
    (tmp_path / "docs" / "index.md").write_text("# One\n\n[two](two.md) [three](#three)\n")
    monkeypatch.setattr("tidemark.cli.docs.REPOSITORY", tmp_path)
    monkeypatch.setattr("sys.argv", ["tidemark", "docs", "--target", "site"])
    monkeypatch.chdir(tmp_path)
    assert main() == 1
    out, err = capsys.readouterr()
    first, second, last = err.splitlines()
    assert out == "" and "index.md:3: WARNING: " in first and "two.md" in first + second and "three" in first + second
    assert last == "tidemark: the documentation has the errors above; site holds what could be built"
