"""Figure "Then and now": the ratio of each system's leading quantity under a newer stack to that under the first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis.formatting import MissingCell, against, attempt, listed
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.text_blocks import conclusion, sentence
from tidemark.results.figures import plots
from tidemark.results.figures.context import DrawnFigure, FigureContext, FigureSpec
from tidemark.runs.run import Run
from tidemark.runs.views import counterparts, in_order, modes

TITLE = "Then and now"


def figure_specs() -> Iterator[FigureSpec]:
    """Yield the figure then-and-now, which is omitted if only one stack was measured."""
    yield FigureSpec("then-and-now", TITLE, then_and_now, optional=True)


def then_and_now(context: FigureContext) -> DrawnFigure:
    """Draw one row per system and newer stack; 1 means no change."""
    run_set, leading = context.run_set, context.measures.quantities.leading
    if len(run_set.stacks) == 1:
        raise NotAvailable(f"one software stack was measured, '{run_set.stack}'")
    rows: dict[str, list[plots.Point]] = {}
    runs: list[Run] = []
    several = len(run_set.stacks) > 2
    filled, *hollow = modes(run_set)
    for then, now in counterparts(run_set):
        found = attempt("", partial(context.measures.ratio, leading, now, then))
        point = f"{then.mode_title}: {found.reason}" if isinstance(found, MissingCell) else found
        label = f"{then.title}, {now.stack}" if several else then.title
        rows.setdefault(label, []).append((point, then, then.mode == filled))
        runs += [*then.hot_runs, *now.hot_runs]
    first, *others = in_order(run_set)
    made = plots.dots(
        context, list(rows.items()), f"{leading.noun}, {' or '.join(others)} / {first}", line=1.0, from_zero=False
    )
    marks = f" Filled: mode '{filled}'; hollow: {listed(hollow)}." if hollow else ""
    notes = [
        f"Left of 1, a system is {leading.words[1]} than with the versions of '{first}'.{marks} Lines are 95 % "
        "intervals over hot runs; one that contains 1 shows no difference. The axis does not start at zero.",
        run_set.coverage,
    ]
    groups: dict[str, list[str]] = {"is lower": [], "is higher": [], "shows no difference": []}
    lower, higher, same = groups
    for label, points in rows.items():
        for estimate, _, is_filled in points:
            if isinstance(estimate, Estimate):
                which = label if len(modes(run_set)) == 1 else f"{label} ({filled if is_filled else listed(hollow)})"
                groups[against(estimate, higher, lower, same)].append(which)
    newer = " or ".join(f"'{each}'" for each in others)
    shown = sentence(conclusion(f"with {newer} instead of '{first}', the {leading.noun}", "it", groups))
    return context.finish(made, f"{TITLE}: {leading.noun}", notes, runs, shown)
