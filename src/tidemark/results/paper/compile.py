"""Compilation of the paper: sources from paper/, numbers from results/, a byte-reproducible PDF by Typst."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.paths import REPOSITORY, write_atomically
from tidemark.results.paper.paper_section import Chapter
from tidemark.results.paper.values import Sources, newest, values
from tidemark.runs.runset import RunSet

PAPER = REPOSITORY / "paper"


def write_paper(run_set: RunSet, chapters: Sequence[Chapter], more: Mapping[str, str], paper: Path = PAPER) -> Path:
    """Write values.json to results/paper, compile the paper there, and return the path of results/paper.pdf.

    `more` maps names to sentences that concern several studies.

    Each study's chapter is copied from the study's folder to the shared sections. The compiler can read only results/,
    and uses only its bundled fonts.
    """
    # Imported here, because the compiler is 25 MB of machine code that no other step needs.
    import typst

    results = run_set.results
    found = values(run_set, Sources.read(results), chapters, more)
    stage = results / "paper"
    shutil.rmtree(stage, ignore_errors=True)
    # Copy contents only: sources may be in a read-only folder, and with its mode the copy would be read-only too.
    copies = {source: source.relative_to(paper) for source in sorted(paper.rglob("*")) if source.is_file()}
    copies |= {each.brings.chapter: Path("chapters", f"{each.study}.typ") for each in chapters}
    # The pages around the chapters come from the first study that provides them.
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
