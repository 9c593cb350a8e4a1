"""Common queries of a run set: its dataset in words, its modes and stacks in order, and corresponding series."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.paths import REPOSITORY
from tidemark.runs.names import MODES
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series


def dataset_label(run_set: RunSet) -> str:
    if run_set.runs and not run_set.datasets:
        return "no trips: these runs take none"
    return "; ".join(dataset.label for dataset in run_set.datasets) or "no run was measured"


def modes(run_set: RunSet) -> tuple[str, ...]:
    """Return the modes of all series, in the order of results."""
    found = dict.fromkeys(series.mode for series in run_set.series)
    return tuple(sorted(found, key=lambda mode: MODES.index(mode) if mode in MODES else len(MODES)))


def in_order(run_set: RunSet) -> tuple[str, ...]:
    """Return the stacks of the plan, first the default one of results."""
    return (run_set.stack, *(stack for stack in run_set.stacks if stack != run_set.stack))


def newest(run_set: RunSet, purpose: str) -> datetime:
    """Return the start of the last run, the date of all outputs; raise AnalysisError, with `purpose`, without runs."""
    moments = [datetime.fromisoformat(run.manifest.started_at) for run in run_set.runs]
    if not moments:
        raise AnalysisError(f"{run_set.results}: no series has a run, so there is nothing to {purpose}")
    return max(moments)


def locked_file(run_set: RunSet, name: str, sha256: str) -> Path | None:
    """Return the lock file `name` with this SHA-256, next to the results or in the repository; None if changed."""
    for root in (run_set.results.parent, REPOSITORY):
        path = root / name
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
            return path
    return None


def one_a_system(run_set: RunSet) -> list[Series]:
    """Return the first series of each system that has runs, in the order of tables."""
    found: dict[str, Series] = {}
    for series in run_set.select():
        if series.runs:
            found.setdefault(series.system, series)
    return list(found.values())


def counterparts(run_set: RunSet, mode: str | None = None) -> Iterator[tuple[Series, Series]]:
    """Yield each series of the first stack, paired with each series of another stack that differs in nothing else."""
    for then in run_set.select(mode=mode, harness=False):
        for stack in in_order(run_set)[1:]:
            for now in run_set.select(mode=then.mode, stack=stack, harness=False):
                if (now.system, now.batch_size) == (then.system, then.batch_size):
                    yield then, now


def last_hot(series: Series) -> Run | None:
    """Return the run whose footprint is shown: the last hot one, else the cold one; None if there is no run."""
    return series.runs[-1] if series.runs else None
