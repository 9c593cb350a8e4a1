"""HTML of the results site: templates, texts in Markdown, and links that hold in any folder and without a server."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from tidemark import __version__
from tidemark.paths import REPOSITORY
from tidemark.results.reference.front import study_page
from tidemark.results.reference.releases import anchor
from tidemark.results.report.page import PAGE
from tidemark.results.site.sets import cell_parts, here, identity, without_identity

TEMPLATES = REPOSITORY / "workflow" / "report" / "site"
GENERAL = "site"  # the card of pages without one of their own
FEED = "feed.xml"
STYLE, FACETS = "style.css", "facets.js"
COLOURS = re.compile(r":root[^{]*\{([^}]*)\}")  # in the report's style: the light ones, then the dark ones
TEXTS = ("docs/trust.md", "docs/method.md", "docs/anatomy.md")  # that the pages of results lead to
STUDIES = "docs/studies"
PLACES = re.compile(r"^(reference|studies)/")  # folders of the repository that are the root of the site
SCROLL = '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>'
ENVIRONMENT = Environment(
    loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)
ENVIRONMENT.globals.update(version=__version__)
ENVIRONMENT.filters.update({each.__name__: each for each in (cell_parts, here, identity, without_identity)})


@dataclass(frozen=True, slots=True)
class Site:
    """The folder of a site. `addresses` are the pages that texts may link to, as paths in the folder.

    `public` is the address of the web at which it will be, with a slash at its end; empty if it is not known.
    """

    folder: Path
    addresses: Collection[str]
    public: str = ""

    def write(self, address: str, template: str, card: str = GENERAL, **values: Any) -> None:
        """Write the page `address` from a template; `root` leads from the page to the folder of the site.

        `card` is the name of the picture that other sites show beside a link to the page.
        """
        url = self.public and self.public + re.sub(r"(^|/)index\.html$", r"\1", address)
        root, page = "../" * address.count("/"), ENVIRONMENT.get_template(template)
        self.put(address, page.render(root=root, address=address, public=self.public, url=url, card=card, **values))

    def put(self, address: str, content: str | bytes) -> None:
        path = self.folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def put_style(self) -> None:
        """Write the style of all pages, with the report's colours, and the script that filters tables."""
        self.put(FACETS, (TEMPLATES / FACETS).read_text())
        light, dark = COLOURS.findall((PAGE / STYLE).read_text())[:2]
        colours = f":root {{{light}}}\n@media (prefers-color-scheme: dark) {{ :root {{{dark}}} }}\n"
        self.put(STYLE, colours + (TEMPLATES / STYLE).read_text())

    def markdown(self, lines: str | Sequence[str], source: str, address: str) -> Markup:
        """Return a text of our documents as HTML.

        `source` is its path in the repository. Links to a page of the site lead from `address` to that page; other
        relative links become plain text. Its pictures are copied into the site.
        """
        parser = MarkdownIt("commonmark", {"html": True}).enable("table")
        parser.add_render_rule("table_open", lambda *_: SCROLL)
        parser.add_render_rule("table_close", lambda *_: "</table></div>")
        tokens = parser.parse(lines if isinstance(lines, str) else "\n".join(lines))
        for token, inside in pairwise([*tokens, Token("", "", 0)]):
            self._lead(token.children or (), source, address)
            if token.type == "heading_open" and source.startswith((STUDIES, *TEXTS)):
                token.attrs = {"id": anchor(inside.content)}
        return Markup(parser.renderer.render(tokens, parser.options, {}))

    def _lead(self, tokens: Sequence[Token], source: str, address: str) -> None:
        open_links: list[Token] = []
        for token in tokens:
            if token.type == "image":
                path = posixpath.normpath(posixpath.join(posixpath.dirname(source), str(token.attrs["src"])))
                self.put(shown := path.removeprefix("docs/"), (REPOSITORY / path).read_bytes())
                token.attrs["src"] = "../" * address.count("/") + shown
            elif token.type == "link_open":
                href = str(token.attrs["href"])
                if not href.startswith(("#", "https://")):
                    found = self._address(href, source)
                    token.attrs = {"href": "../" * address.count("/") + found} if found else {}
                    token.tag = "a" if found else "span"
                open_links.append(token)
            elif token.type == "link_close":
                token.tag = open_links.pop().tag

    def _address(self, href: str, source: str) -> str | None:
        """Return the page of the site for a link in `source`, with the anchor; None if there is none."""
        path, _, section = href.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if path.startswith(STUDIES):
            sections = re.findall("^### (.+)$", about_study(posixpath.basename(path).removesuffix(".md")), re.MULTILINE)
            section = section if section in map(anchor, sections) else ""  # the site's page has no others
        path = PLACES.sub("", address_of(path))
        return f"{path}{'#' * bool(section)}{section}" if path in self.addresses else None


def address_of(source: str) -> str:
    """Return the page of a document below docs/, by its path in the repository."""
    return re.sub(r"^docs/(.+)\.md$", r"\1/index.html", source)


def about_study(study: str) -> str:
    """Return the text of a study's page between its title and its results, one level of headings down."""
    path = REPOSITORY / study_page(study)
    text = path.read_text() if path.is_file() else ""
    found = re.match(r"# .*\n([\s\S]*?)^(## .*\s+)?<!-- ", text, re.MULTILINE)
    return re.sub(r"^## ", "### ", found[1].strip(), flags=re.MULTILINE) if found else ""
