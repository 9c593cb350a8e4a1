"""Rounds: what is measured more than once is measured in turns, all of it once before any of it again.

Results are made after each round, of what is measured by then, so that nobody waits for the last to see the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from tidemark.errors import ConfigError
from tidemark.paths import Workspace
from tidemark.pipeline.plan import Plan
from tidemark.runs.outcome import outcome_path
from tidemark.runs.plan import Round
from tidemark.runs.spec import SeriesSpec

# After how many rounds `tidemark all` wants results, for the Snakefile; a plain `snakemake` makes them of everything.
ROUND = "TIDEMARK_ROUND"


def rounds(plan: Plan) -> int:
    """How often the series of a plan are measured, where most often."""
    return max((spec.repeat for spec in plan.series), default=1)


def due(series: Iterable[SeriesSpec], workspace: Workspace) -> list[SeriesSpec]:
    """Those of `series` that have not ended, well or badly."""
    return [spec for spec in series if not outcome_path(workspace, spec).exists()]


def to_make(plan: Plan, workspace: Workspace) -> tuple[Round, ...]:
    """The rounds after which results are to be made, before those of the whole plan, which are always made.

    Between two repeats that are due lies a moment at which all before the later one is measured: results of less would
    be older than need be, and where nothing is due before a repeat, there is nothing new to make results of. So what
    was complete but for a series that is measured again is not replaced by the results of a round.
    """
    repeats = sorted({spec.repeat for spec in due(plan.series, workspace)})
    return tuple(Round(later - 1, rounds(plan)) for later in repeats[1:])


def asked_for(plan: Plan) -> Round | None:
    """The round that the environment asks for; None for the whole plan. ConfigError for one that the plan has not."""
    text, last = os.environ.get(ROUND), rounds(plan)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= last:
        raise ConfigError(
            f"the environment's {ROUND}: found '{text}'; allowed: a whole number from 1 to {last}; without it, "
            "results are made of everything"
        )
    return Round(int(text), last) if int(text) < last else None
