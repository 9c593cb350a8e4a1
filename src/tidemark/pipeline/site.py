"""The results site: one folder of pages from the reference results and from archives."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tidemark.errors import ConfigError
from tidemark.integrity import sha256_of
from tidemark.paths import REPOSITORY
from tidemark.pipeline.build import all_findings, books, notes, parts, subjects
from tidemark.pipeline.reference import FINDINGS, FIRST, build_reference, caveats, matrix_of, pages_of_systems, pictures
from tidemark.results.archive.crate import LICENCE
from tidemark.results.archive.pack import write_archive
from tidemark.results.archive.unpack import opened
from tidemark.results.claims.claims import load_claims
from tidemark.results.claims.judge import unjudged
from tidemark.results.reference import findings, front, release_ledger, releases
from tidemark.results.reference.content import FILE, TABLES, folders, read_reference, read_references
from tidemark.results.reference.systems import GENERATED
from tidemark.results.report.page import write_gallery, write_site_report
from tidemark.results.site import pages
from tidemark.results.site.html import GENERAL, TEXTS, Site, about_study, address_of
from tidemark.results.site.rows import Traits
from tidemark.results.site.sets import DIGITS, ResultSet, permanent_address, without_identity
from tidemark.runs.runset import RunSet
from tidemark.studies.study import registry
from tidemark.systems.registry import registry as systems

REPORT = "report.html"
DATED = f"*/*/{FILE}"  # results at a permanent address: STUDY/DAY-DIGITS
OF_STUDY = re.compile(r"^### (\w+),", re.MULTILINE)  # headings of a system's page


def build_site(kept: Path, archives: Sequence[Path], target: Path, public: str = "") -> Path:
    """Write the site of the reference results in `kept` and of `archives`, or results folders, to the folder `target`.

    Earlier results of a site in `target` stay at their permanent addresses. `public` is the address of the web at which
    the site will be; without it there are no cards for sharing and no feed. Return the path of the first page.

    Raise ConfigError if `kept` has no results, if an archive is given twice, if `target` holds something else, and if
    `public` is no address; AnalysisError if an archive is damaged. Nothing is written in these cases.
    """
    public = _checked(public)
    if not folders(kept):
        raise ConfigError(f"{kept}: found no {FILE} in it; allowed: a folder that './tidemark keep' writes")
    with pages.replaced(target) as folder:
        added = _archives(archives, folder)
        _copy_results(kept, folder, target)
        _write(folder, kept, _newest(folder), added, public)
    return target / "index.html"


def _archives(places: Sequence[Path], site: Path) -> list[pages.Archive]:
    """Add each archive to the site, with the results that its run files give and a page to compare its systems."""
    made: list[pages.Archive] = []
    for place in places:
        with opened(place) as run_set, tempfile.TemporaryDirectory() as packed:
            file = place if place.is_file() else write_archive(run_set.results, Path(packed, "archive.zip"))
            digest = sha256_of(file)
            home = site / "archives" / digest[:DIGITS]
            if home.exists():
                raise ConfigError(f"{place}: holds the same as another one that is given; name each once")
            build_reference(file, home)
            shutil.copy(file, home / "archive.zip")
        with opened(home / "archive.zip") as run_set:
            files = _report(run_set, home, site)
        name, title = place.stem or place.resolve().stem, f" (archive {home.name})"
        sets = _ordered(
            _set(site, each, title=title, listed=_address(each, site), run_files=files) for each in folders(home)
        )
        made.append(pages.Archive(home.name, name, digest, (home / "archive.zip").stat().st_size, tuple(sets)))
    if len(made) > 1:
        write_gallery(places, lambda run_set: subjects(parts(run_set)), site / "archives" / REPORT)
    return made


def _report(run_set: RunSet, home: Path, site: Path) -> dict[tuple[str | int, ...], str]:
    """Write the report of an archive to `home`, and the run.json of each run, to which pages lead.

    Return the addresses of the latter by study, system, mode, stack, sweep, repeat and run.
    """
    files: dict[tuple[str | int, ...], str] = {}
    for series in run_set.series:
        for run in series.runs:
            target = home / run.directory.relative_to(run_set.results)
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(run.directory / "run.json", target)
            which = series.study, series.system, series.mode, series.stack, series.sweep, run.repeat, run.number
            files[which] = f"{_address(target, site)}/run.json"
    studies = [(f"{place.name}/index.html", "its claims and tables") for place in folders(home)]
    made = parts(run_set)
    downloads = [("archive.zip", "the archive, which rebuilds every table and figure"), *studies]
    write_site_report(run_set, subjects(made), notes(made), downloads, home / REPORT)
    return files


def _copy_results(kept: Path, site: Path, target: Path) -> None:
    """Copy the results of `kept` to `site` and to their permanent addresses there, and earlier ones from `target`."""
    for place, reference in zip(folders(kept), read_references(kept), strict=True):
        for address in (place.name, permanent_address(place.name, reference)):
            shutil.copytree(place, site / address)
    for path in target.glob(DATED):
        earlier = site / path.parent.relative_to(target)
        if not earlier.exists():
            shutil.copytree(path.parent, earlier, ignore=shutil.ignore_patterns("*.html", "*.csv"))


def _newest(site: Path) -> list[ResultSet]:
    """Return the newest results of each study, the study of the first page first."""
    made = []
    for place, reference in zip(folders(site), read_references(site), strict=True):
        permanent = permanent_address(place.name, reference)
        others = {_address(path.parent, site): path.parent for path in place.glob(f"*/{FILE}")}
        days = {address: read_reference(other).days for address, other in others.items() if address != permanent}
        earlier = {address: " to ".join(days[address]) or "not recorded" for address in sorted(days, reverse=True)}
        made.append(_set(site, place, listed=place.name, permanent=permanent, earlier=earlier))
    return _ordered(made)


def _permanent(site: Path, newest: Sequence[ResultSet]) -> Iterator[ResultSet]:
    """Yield the results at the permanent addresses, those that are `newest` among them."""
    same = {each.permanent: each.address for each in newest}
    studies = {each.address for each in newest}
    for path in sorted(site.glob(DATED)):
        address = _address(path.parent, site)
        study = address.partition("/")[0]
        listed = same.get(address, address)
        days = " to ".join(read_reference(path.parent).days)
        yield _set(
            site,
            path.parent,
            listed=listed,
            permanent=address,
            newest=study if study in studies else None,
            title=f", {days}" if days else ", earlier results",
        )


def _set(site: Path, place: Path, *, title: str = "", **fields: Any) -> ResultSet:
    """Return the results in the folder `place` of the site; `title` follows that of the study."""
    reference = read_reference(place)
    study = registry()[reference.about.study]
    path = place / TABLES / f"{front.MATRIX}.json"
    return ResultSet(
        _address(place, site),
        place,
        f"{study.title}{title}",
        study.question,
        reference,
        matrix_of(path, study) if path.is_file() else None,
        systems=_traits(),
        units={quantity.name: quantity.unit for quantity in study.results.quantities.headline},
        **fields,
    )


@cache
def _traits() -> dict[str, Traits]:
    """Return the format, the client and the catalog of each system, by its title."""
    known = systems().items()
    return {system.title: Traits(name, system.format, system.client, system.catalog) for name, system in known}


def _address(place: Path, site: Path) -> str:
    return place.relative_to(site).as_posix()


def _ordered(sets: Iterable[ResultSet]) -> list[ResultSet]:
    return sorted(sets, key=lambda each: each.about.study != FIRST)


def _checked(public: str) -> str:
    """Return the address of the web with a slash at its end; raise ConfigError if it is none."""
    try:
        parts = urlsplit(public)
        is_usable = parts.scheme in ("https", "http") and parts.hostname and not (parts.query or parts.fragment)
    except ValueError:
        is_usable = False
    if public and not is_usable:
        raise ConfigError(f"--address: found '{public}'; allowed: an address such as 'https://example.org/results'")
    return public and f"{public.rstrip('/')}/"


def _write(folder: Path, kept: Path, sets: Sequence[ResultSet], archives: Sequence[pages.Archive], public: str) -> None:
    texts = dict(_texts(kept))
    evidence = [path.relative_to(kept).as_posix() for path in sorted((kept / findings.FOLDER).glob("*.json"))]
    names = ["claims", *(f"claims/{book.study}" for book in books()), *(each.address for each in sets)]
    then_and_now = f"{TABLES}/{releases.THEN_AND_NOW}.json"
    compared = next((each for each in sets if each.first and (each.place / then_and_now).is_file()), None)
    names += ["releases/then-and-now"] if compared else []
    site = Site(
        folder, {"index.html", *(f"{name}/index.html" for name in names), *map(address_of, texts), *evidence}, public
    )
    site.put_style()
    site.put("LICENSE.txt", LICENCE.read_text())
    if compared is not None:
        pages.write_then_and_now(site, [*releases.releases_page(compared.place, kept)], compared)
    for name in evidence:
        site.put(name, (kept / name).read_text())
    permanent = [*_permanent(folder, sets)]
    earlier = [each for each in permanent if each.listed == each.address]
    whole = [*sets, *earlier, *(each for archive in archives for each in archive.sets)]
    for each in (*sets, *permanent, *(each for archive in archives for each in archive.sets)):
        pages.write_set(site, each, about_study(each.about.study) if each in sets else "")
    for source, text in texts.items():
        pages.write_text(site, source, text)
    rows = [unjudged(claim, book, "") for book in books() for claim in load_claims(book)]
    pages.write_claims(site, rows, sets, {name: study.title for name, study in registry().items()})
    pages.write_machines(site, whole)
    pages.write_releases(site, whole)
    pages.write_archives(site, archives)
    _front(site, kept, sets, archives)
    pages.write_index(site, whole)
    if public:
        pages.write_feed(site, whole)
        _cards(site, sets)


def _cards(site: Site, sets: Sequence[ResultSet]) -> None:
    """Write the pictures that other sites show beside links: one for each study, and a general one."""
    from tidemark.results.figures.glance import card  # imports Matplotlib, as figures do

    known = {each.about.study: each for each in reversed(sets)}
    for name, study in registry().items():
        of = known.get(name)
        facts = [f"Measured: {of.measured}", *map(without_identity, of.about.machines)] if of else []
        site.put(f"cards/{name}.png", card(study.title, study.question, facts))
    verdicts = sum(len(each.reference.held) for each in known.values())
    told = [f"{len(known)} studies, {verdicts:,} verdicts on published claims"]
    site.put(f"cards/{GENERAL}.png", card("Results at a glance", pages.RESULTS, told))


def _texts(kept: Path) -> Iterator[tuple[str, str]]:
    """Yield the documents that are pages of the site, with their paths."""
    for source, text in pages_of_systems(kept).items():
        yield source, OF_STUDY.sub(r"### [\1](../studies/\1.md),", text.replace(GENERATED, ""))
    yield FINDINGS, findings.page([findings.shown(finding, kept) for finding in all_findings()])
    if ledgers := release_ledger.kept_ledgers(kept):
        yield release_ledger.PAGE, "\n".join(release_ledger.ledger_page(ledgers))
    yield from ((source, (REPOSITORY / source).read_text()) for source in TEXTS)


def _front(site: Site, kept: Path, sets: Sequence[ResultSet], archives: Sequence[pages.Archive]) -> None:
    found = front.glance(kept, FIRST)
    for name, drawing in pictures(kept).items():
        site.put(name.removeprefix("docs/"), drawing)
    lines = [] if found is None else [*found.lines(), "", "What the table does not show:", ""]
    lines += [f"- {each}" for each in caveats(kept)]
    site.write(
        "index.html",
        "front.html",
        title="Results at a glance",
        description=pages.RESULTS,
        alternative=found.alternative() if found else "",
        text=site.markdown(lines, "README.md", "index.html"),
        sets=sets,
        archives=archives,
        then_and_now=pages.THEN_AND_NOW if pages.THEN_AND_NOW in site.addresses else "",
        ledger=pages.LEDGER if pages.LEDGER in site.addresses else "",
    )
