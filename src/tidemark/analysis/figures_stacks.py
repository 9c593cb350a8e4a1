"""Then and now, as a picture: the ratio of each system's write time under one stack to that under another."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tidemark.analysis import plots
from tidemark.analysis.measures import Absent
from tidemark.analysis.metrics import Metric
from tidemark.analysis.run import Run
from tidemark.analysis.statistics import Estimate
from tidemark.analysis.studio import Drawn, Sketch, Studio
from tidemark.analysis.tables import Missing, attempt
from tidemark.analysis.tables_stacks import counterparts, in_order

TITLE = "Then and now: median write time"


def sketches() -> Iterator[Sketch]:
    """Figure then-and-now; left out where one stack alone was measured."""
    yield Sketch("then-and-now", TITLE, then_and_now, optional=True)


def then_and_now(studio: Studio) -> Drawn:
    """A row for each system and newer stack; 1 means that nothing changed."""
    if len(studio.run_set.stacks) == 1:
        raise Absent(f"one software stack was measured, '{studio.run_set.stack}'")
    rows: dict[str, list[tuple[Estimate | str, str, bool]]] = {}
    runs: list[Run] = []
    several = len(studio.run_set.stacks) > 2
    for then, now in counterparts(studio.run_set):
        found = attempt("", partial(studio.measures.ratio, Metric.WRITE_MEDIAN, now, then))
        point = f"{then.mode_title}: {found.reason}" if isinstance(found, Missing) else found
        label = f"{then.title}, {now.stack}" if several else then.title
        rows.setdefault(label, []).append((point, studio.colour(then), then.mode == "single"))
        runs += [*then.hot_runs, *now.hot_runs]
    first, *others = in_order(studio.run_set)
    made = plots.dots(list(rows.items()), f"median write, {' or '.join(others)} / {first}", line=1.0, from_zero=False)
    notes = [
        f"Left of 1: faster than with the versions of '{first}'. Filled: one by one, hollow: in batches. "
        "Lines: 95 % intervals, hot runs; one that contains 1 shows no difference. The axis does not start at zero.",
        studio.run_set.coverage,
    ]
    return studio.finish(made, TITLE, notes, runs)
