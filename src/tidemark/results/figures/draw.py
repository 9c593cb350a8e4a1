"""Output of all figures to results/figures, in three formats each, with index.json listing their sources.

Also the figure "Then and now", which every study has.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tidemark.analysis.formatting import against, listed
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.parallel import spread
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.text_blocks import conclusion, sentence
from tidemark.errors import AnalysisError
from tidemark.paths import remove_others, write_atomically
from tidemark.progress import Progress
from tidemark.results.figures import plots, style
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.runs.run import Run
from tidemark.runs.views import counterparts, dataset_label, in_order, modes

type Entry = dict[str, object]

TITLE = "Then and now"
MOST_MODES = 3  # of one figure: with more, only one of them is drawn


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
    counts = Counter((each.group, each.figure_spec.name) for each in commissions)
    for (group, name), count in counts.items():
        if count > 1:
            raise AnalysisError(f"study '{group}': two figures are called '{name}'")
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


def then_and_now(context: FigureContext) -> DrawnFigure:
    """Draw the ratio of each system's leading quantity under a newer stack to that under the first; 1: no change."""
    run_set, leading = context.run_set, context.measures.quantities.leading
    require(len(run_set.stacks) != 1, f"one software stack was measured, '{run_set.stack}'")
    rows: dict[str, list[plots.Point]] = {}
    runs: list[Run] = []
    several = len(run_set.stacks) > 2
    pairs = list(counterparts(run_set))
    filled, *hollow = modes(run_set)
    only = ""
    if len(hollow) >= MOST_MODES:  # the one that most systems share; of several, the one with the shortest name
        shared = Counter(then.mode for then, now in pairs if then.runs and now.runs) or {filled: 0}
        filled, hollow = min(shared, key=lambda mode: (-shared[mode], len(mode), mode)), []
        pairs = [each for each in pairs if each[0].mode == filled]
        only = f" Only series '{filled}' are drawn; the table has all."
    for then, now in pairs:
        ratio = partial(context.measures.counted_ratio, leading, now)
        point = plots.point(ratio, then, filled=then.mode == filled, where=f"{then.mode_title}: ")
        label = f"{then.title}, {now.stack}" if several else then.title
        rows.setdefault(label, []).append(point)
        runs += [*then.counted_runs, *now.counted_runs]
    first, *others = in_order(run_set)
    key = f"filled: {filled}; hollow: {listed(hollow)}" if hollow else ""
    what = f"{leading.noun}, {' or '.join(others)} / {first}"
    made = plots.dots(context, list(rows.items()), what, line=1.0, from_zero=False, key=key)
    marks = f" {key.capitalize()}." if key else ""
    notes = [
        f"Left of 1, a system is {leading.words[1]} than with the versions of '{first}'.{marks}{only} Lines are 95 % "
        "intervals; one that contains 1 shows no difference. The axis does not start at zero.",
        run_set.coverage,
    ]
    groups: dict[str, list[str]] = {"is lower": [], "is higher": [], "shows no difference": []}
    lower, higher, same = groups
    for label, points in rows.items():
        for estimate, _, is_filled in points:
            if isinstance(estimate, Estimate):
                which = label if not hollow else f"{label} ({filled if is_filled else listed(hollow)})"
                groups[against(estimate, higher, lower, same)].append(which)
    newer = " or ".join(f"'{each}'" for each in others)
    shown = sentence(conclusion(f"with {newer} instead of '{first}', the {leading.noun}", "it", groups))
    return context.finish(made, f"{TITLE}: {leading.noun}", notes, runs, shown)


# Omitted if only one stack was measured.
THEN_AND_NOW = FigureSpec("then-and-now", TITLE, then_and_now, optional=True)
