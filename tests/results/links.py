"""Addresses and links of a folder of HTML pages; `python -m tests.results.links` writes the list of addresses again."""

from __future__ import annotations

import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from tidemark.pipeline.site import build_site

ADDRESSES = Path(__file__).with_name("addresses.txt")
REFERENCE = Path(__file__).parents[2] / "reference"
LOADED = {"img", "stylesheet", "icon", "script", "source"}  # elements whose targets a browser fetches by itself
PERMANENT = re.compile(r"(?!archives/)[\w-]+/(\d{4}-\d\d-\d\d-)?[0-9a-f]{12}/")  # they go with the published site


class Page(HTMLParser):
    """Links, anchors and pictures of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, str]] = []  # element and target
        self.undescribed = 0  # pictures without an alternative text
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if found.get("id"):
            assert found["id"] not in self.ids, f"the anchor {found['id']} stands twice"
            self.ids.add(found["id"] or "")
        named = found.get("rel") or tag if tag == "link" else tag
        self.links += [(named, found[name] or "") for name in ("href", "src", "srcset") if name in found]
        self.undescribed += tag == "img" and not found.get("alt")


def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


def problems(site: Path) -> list[str]:
    """Return each link to a file or an anchor that is not in `site`, and each picture without a text."""
    found, wrong = pages(site), []
    for path, page in found.items():
        name = path.relative_to(site).as_posix()
        wrong += [f"{name}: a picture has no text"] * page.undescribed
        for tag, link in page.links:
            place, _, anchor = link.partition("#")
            target = (path.parent / unquote(place)).resolve() if place else path
            if link.startswith("data:") or (link.startswith("https://") and tag not in LOADED):
                continue
            if not target.is_relative_to(site.resolve()) or not target.is_file():
                wrong.append(f"{name}: {link}: no such file")
            elif anchor and anchor not in found[target].ids:
                wrong.append(f"{name}: {link}: no such anchor")
    return wrong


def addresses(site: Path) -> list[str]:
    """Return each file of the site, and each page with an anchor, as paths below it, without permanent addresses."""
    made = [path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()]
    for path, page in pages(site).items():
        made += [f"{path.relative_to(site).as_posix()}#{anchor}" for anchor in page.ids - {"content"}]
    return sorted(each for each in made if not PERMANENT.match(each))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home = build_site(REFERENCE, [], Path(folder, "site")).parent
        ADDRESSES.write_text("".join(f"{address}\n" for address in addresses(home)))
