"""Output of all figures to results/figures, in three formats each, with index.json listing their sources."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.measures import Absent
from tidemark.analysis.pool import spread
from tidemark.errors import AnalysisError
from tidemark.paths import remove_others, write_atomically
from tidemark.progress import Progress
from tidemark.results.figures import style
from tidemark.results.figures.studio import Drawn, Sketch, Studio
from tidemark.runs.views import dataset_label

type Entry = dict[str, object]


@dataclass(frozen=True, slots=True)
class Commission:
    """A sketch and its group (a study), which determines the studio that draws it and its folder."""

    group: str
    sketch: Sketch


def draw(studios: Mapping[str, Studio], commissions: Sequence[Commission], folder: Path) -> None:
    """Draw sketches into `folder`/<group> as SVG, PDF and PNG, on all cores, and write the index last.

    An index entry with a `reason` could not be drawn: an optional figure then has no files, any other is a
    placeholder that shows the reason. Raise AnalysisError if two figures in a group have the same name.
    """
    twice = [
        pair for pair, count in Counter((each.group, each.sketch.name) for each in commissions).items() if count > 1
    ]
    if twice:
        raise AnalysisError(f"study '{twice[0][0]}': two figures are called '{twice[0][1]}'")
    for group in studios:
        (folder / group).mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    known = {"index.json"}
    modules = ("tidemark.results.figures.draw",)
    with (
        style.applied(),
        spread(_draw, commissions, prepare=_settle, given=(studios, folder), modules=modules) as drawn,
        Progress("figures", len(commissions)) as progress,
    ):
        for each, (names, entry) in zip(commissions, drawn, strict=True):
            known.update(names)
            entries.append(entry)
            progress.update(len(entries), each.sketch.name)
    remove_others(folder, known, (".svg", ".pdf", ".png"))
    write_atomically(folder / "index.json", json.dumps({"schema_version": 1, "figures": entries}, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class _Desk:
    """Input and output of a drawing process."""

    studios: Mapping[str, Studio]
    folder: Path


_desks: list[_Desk] = []  # of this process, at most one


def _settle(studios: Mapping[str, Studio], folder: Path) -> None:
    style.apply()
    _desks[:] = [_Desk(studios, folder)]


def _draw(commission: Commission) -> tuple[list[str], Entry]:
    """Draw a figure; return the names of its files and its index entry."""
    sketch, group = commission.sketch, commission.group
    studio, folder = _desks[0].studios[group], _desks[0].folder
    reason: str | None = None
    drawn: Drawn | None = None
    try:
        drawn = sketch.draw(studio)
    except Absent as absent:
        reason = str(absent)
        if not sketch.optional:
            drawn = studio.placeholder(sketch.title, reason)
    names: list[str] = []
    if drawn:
        stem = folder / group / sketch.name
        saved = style.save(drawn.frame.figure, stem, drawn.title, drawn.sources, drawn.caption)
        names = [f"{group}/{name}" for name in saved]
    entry: Entry = {
        "name": sketch.name,
        "study": group,
        "title": drawn.title if drawn else sketch.title,
        "files": names,
        "reason": reason,
        "finding": drawn.finding if drawn else "",
        "notes": list(drawn.notes) if drawn else [],
        "provenance": drawn.provenance if drawn else "",
        "dataset": dataset_label(studio.run_set),
        "sources": list(drawn.sources) if drawn else [],
    }
    return names, entry
