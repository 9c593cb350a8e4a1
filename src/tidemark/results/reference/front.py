"""Reference results in README.md and the pages of studies, between two marks; the text between them is generated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from tidemark.analysis.formatting import MissingCell
from tidemark.errors import AnalysisError
from tidemark.results.claims.claims import VERDICTS
from tidemark.results.claims.judge import counts_text
from tidemark.results.reference.artifact import Effort
from tidemark.results.reference.content import FILE, TABLES, Reference, folders, read_references
from tidemark.results.reference.glance import Glance, released
from tidemark.results.report.summary_table import SummaryMetric, usual_columns
from tidemark.results.tables.table import SYSTEM, Column, Table, markdown_grid, read_table

BEGIN, END = "<!-- reference: './tidemark artifact' writes this -->", "<!-- /reference -->"
OF_STUDIES = "<!-- studies: './tidemark artifact' writes this -->"
ADVICE = "<!-- advice: './tidemark artifact' writes this -->"
POLICIES = "<!-- policies of upkeep: './tidemark artifact' writes this -->"
OF = "<!-- reference of {}: './tidemark artifact' writes this -->"
MATRIX = "matrix"
LIGHT, DARK = "docs/images/glance.svg", "docs/images/glance-dark.svg"  # the first page's picture
APART = (
    "These are other runs than above, when the machine may have been faster or slower. To see what the releases "
    "change, measure both in one run (`--config 'stacks=[{stacks}]'`)."
)
NONE = "There are none of this study yet."
UP = "../../"  # from docs/studies to the folder of README.md and the reference results
Kept = list[tuple[Path, Reference]]


def study_page(study: str) -> str:
    """Return the path of a study's page."""
    return f"docs/studies/{study}.md"


def front(readme: str, kept: Path, caveats: Iterable[str], efforts: Sequence[Effort]) -> str:
    """Return `readme` with the picture and the small table of the first study of `efforts`, and the list of all.

    `caveats` are what the table does not show. Raise AnalysisError if a mark is missing.
    """
    text = filled("README.md", readme, BEGIN, _first(glance(kept, efforts[0].study), caveats))
    return filled("README.md", text, OF_STUDIES, _list(efforts, kept))


def _list(efforts: Sequence[Effort], kept: Path) -> Iterator[str]:
    found = _kept(kept)
    rows = []
    for each in efforts:
        ours = (reference for _, reference in found if reference.about.study == each.study)
        counts = next((_counts(reference, reference.about.stacks[0]) for reference in ours), None)
        judged = " / ".join(str(counts[verdict]) for verdict in VERDICTS) if counts else "none kept"
        link = f"[`{each.study}`]({study_page(each.study)})"
        rows.append([link, each.question, f"{each.seconds / 60:.0f} min", judged])
    heads = ["Study", "Question", f"`{efforts[0].protocol}`", f"Claims: {' / '.join(VERDICTS)}"]
    yield markdown_grid(heads, rows)


def _counts(reference: Reference, stack: str) -> Counter[str]:
    return Counter(each.verdict for each in reference.held if each.stack == stack)


def verdicts(reference: Reference, stack: str) -> str:
    """Return the number of claims by verdict under a stack, as text; empty without claims."""
    counts = _counts(reference, stack)
    return counts_text({verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]})


def glance(kept: Path, study: str) -> Glance | None:
    """Return what the first page shows of `study`: the reference results with the newest releases; None without any."""
    ours = [Glance(place, each) for place, each in _kept(kept) if each.about.study == study]
    return ours[-1] if ours else None


def with_results(study: str, text: str, kept: Path, questions: Sequence[SummaryMetric]) -> str:
    """Return `text`, that of the page of `study`, with figure, table and verdict counts of its reference results.

    The table has the usual columns of the study's `questions`. Raise AnalysisError unless there is one place for them.
    """
    return filled(study_page(study), text, OF.format(study), _short(kept, study, questions))


def filled(name: str, text: str, begin: str, lines: Iterable[str]) -> str:
    """Return the `text` of the file `name` with `lines` between the mark `begin` and END.

    Raise AnalysisError unless it has one such place.
    """
    pattern = re.compile(f"{re.escape(begin)}\n.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise AnalysisError(f"{name}: found no place for the reference results; allowed: one, '{begin}' to '{END}'")
    block = "\n".join((begin, *lines, END))
    return pattern.sub(lambda _: block, text)


def _kept(kept: Path) -> Kept:
    return list(zip(folders(kept), read_references(kept), strict=True))


def _first(found: Glance | None, caveats: Iterable[str]) -> Iterator[str]:
    if found is None:
        yield NONE
        return
    yield from ("<picture>", f'  <source media="(prefers-color-scheme: dark)" srcset="{DARK}">')
    yield from (f'  <img src="{LIGHT}" width="830" alt="{escape(found.alternative())}">', "</picture>", "")
    yield from found.lines()
    yield from ("", "What the table does not show:", "", *(f"- {each}" for each in caveats))


def _short(kept: Path, study: str, questions: Sequence[SummaryMetric]) -> Iterator[str]:
    ours = [(place, each) for place, each in _kept(kept) if each.about.study == study]
    if not ours:
        yield NONE
    for number, (place, each) in enumerate(ours):
        if not number:
            yield from _figure(place, each, kept)
        about, first = each.about, ours[0][1].about
        yield from ("", f"Measured on {' and '.join(about.machines)}: {about.sizes}; {about.dataset}.")
        for stack in about.stacks:
            claims = f"Of {sum(held.stack == stack for held in each.held)} claims"
            by = f" with the stack `{stack}`" if len(about.stacks) > 1 else ""
            yield f"{claims}{by}: {verdicts(each, stack)} ([`{place.name}`]({UP}{kept.name}/{place.name}/{FILE}))."
        yield from about.remarks
        if not set(about.stacks) <= set(first.stacks):
            yield APART.format(stacks=", ".join((*first.stacks, *about.stacks)))
        if questions:
            for stack in about.stacks:
                by = f" of the stack `{stack}`" if len(about.stacks) > 1 else ""
                is_first = about is first and stack == first.stacks[0]
                yield f"Releases{by}: {released(about, stack, None if is_first else first)}."
            yield from _matrix(place, kept, questions)


def _figure(place: Path, reference: Reference, kept: Path) -> Iterator[str]:
    figure = reference.figure
    if figure is not None:
        where = (place / figure.file).relative_to(kept.parent).as_posix()
        yield from ("", f"![{figure.title}]({UP}{where})", "", f"*{figure.caption}*")


def _matrix(place: Path, kept: Path, questions: Sequence[SummaryMetric]) -> Iterator[str]:
    path = place / TABLES / f"{MATRIX}.json"
    if path.is_file():
        whole = path.relative_to(kept.parent).as_posix()
        matrix = read_table(path)
        there = [column.key for column in matrix.columns]
        for mode in dict.fromkeys(each.mode for each in questions):  # a table each: pages are not as wide as all of it
            asked = usual_columns([each for each in questions if each.mode == mode], there)
            shown = narrow(matrix, asked)
            if any(column.interval for column in shown.columns):
                yield from ("", shown.grid())
        yield from ("", f"All columns: [`{whole}`]({UP}{whole}).")


def narrow(matrix: Table, asked: Collection[str]) -> Table:
    """Return the table with the `asked` columns that have a value, and the identifying columns whose values differ."""

    def is_shown(place: int, column: Column) -> bool:
        if column.interval:
            return column.key in asked and not all(isinstance(row[place], MissingCell) for row in matrix.rows)
        return column == SYSTEM or len({row[place] for row in matrix.rows}) > 1

    places = [place for place, column in enumerate(matrix.columns) if is_shown(place, column)]
    columns = tuple(matrix.columns[place] for place in places)
    rows = tuple(tuple(row[place] for place in places) for row in matrix.rows)
    return replace(matrix, columns=columns, rows=rows)
