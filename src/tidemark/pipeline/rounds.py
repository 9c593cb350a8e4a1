"""Rounds: repeats of series are interleaved, so that all series are measured once before any is measured again.

Results are made after each round from the runs measured by then, so that first results do not wait for the last.
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

# Round after which `tidemark all` wants results, for the Snakefile; a plain `snakemake` makes them from all runs.
ROUND = "TIDEMARK_ROUND"


def rounds(plan: Plan) -> int:
    """Return the maximum number of repeats among the series of a plan."""
    return max((spec.repeat for spec in plan.series), default=1)


def due(series: Iterable[SeriesSpec], workspace: Workspace) -> list[SeriesSpec]:
    """Return those of `series` that have no outcome yet, neither success nor failure."""
    return [spec for spec in series if not outcome_path(workspace, spec).exists()]


def to_make(plan: Plan, workspace: Workspace) -> tuple[Round, ...]:
    """Return the rounds after which to make results, before those of the complete plan, which are always made.

    There is one before each due repeat but the first, when everything before it is measured: earlier results would be
    older than necessary, and if nothing is due before a repeat, there is nothing new for results. Results that were
    complete except for a series to be measured again are therefore not replaced by those of a round.
    """
    repeats = sorted({spec.repeat for spec in due(plan.series, workspace)})
    return tuple(Round(later - 1, rounds(plan)) for later in repeats[1:])


def asked_for(plan: Plan) -> Round | None:
    """Return the round set in the environment, None for the complete plan; raise ConfigError if it is invalid."""
    text, last = os.environ.get(ROUND), rounds(plan)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= last:
        raise ConfigError(
            f"the environment's {ROUND}: found '{text}'; allowed: a whole number from 1 to {last}; without it, "
            "results are made of everything"
        )
    return Round(int(text), last) if int(text) < last else None
