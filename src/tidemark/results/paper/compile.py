"""The paper: its sources in paper/, its numbers from results/, its PDF by Typst, the same bytes each time."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.paths import REPOSITORY, write_atomically
from tidemark.results.paper.contribution import Chapter
from tidemark.results.paper.values import Sources, newest, values
from tidemark.runs.runset import RunSet

PAPER = REPOSITORY / "paper"


def write_paper(run_set: RunSet, chapters: Sequence[Chapter], more: Mapping[str, str], paper: Path = PAPER) -> Path:
    """Write values.json into the results' folder paper, set the paper beside it, and return its paper.pdf.

    `more` are sentences by name that no study brings alone.

    A study's chapter lies in its own folder, and is put beside the shared sections. Only results/ is readable to the
    compiler, and only the fonts that it carries are used.
    """
    # The compiler is 25 MB of machine code that no other step needs.
    import typst

    results = run_set.results
    found = values(run_set, Sources.read(results), chapters, more)
    stage = results / "paper"
    shutil.rmtree(stage, ignore_errors=True)
    # Contents alone: sources may lie in a read-only folder, and a copy of its mode would lock us out of our own.
    copies = {source: source.relative_to(paper) for source in sorted(paper.rglob("*")) if source.is_file()}
    copies |= {each.brings.chapter: Path("chapters", f"{each.study}.typ") for each in chapters}
    # The pages around the chapters are those of the first study that brings some.
    fronts = [each.brings.front for each in chapters if each.brings.front]
    copies |= {path: Path("front.typ") for path in fronts[:1]}
    for source, place in copies.items():
        (stage / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, stage / place)
    write_atomically(stage / "values.json", json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    moment = newest(run_set).astimezone(UTC)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pdf = typst.compile(
                stage / "main.typ", root=results, ignore_system_fonts=True, font_paths=[], timestamp=moment
            )
        except typst.TypstError as error:
            raise AnalysisError(f"{stage / 'main.typ'}: the paper cannot be set: {error.diagnostic}") from error
    if caught:
        raise AnalysisError(f"{stage / 'main.typ'}: the compiler warns: {caught[0].message}")
    write_atomically(results / "paper.pdf", pdf)
    return results / "paper.pdf"
