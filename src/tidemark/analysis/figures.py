"""Every figure into results/figures, in three forms each, with index.json to say what was made from what."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tidemark.analysis import style
from tidemark.analysis.measures import Absent
from tidemark.analysis.studio import Sketch, Studio
from tidemark.analysis.tables import dataset_label
from tidemark.paths import write_atomically
from tidemark.progress import Progress


def draw(studio: Studio, sketches: Sequence[Sketch], folder: Path) -> None:
    """Draw `sketches` into `folder` as SVG, PDF and PNG, and write the index last.

    Of the index's figures, those with a `reason` could not show what they are for: an optional one has no files,
    any other is a picture of the reason.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, object]] = []
    known = {"index.json"}
    with style.applied(), Progress("figures", len(sketches)) as progress:
        for done, sketch in enumerate(sketches):
            reason = None
            drawn = None
            try:
                drawn = sketch.draw(studio)
            except Absent as absent:
                reason = str(absent)
                if not sketch.optional:
                    drawn = studio.placeholder(sketch.title, reason)
            names = style.save(drawn.frame.figure, folder / sketch.name, drawn.title, drawn.sources) if drawn else []
            known.update(names)
            entries.append(
                {
                    "name": sketch.name,
                    "title": drawn.title if drawn else sketch.title,
                    "files": names,
                    "reason": reason,
                    "notes": list(drawn.notes) if drawn else [],
                    "dataset": dataset_label(studio.run_set),
                    "sources": list(drawn.sources) if drawn else [],
                }
            )
            progress.update(done + 1, sketch.name)
    for path in folder.iterdir():
        if path.name not in known and path.suffix in (".svg", ".pdf", ".png"):
            path.unlink()  # a figure that this configuration no longer has
    write_atomically(folder / "index.json", json.dumps({"schema_version": 1, "figures": entries}, indent=1) + "\n")
