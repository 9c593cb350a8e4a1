"""The paper: its sources in paper/, its numbers from results/, its PDF by Typst, the same bytes each time."""

from __future__ import annotations

import json
import shutil
import warnings
from datetime import UTC
from pathlib import Path

from tidemark.analysis.measures import Measures
from tidemark.analysis.paper_values import Sources, newest, values
from tidemark.analysis.runs import RunSet
from tidemark.errors import AnalysisError
from tidemark.paths import write_atomically

PAPER = Path(__file__).parents[3] / "paper"


def build_paper(results: Path, paper: Path = PAPER) -> Path:
    """Write results/paper/values.json, set the paper beside it, and return results/paper.pdf.

    Only results/ is readable to the compiler, and only the fonts that it carries are used.
    """
    # The compiler is 25 MB of machine code that no other step needs.
    import typst

    run_set = RunSet.load(results)
    found = values(Measures(run_set), Sources.read(results), results)
    stage = results / "paper"
    shutil.rmtree(stage, ignore_errors=True)
    # Contents alone: sources may lie in a read-only folder, and a copy of its mode would lock us out of our own.
    for source in sorted(each for each in paper.rglob("*") if each.is_file() and each.name != "claims.yaml"):
        copy = stage / source.relative_to(paper)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
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
