"""Every figure into results/figures, in three forms each, with index.json to say what was made from what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis import style
from tidemark.analysis.measures import Absent
from tidemark.analysis.pool import spread
from tidemark.analysis.studio import Drawn, Sketch, Studio
from tidemark.analysis.tables import dataset_label
from tidemark.paths import write_atomically
from tidemark.progress import Progress

type Entry = dict[str, object]


def draw(studio: Studio, sketches: Sequence[Sketch], folder: Path) -> None:
    """Draw `sketches` into `folder` as SVG, PDF and PNG, on all cores, and write the index last.

    Of the index's figures, those with a `reason` could not show what they are for: an optional one has no files,
    any other is a picture of the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    known = {"index.json"}
    modules = ("tidemark.analysis.figures",)
    with (
        style.applied(),
        spread(_draw, sketches, prepare=_settle, given=(studio, folder), modules=modules) as drawn,
        Progress("figures", len(sketches)) as progress,
    ):
        for sketch, (names, entry) in zip(sketches, drawn, strict=True):
            known.update(names)
            entries.append(entry)
            progress.update(len(entries), sketch.name)
    for path in folder.iterdir():
        if path.name not in known and path.suffix in (".svg", ".pdf", ".png"):
            path.unlink()  # a figure that this configuration no longer has
    write_atomically(folder / "index.json", json.dumps({"schema_version": 1, "figures": entries}, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where a process draws, and what from."""

    studio: Studio
    folder: Path


_desks: list[_Desk] = []  # of this process, at most one


def _settle(studio: Studio, folder: Path) -> None:
    style.apply()
    _desks[:] = [_Desk(studio, folder)]


def _draw(sketch: Sketch) -> tuple[list[str], Entry]:
    """The files of a figure, and what the index says of it."""
    studio, folder = _desks[0].studio, _desks[0].folder
    reason: str | None = None
    drawn: Drawn | None = None
    try:
        drawn = sketch.draw(studio)
    except Absent as absent:
        reason = str(absent)
        if not sketch.optional:
            drawn = studio.placeholder(sketch.title, reason)
    names = style.save(drawn.frame.figure, folder / sketch.name, drawn.title, drawn.sources) if drawn else []
    entry: Entry = {
        "name": sketch.name,
        "title": drawn.title if drawn else sketch.title,
        "files": names,
        "reason": reason,
        "notes": list(drawn.notes) if drawn else [],
        "dataset": dataset_label(studio.run_set),
        "sources": list(drawn.sources) if drawn else [],
    }
    return names, entry
