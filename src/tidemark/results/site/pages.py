"""Pages of the results site: of each study and its tables, of claims, machines, releases and archives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidemark import __version__
from tidemark.results.claims.judge import Row
from tidemark.results.reference.content import TABLES
from tidemark.results.reference.glance import released
from tidemark.results.site.html import Site, address_of
from tidemark.results.site.sets import ResultSet, ShownClaim, ShownTable, machine

INDEX, SCHEMA_VERSION = "index.json", 1
MARK = "tidemark_site"  # the key of INDEX that tells that a folder is a site
RESULTS = "Stream writes, many writers, freshness and catalogs of lakehouse tables, measured by Tidemark."


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


@dataclass(frozen=True, slots=True)
class Item:
    words: str
    address: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    anchor: str
    items: tuple[Item, ...]


def write_set(site: Site, of: ResultSet, description: Sequence[str]) -> Mapping[str, object]:
    """Write the page of a study and one of each table, with its CSV; return the study's entry in the index.

    `description` is a text of docs/studies.md about the study.
    """
    tables = []
    for table in of.read_tables():
        address = f"{of.address}/{TABLES}/{table.name}"
        site.put(f"{address}.csv", table.csv())
        tables.append(ShownTable.of(table))
        told = f"{table.title}. {of.question}"
        site.write(f"{address}.html", "table.html", title=table.title, description=told, set=of, table=tables[-1])
    address = f"{of.address}/index.html"
    text = site.markdown(description, "docs/studies.md", address)
    site.write(address, "study.html", title=of.title, description=of.question, set=of, tables=tables, text=text)
    return of.entry(tables)


def write_text(site: Site, source: str, text: str) -> None:
    """Write a page from a document in Markdown; `source` is its path in the repository."""
    title, _, body = text.removeprefix("# ").partition("\n")
    address = address_of(source)
    html = site.markdown(body, source, address)
    site.write(address, "page.html", title=title, description=f"{title}. {RESULTS}", text=html)


def write_claims(site: Site, rows: Sequence[Row], sets: Sequence[ResultSet], titles: Mapping[str, str]) -> None:
    """Write a page with the claims of each study, an anchor each, and one that lists the pages."""
    studies = dict.fromkeys(row.study for row in rows)
    items = []
    for study in studies:
        held: dict[str, list[ShownClaim]] = {}
        ours = [each for each in sets if each.about.study == study]
        for each in (ShownClaim.of(found) for of in ours for found in of.reference.held):
            held.setdefault(each.claim, []).append(each)
        shown = [row for row in rows if row.study == study]
        title, address = f"Claims of the study {study}", f"claims/{study}/index.html"
        told = f"{len(shown)} published claims, tested again: {titles[study]}"
        site.write(
            address, "claims.html", title=title, description=told, of=titles[study], rows=shown, held=held, sets=ours
        )
        counts = next((each.stacks[0].counts for each in ours), "none kept in the reference results")
        items.append(Item(study, address, f": {len(shown)} claims of {titles[study]}; {counts}"))
    lead = "Sentences with a number from publications on these systems, each tested again."
    _list(site, "claims", "Published claims", lead, [Section("By study", "studies", tuple(items))])


def write_machines(site: Site, sets: Sequence[ResultSet]) -> None:
    """Write the page of all machines, an anchor each."""
    found: dict[str, list[ResultSet]] = {}
    for of in sets:
        for words in of.about.machines:
            found.setdefault(words, []).append(of)
    lead = (
        "Where it was measured. Absolute times follow the machine, its disk's flushes above all; ratios between "
        "systems carry over better. Two machines of the same kind have different identities."
    )
    sections = [
        Section(
            f"{machine(words).words}, {machine(words).anchor[:6]}",
            machine(words).anchor,
            tuple(Item(of.title, f"{of.address}/index.html", f": {of.about.sizes}; {of.measured}") for of in ours),
        )
        for words, ours in found.items()
    ]
    _list(site, "machines", "Machines", lead, sections)


def write_releases(site: Site, sets: Sequence[ResultSet]) -> None:
    """Write the page of the releases that each study measured, an anchor for each stack."""
    lead = "The programs behind each result, as they reported themselves; a stack is a locked set of client libraries."
    sections = [
        Section(
            f"{of.about.name}, stack {stack}",
            f"{of.anchor}-{stack}",
            (
                Item(of.title, f"{of.address}/index.html", f", measured {of.measured}"),
                Item(released(of.about, stack)),
            ),
        )
        for of in sets
        for stack in of.about.stacks
    ]
    _list(site, "releases", "Releases", lead, sections)


def write_archives(site: Site, archives: Sequence[Archive]) -> None:
    """Write the page of all archives, and one of each."""
    told = f"Results of {len(archives)} archives. {RESULTS}"
    site.write("archives/index.html", "archives.html", title="Archives", description=told, archives=archives)
    for archive in archives:
        address, title = f"archives/{archive.digest}/index.html", f"Archive {archive.name}"
        told = f"{title}: {', '.join(of.about.study for of in archive.sets)}. {RESULTS}"
        site.write(address, "archive.html", title=title, description=told, archive=archive)


def write_index(site: Site, entries: Iterable[Mapping[str, object]]) -> None:
    """Write index.json: every result set with its files; paths are relative to the site."""
    whole = {MARK: SCHEMA_VERSION, "made_by": f"Tidemark {__version__}", "sets": list(entries)}
    site.put(INDEX, json.dumps(whole, indent=1) + "\n")


def _list(site: Site, name: str, title: str, lead: str, sections: Sequence[Section]) -> None:
    site.write(
        f"{name}/index.html",
        "list.html",
        title=title,
        description=f"{title}. {RESULTS}",
        lead=lead,
        sections=sections,
    )
