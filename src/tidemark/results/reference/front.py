"""What README shows of the reference results, between two marks that nobody else writes between."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from tidemark.analysis.words import Missing
from tidemark.errors import AnalysisError
from tidemark.results.reference.content import FILE, TABLES, folders, read_references
from tidemark.results.tables.table import SYSTEM, Column, Table, read_table

BEGIN, END = "<!-- reference: './tidemark artifact' writes this -->", "<!-- /reference -->"
MATRIX = "matrix"
NOT_APART = "Systems whose intervals overlap are not told apart here, whoever has the highest or the lowest value."


def front(readme: str, kept: Path, study: str, asked: Collection[str]) -> str:
    """`readme` with the figure that is kept of `study`, and of its matrix the columns with the keys `asked`.

    AnalysisError where it has not both marks.
    """
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(readme)) != 1:
        raise AnalysisError(f"README.md: found no place for the reference results; allowed: one, '{BEGIN}' to '{END}'")
    block = "\n".join((BEGIN, *_lines(kept, study, asked), END))
    return pattern.sub(lambda _: block, readme)


def _lines(kept: Path, study: str, asked: Collection[str]) -> Iterator[str]:
    references = {each.about.study: each for each in read_references(kept)}
    if study not in references:
        yield "There are none of this study yet."
        return
    reference = references[study]
    about = reference.about
    yield f"Measured on {' and '.join(about.machines)}: {about.sizes}; {about.dataset}."
    yield from about.remarks
    place = next(folder for folder in folders(kept) if folder.name == study)
    if reference.figure is not None:
        where = (place / reference.figure.file).relative_to(kept.parent).as_posix()
        yield from ("", f"![{reference.figure.title}]({where})", "", f"*{reference.figure.caption}*")
    matrix = place / TABLES / f"{MATRIX}.json"
    if matrix.is_file():
        whole = matrix.relative_to(kept.parent).as_posix()
        yield from ("", _narrow(read_table(matrix), asked).grid(), "", NOT_APART, f"All columns: [`{whole}`]({whole}).")
    others = [f"[`{name}`]({kept.name}/{name}/{FILE})" for name in references if name != study]
    if others:
        yield f"Reference results of other studies: {', '.join(others)}."


def _narrow(matrix: Table, asked: Collection[str]) -> Table:
    """The columns that were `asked` for and have a value, and of those that tell rows apart where they differ."""

    def is_shown(place: int, column: Column) -> bool:
        if column.interval:
            return column.key in asked and not all(isinstance(row[place], Missing) for row in matrix.rows)
        return column == SYSTEM or len({row[place] for row in matrix.rows}) > 1

    places = [place for place, column in enumerate(matrix.columns) if is_shown(place, column)]
    return replace(
        matrix,
        columns=tuple(matrix.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in matrix.rows),
    )
