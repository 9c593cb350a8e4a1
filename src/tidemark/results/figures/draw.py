"""Output of all figures to results/figures, in three formats each, with index.json listing their sources."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemark.analysis.measures import NotAvailable
from tidemark.analysis.parallel import spread
from tidemark.errors import AnalysisError
from tidemark.paths import remove_others, write_atomically
from tidemark.progress import Progress
from tidemark.results.figures import style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.runs.views import dataset_label

type Entry = dict[str, object]


@dataclass(frozen=True, slots=True)
class FigureTask:
    """A figure to draw and its group (a study), which determines its context and its folder."""

    group: str
    figure_spec: FigureSpec


def draw(contexts: Mapping[str, FigureContext], commissions: Sequence[FigureTask], folder: Path) -> None:
    """Draw figures into `folder`/<group> as SVG, PDF and PNG, on all cores, and write the index last.

    An index entry with a `reason` could not be drawn: an optional figure then has no files, any other is a
    placeholder that shows the reason. Raise AnalysisError if two figures in a group have the same name.
    """
    twice = [
        pair
        for pair, count in Counter((each.group, each.figure_spec.name) for each in commissions).items()
        if count > 1
    ]
    if twice:
        raise AnalysisError(f"study '{twice[0][0]}': two figures are called '{twice[0][1]}'")
    for group in contexts:
        (folder / group).mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    known = {"index.json"}
    modules = ("tidemark.results.figures.draw",)
    with (
        style.applied(),
        spread(_draw, commissions, prepare=_settle, given=(contexts, folder), modules=modules) as drawn,
        Progress("figures", len(commissions)) as progress,
    ):
        for each, (names, entry) in zip(commissions, drawn, strict=True):
            known.update(names)
            entries.append(entry)
            progress.update(len(entries), each.figure_spec.name)
    remove_others(folder, known, (".svg", ".pdf", ".png"))
    write_atomically(folder / "index.json", json.dumps({"schema_version": 1, "figures": entries}, indent=1) + "\n")


_given: list[tuple[Mapping[str, FigureContext], Path]] = []  # contexts and folder of this process, at most one


def _settle(contexts: Mapping[str, FigureContext], folder: Path) -> None:
    style.apply()
    _given[:] = [(contexts, folder)]


def _draw(figure_task: FigureTask) -> tuple[list[str], Entry]:
    """Draw a figure; return the names of its files and its index entry."""
    figure_spec, group = figure_task.figure_spec, figure_task.group
    ((contexts, folder),) = _given
    context = contexts[group]
    reason: str | None = None
    drawn: DrawnFigure | None = None
    try:
        drawn = figure_spec.draw(context)
    except NotAvailable as absent:
        reason = str(absent)
        if not figure_spec.optional:
            drawn = context.placeholder(figure_spec.title, reason)
    names: list[str] = []
    if drawn:
        stem = folder / group / figure_spec.name
        saved = style.save(drawn.frame.figure, stem, drawn.title, drawn.sources, drawn.caption)
        names = [f"{group}/{name}" for name in saved]
    entry: Entry = {
        "name": figure_spec.name,
        "study": group,
        "title": drawn.title if drawn else figure_spec.title,
        "files": names,
        "reason": reason,
        "finding": drawn.finding if drawn else "",
        "notes": list(drawn.notes) if drawn else [],
        "provenance": drawn.provenance if drawn else "",
        "dataset": dataset_label(context.run_set),
        "sources": list(drawn.sources) if drawn else [],
    }
    return names, entry
