"""Reference results in README.md and docs/studies.md, between two marks; the text between them is generated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tidemark.analysis.formatting import MissingCell
from tidemark.errors import AnalysisError
from tidemark.results.claims.claims import VERDICTS
from tidemark.results.reference.content import FILE, TABLES, About, Reference, folders, read_references
from tidemark.results.report.summary_table import SummaryMetric, usual_columns
from tidemark.results.tables.table import SYSTEM, Column, Table, read_table

BEGIN, END = "<!-- reference: './tidemark artifact' writes this -->", "<!-- /reference -->"
OF = "<!-- reference of {}: './tidemark artifact' writes this -->"
MATRIX = "matrix"
NOT_APART = "Systems whose intervals overlap are not distinguishable here, whichever has the highest or lowest value."
APART = (
    "This was another day than above, when the machine may have been faster or slower. To see what the releases "
    "change, measure both in one run (`--config 'stacks=[{stacks}]'`)."
)
NONE = "There are none of this study yet."
UP = "../"  # from docs/ to the folder of README.md and the reference results
Kept = list[tuple[Path, Reference]]


def front(readme: str, kept: Path, study: str, questions: Sequence[SummaryMetric]) -> str:
    """Return `readme` with the reference figure of `study`, and the usual columns of its matrix of `questions`.

    Raise AnalysisError if the two marks are missing.
    """
    return _filled("README.md", readme, BEGIN, _first(kept, study, questions))


def overview(text: str, kept: Path) -> str:
    """Return `text`, that of docs/studies.md, with the figure and the verdict counts of each study with a mark there.

    Raise AnalysisError for a duplicate mark, or one without its end.
    """
    for study in re.findall(OF.format("([^:]+)"), text):
        text = _filled("docs/studies.md", text, OF.format(study), _short(kept, study))
    return text


def _filled(name: str, text: str, begin: str, lines: Iterable[str]) -> str:
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise AnalysisError(f"{name}: found no place for the reference results; allowed: one, '{begin}' to '{END}'")
    block = "\n".join((begin, *lines, END))
    return pattern.sub(lambda _: block, text)


def _kept(kept: Path) -> Kept:
    return list(zip(folders(kept), read_references(kept), strict=True))


def _first(kept: Path, study: str, questions: Sequence[SummaryMetric]) -> Iterator[str]:
    found = _kept(kept)
    ours = [(place, each) for place, each in found if each.about.study == study]
    if not ours:
        yield NONE
        return
    (place, first), *more = ours
    yield f"{_measured(first.about)}. Releases: {_released(first.about)}."
    yield from first.about.remarks
    yield from _figure(place, first, kept)
    yield from _matrix(place, kept, questions)
    for place, each in more:
        yield from ("", f"**The same with other releases: {_released(each.about, first.about)}.**")
        yield f"{_measured(each.about)}. {APART.format(stacks=', '.join((*first.about.stacks, *each.about.stacks)))}"
        yield from each.about.remarks
        yield from _matrix(place, kept, questions)
    yield from ("", NOT_APART)
    others = [(place, each) for place, each in found if each.about.study != study]
    if others:
        yield f"Reference results of other studies: {', '.join(_link(place, kept) for place, _ in others)}."


def _short(kept: Path, study: str) -> Iterator[str]:
    ours = [(place, each) for place, each in _kept(kept) if each.about.study == study]
    if not ours:
        yield NONE
    for number, (place, each) in enumerate(ours):
        if not number:
            yield from _figure(place, each, kept, UP)
        counts = Counter(held.verdict for held in each.held)
        verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        yield from ("", f"{_measured(each.about)}. Of {len(each.held)} claims: {verdicts} ({_link(place, kept, UP)}).")
        yield from each.about.remarks


def _link(place: Path, kept: Path, up: str = "") -> str:
    return f"[`{place.name}`]({up}{kept.name}/{place.name}/{FILE})"


def _figure(place: Path, reference: Reference, kept: Path, up: str = "") -> Iterator[str]:
    figure = reference.figure
    if figure is not None:
        where = (place / figure.file).relative_to(kept.parent).as_posix()
        yield from ("", f"![{figure.title}]({up}{where})", "", f"*{figure.caption}*")


def _measured(about: About) -> str:
    return f"Measured on {' and '.join(about.machines)}: {about.sizes}; {about.dataset}"


def _released(about: About, other: About | None = None) -> str:
    """Return the programs with their releases; if `other` is given, only those whose release differs from it."""
    there = {} if other is None else _releases(other)
    mine = _releases(about)
    chosen = {name: release for name, release in mine.items() if there.get(name) != release}
    named = (
        f"{program} {release}" + (f" (above {there[program]})" if program in there else "")
        for program, release in chosen.items()
    )
    return ", ".join(named) or "those above"


def _releases(about: About) -> dict[str, str]:
    """Return releases by program name, ignoring case; a version without a dot is a revision, not a release."""
    found: dict[str, tuple[str, str]] = {}
    for each in about.versions:
        if "." in each.version:
            found.setdefault(each.program.lower(), (each.program, each.version))
    return dict(found.values())


def _matrix(place: Path, kept: Path, questions: Sequence[SummaryMetric]) -> Iterator[str]:
    path = place / TABLES / f"{MATRIX}.json"
    if path.is_file():
        whole = path.relative_to(kept.parent).as_posix()
        matrix = read_table(path)
        asked = usual_columns(questions, [column.key for column in matrix.columns])
        yield from ("", _narrow(matrix, asked).grid(), "", f"All columns: [`{whole}`]({whole}).")


def _narrow(matrix: Table, asked: Collection[str]) -> Table:
    """Return the table with the `asked` columns that have a value, and the identifying columns whose values differ."""

    def is_shown(place: int, column: Column) -> bool:
        if column.interval:
            return column.key in asked and not all(isinstance(row[place], MissingCell) for row in matrix.rows)
        return column == SYSTEM or len({row[place] for row in matrix.rows}) > 1

    places = [place for place, column in enumerate(matrix.columns) if is_shown(place, column)]
    return replace(
        matrix,
        columns=tuple(matrix.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in matrix.rows),
    )
