"""What README shows of the reference results, between two marks that nobody else writes between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.results.reference.content import FILE, TABLES, folders, read_references
from tidemark.results.tables.table import read_table

BEGIN, END = "<!-- reference: './tidemark artifact' writes this -->", "<!-- /reference -->"
MATRIX = "matrix"


def front(readme: str, kept: Path, study: str) -> str:
    """`readme` with the figure and the matrix that are kept of `study`; AnalysisError where it has not both marks."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(readme)) != 1:
        raise AnalysisError(f"README.md: found no place for the reference results; allowed: one, '{BEGIN}' to '{END}'")
    block = "\n".join((BEGIN, *_lines(kept, study), END))
    return pattern.sub(lambda _: block, readme)


def _lines(kept: Path, study: str) -> Iterator[str]:
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
        yield from ("", read_table(matrix).grid(), "")
    others = [f"[`{name}`]({kept.name}/{name}/{FILE})" for name in references if name != study]
    if others:
        yield f"Reference results of other studies: {', '.join(others)}."
