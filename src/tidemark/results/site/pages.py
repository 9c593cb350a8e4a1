"""Pages of the results site: of each study and its tables, of claims, machines, releases and archives."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from tidemark import __version__
from tidemark.errors import AnalysisError, ConfigError
from tidemark.results.archive.crate import OF_RESULTS
from tidemark.results.claims.judge import Row
from tidemark.results.reference.content import TABLES, Held
from tidemark.results.reference.front import study_page
from tidemark.results.reference.glance import released
from tidemark.results.site.html import FEED, Site, address_of
from tidemark.results.site.rows import runs_of
from tidemark.results.site.sets import ResultSet, identity, without_identity
from tidemark.runs.serde import Fields

INDEX, SCHEMA_VERSION = "index.json", 1
THEN_AND_NOW = "releases/then-and-now/index.html"
LEDGER = "releases/ledger/index.html"
MARK = "tidemark_site"  # the key of INDEX that tells that a folder is a site
RESULTS = "Stream writes, many writers, freshness and catalog servers of lakehouse tables, measured by Tidemark."
MOST_CELLS = 4_000  # that a page shows of a table: about 200 kB

type Items = list[tuple[str, str, str]]  # words, address of their page or "", and the words after them
type Sections = list[tuple[str, str, Items]]  # title, anchor, content


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive in the site, by the first digits of its SHA-256; `name` is that of its file."""

    digest: str
    name: str
    sha256: str
    size_bytes: int
    sets: tuple[ResultSet, ...]

    @property
    def size(self) -> str:
        return f"{self.size_bytes / 1e6:.1f} MB"


def write_set(site: Site, of: ResultSet, description: str) -> None:
    """Write the page of a study, one of each table, with its CSV, and one of the runs of each system.

    `description` is the text of the study's page.
    """
    about: dict[str, Any] = {"description": of.question, "set": of, "card": of.about.study}
    for table in of.tables():
        address = f"{of.address}/{TABLES}/{table.name}"
        site.put(f"{address}.csv", table.csv())
        most = max(MOST_CELLS // len(table.columns), 1)
        site.write(f"{address}.html", "table.html", title=table.title, **about, table=table, most=most)
    for name, title in of.measured_systems.items():
        names, runs = runs_of(name, of.reference.runs)
        page = f"systems/{name}/index.html"
        shown: dict[str, Any] = {"name": title, "names": names, "runs": runs, "command": of.command_of(name)}
        shown["system"] = page if page in site.addresses else ""
        site.write(f"{of.address}/runs/{name}.html", "runs.html", title=f"Runs of {title}", **about, **shown)
    address = f"{of.address}/index.html"
    text = site.markdown(description, study_page(of.about.study), address)
    site.write(address, "study.html", title=of.title, **about, text=text)


def write_text(site: Site, source: str, text: str) -> None:
    """Write a page from a document in Markdown; `source` is its path in the repository."""
    title, _, body = text.removeprefix("# ").partition("\n")
    html = site.markdown(body, source, address_of(source))
    site.write(address_of(source), "page.html", title=title, description=f"{title}. {RESULTS}", text=html)


def write_claims(site: Site, rows: Sequence[Row], sets: Sequence[ResultSet], titles: Mapping[str, str]) -> None:
    """Write a page with the claims of each study, an anchor each, and one that lists the pages."""
    items: Items = []
    for study in dict.fromkeys(row.study for row in rows):
        held: dict[str, list[Held]] = {}
        ours = [of for of in sets if of.about.study == study]
        for each in (each for of in ours for each in of.reference.held):
            held.setdefault(each.claim, []).append(each)
        mine = [row for row in rows if row.study == study]
        told = f"{len(mine)} claims of {titles[study]}"
        address, title = f"claims/{study}/index.html", f"Claims of the study {study}"
        about = {"title": title, "description": f"{told}, tested again.", "of": titles[study]}
        site.write(address, "claims.html", **about, rows=mine, held=held, sets=ours)
        counts = next((each for of in ours for each in of.counts.values()), "none kept in the reference results")
        items.append((study, address, f": {told}; {counts}"))
    lead = "Sentences with a number from publications on these systems, each tested again."
    _list(site, "claims", "Published claims", lead, [("By study", "studies", items)])


def write_machines(site: Site, sets: Sequence[ResultSet]) -> None:
    """Write the page of all machines, an anchor each."""
    found: dict[str, Items] = {}
    for of in sets:
        for machine in of.about.machines:
            item = (of.title, f"{of.address}/index.html", f": {of.about.sizes}; measured: {of.measured}")
            found.setdefault(machine, []).append(item)
    lead = (
        "Where it was measured. Absolute times follow the machine, its disk's flushes above all; ratios between "
        "systems carry over better. Two machines of the same kind have different identities."
    )
    sections = [
        (f"{without_identity(machine)}, {identity(machine)[:6]}", identity(machine), items)
        for machine, items in found.items()
    ]
    _list(site, "machines", "Machines", lead, sections)


def write_then_and_now(site: Site, lines: Sequence[str], of: ResultSet) -> None:
    """Write the page that compares the releases of two stacks, from its text and the results that it is about."""
    title = "Then and now: each system with two sets of releases"
    about = {"title": title, "description": f"{title}. {RESULTS}"}
    text = site.markdown(lines, "docs/studies.md", THEN_AND_NOW)
    site.write(THEN_AND_NOW, "then-and-now.html", **about, set=of, text=text)


def write_releases(site: Site, sets: Sequence[ResultSet]) -> None:
    """Write the page of the releases that each study measured, an anchor for each stack."""
    lead = "The programs behind each result, as they reported themselves; a stack is a locked set of client libraries."
    if THEN_AND_NOW in site.addresses:
        lead += Markup(' <a href="then-and-now/index.html">Each system with two stacks</a>, side by side.')
    if LEDGER in site.addresses:
        lead += Markup(' <a href="ledger/index.html">Release by release</a>: what changed in each client.')
    sections: Sections = []
    for of in sets:
        for stack in of.about.stacks:
            items = [(of.title, f"{of.address}/index.html", f"; measured: {of.measured}")]
            items.append((released(of.about, stack), "", ""))
            when = f", {of.measured}" if of.newest else ""
            sections.append((f"{of.about.name}, stack {stack}{when}", f"{of.anchor}-{stack}", items))
    _list(site, "releases", "Releases", lead, sections)


def write_archives(site: Site, archives: Sequence[Archive]) -> None:
    """Write the page of all archives, and one of each."""
    told = f"Results of {len(archives)} archives. {RESULTS}"
    site.write("archives/index.html", "archives.html", title="Archives", description=told, archives=archives)
    for archive in archives:
        address, title = f"archives/{archive.digest}/index.html", f"Archive {archive.name}"
        told = f"{title}: {', '.join(of.about.study for of in archive.sets)}. {RESULTS}"
        site.write(address, "archive.html", title=title, description=told, archive=archive)


def write_feed(site: Site, sets: Sequence[ResultSet]) -> None:
    """Write the feed of the results whose time was recorded, the newest first; none if there are none."""
    dated = sorted((each for each in sets if each.reference.last), key=lambda each: each.reference.last, reverse=True)
    if dated:
        site.write(FEED, "feed.xml", description=RESULTS, sets=dated)


def write_index(site: Site, sets: Sequence[ResultSet]) -> None:
    """Write index.json: every result set with its files, as paths in the site."""
    made_by = f"Tidemark {__version__}"
    whole = {MARK: SCHEMA_VERSION, "made_by": made_by, "license": OF_RESULTS, "sets": [of.entry() for of in sets]}
    site.put(INDEX, json.dumps(whole, indent=1) + "\n")


def _list(site: Site, name: str, title: str, lead: str, sections: Sections) -> None:
    about = {"title": title, "description": f"{title}. {RESULTS}"}
    site.write(f"{name}/index.html", "list.html", **about, lead=lead, sections=sections)


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside `target` that takes its place at the end; on an error `target` stays as it was.

    Raise ConfigError if `target` has files and is not a site.
    """
    target = target.resolve()
    _refuse_others(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as beside:
        new, old = Path(beside, "new"), Path(beside, "old")
        new.mkdir()
        yield new
        if target.exists():
            target.rename(old)
        new.rename(target)


def _refuse_others(target: Path) -> None:
    if not target.exists() or not any(target.iterdir()):
        return
    try:
        is_site = MARK in Fields.read(target / INDEX).values
    except AnalysisError:
        is_site = False
    if not is_site:
        raise ConfigError(f"{target}: holds something else than a site of './tidemark site'; name another folder")
