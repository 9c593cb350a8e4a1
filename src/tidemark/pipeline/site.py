"""The results site: one folder of pages from the reference results and from archives."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tidemark.errors import ConfigError
from tidemark.integrity import sha256_of
from tidemark.paths import REPOSITORY
from tidemark.pipeline.build import all_findings, books, parts, subjects
from tidemark.pipeline.reference import FINDINGS, FIRST, build_reference, caveats, pages_of_systems, pictures
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import opened
from tidemark.results.claims.claims import load_claims
from tidemark.results.claims.judge import unjudged
from tidemark.results.reference.content import FILE, TABLES, folders, read_references
from tidemark.results.reference.findings import FOLDER as EVIDENCE
from tidemark.results.reference.findings import page, shown
from tidemark.results.reference.front import MATRIX, glance, narrow
from tidemark.results.reference.systems import GENERATED
from tidemark.results.report.page import write_gallery
from tidemark.results.report.summary_table import usual_columns
from tidemark.results.site.folder import replaced
from tidemark.results.site.html import Site, address_of, section
from tidemark.results.site.pages import (
    RESULTS,
    Archive,
    write_archives,
    write_claims,
    write_index,
    write_machines,
    write_releases,
    write_set,
    write_text,
)
from tidemark.results.site.sets import ResultSet
from tidemark.results.tables.table import read_table
from tidemark.studies.study import registry

TEXTS = ("docs/trust.md", "docs/method.md")  # that the pages of results lead to
REPORT = "report.html"
OF_STUDY = re.compile(r"^### (\w+),", re.MULTILINE)  # headings of a system's page
DIGITS = 12  # of the SHA-256 of an archive, in its address


def build_site(kept: Path, archives: Sequence[Path], target: Path) -> Path:
    """Write the site of the reference results in `kept` and of `archives`, or results folders, to the folder `target`.

    Return the path of its first page. Raise ConfigError if `kept` has no results, if an archive is given twice, and if
    `target` holds something else; AnalysisError if an archive is damaged. Nothing is written in these cases.
    """
    if not folders(kept):
        raise ConfigError(f"{kept}: found no {FILE} in it; allowed: a folder that './tidemark keep' writes")
    with replaced(target) as folder:
        added = _archives(archives, folder)
        for place in folders(kept):
            shutil.copytree(place, folder / place.name)
        _write(folder, kept, _sets(folder, folder), added)
    return target / "index.html"


def _archives(places: Sequence[Path], site: Path) -> list[Archive]:
    """Add each archive to the site, with the results that its run files give and a page to compare its systems."""
    made: list[Archive] = []
    for place in places:
        with opened(place) as run_set, tempfile.TemporaryDirectory() as packed:
            file = place if place.is_file() else write_archive(run_set.results, Path(packed, "archive.zip"))
            digest = sha256_of(file)
            home = site / "archives" / digest[:DIGITS]
            if home.exists():
                raise ConfigError(f"{place}: holds the same as another one that is given; name each once")
            build_reference(file, home)
            shutil.copy(file, home / "archive.zip")
        write_gallery([place], lambda run_set: subjects(parts(run_set)), home / REPORT)
        name = place.stem or place.resolve().stem
        made.append(Archive(home.name, name, digest, (home / "archive.zip").stat().st_size, tuple(_sets(home, site))))
    if len(made) > 1:
        write_gallery(places, lambda run_set: subjects(parts(run_set)), site / "archives" / REPORT)
    return made


def _sets(place: Path, site: Path) -> list[ResultSet]:
    """Return the reference results in `place`, a folder of the site, the study of the first page first."""
    made = []
    for folder, reference in zip(folders(place), read_references(place), strict=True):
        study = registry()[reference.about.study]
        path, first = folder / TABLES / f"{MATRIX}.json", None
        if path.is_file():
            matrix = read_table(path)
            asked = usual_columns(study.results.questions, [column.key for column in matrix.columns])
            first = narrow(matrix, asked)
        address = folder.relative_to(site).as_posix()
        title = study.title if place == site else f"{study.title} (archive {place.name})"
        made.append(ResultSet(address, folder, title, study.question, reference, first))
    return sorted(made, key=lambda each: each.about.study != FIRST)


def _write(folder: Path, kept: Path, sets: Sequence[ResultSet], archives: Sequence[Archive]) -> None:
    texts = dict(_texts(kept))
    evidence = [path.relative_to(kept).as_posix() for path in sorted((kept / EVIDENCE).glob("*.json"))]
    names = ["claims", *(f"claims/{book.study}" for book in books()), *(each.address for each in sets)]
    site = Site(folder, {"index.html", *(f"{name}/index.html" for name in names), *map(address_of, texts), *evidence})
    site.put_style()
    for name in evidence:
        site.put(name, (kept / name).read_text())
    studies = (REPOSITORY / "docs" / "studies.md").read_text()
    whole = [*sets, *(each for archive in archives for each in archive.sets)]
    for each in whole:
        write_set(site, each, [*section(studies, each.about.study)] if each in sets else [])
    for source, text in texts.items():
        write_text(site, source, text)
    rows = [unjudged(claim, book, "") for book in books() for claim in load_claims(book)]
    write_claims(site, rows, sets, {name: study.title for name, study in registry().items()})
    write_machines(site, whole)
    write_releases(site, whole)
    write_archives(site, archives)
    _front(site, kept, sets, archives)
    write_index(site, whole)


def _texts(kept: Path) -> Iterator[tuple[str, str]]:
    """Yield the documents that are pages of the site, with their paths."""
    for source, text in pages_of_systems(kept).items():
        yield source, OF_STUDY.sub(r"### [\1](../studies.md#\1),", text.replace(GENERATED, ""))
    yield FINDINGS, page([shown(finding, kept) for finding in all_findings()])
    yield from ((source, (REPOSITORY / source).read_text()) for source in TEXTS)


def _front(site: Site, kept: Path, sets: Sequence[ResultSet], archives: Sequence[Archive]) -> None:
    found = glance(kept, FIRST)
    for name, drawing in pictures(kept).items():
        site.put(name.removeprefix("docs/"), drawing)
    lines = [] if found is None else [*found.lines(), "", "What the table does not show:", ""]
    lines += [f"- {each}" for each in caveats(kept)]
    site.write(
        "index.html",
        "front.html",
        title="Results at a glance",
        description=RESULTS,
        alternative=found.alternative() if found else "",
        text=site.markdown(lines, "README.md", "index.html"),
        sets=sets,
        archives=archives,
    )
