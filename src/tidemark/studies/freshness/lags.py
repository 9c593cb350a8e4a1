"""Lag of a table behind its topic during a window, in time and in events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemark.runs.run import Run
from tidemark.studies.freshness.climbs import SECONDS
from tidemark.studies.freshness.quantities import sound

Floats = NDArray[np.float64]
STRETCHES = 160  # of a window; the maximum of each is kept


@dataclass(frozen=True, slots=True)
class Lag:
    """Lag just before a reader saw more: the age of the oldest unseen event, and the number of unseen events."""

    at_s: Floats  # after the first event was due
    oldest_s: Floats
    events: Floats


def lag(run: Run, stretches: int = STRETCHES) -> Lag:
    """Return the lag of `run` until all events were seen, the maximum of each stretch. Raises Absent like its ages."""
    due = sound(run).column("start_ns")
    seen = due + run.column("seen_ns")
    moments = np.unique(seen)
    before = np.searchsorted(seen, moments)
    oldest = moments - due[before]
    waiting = np.searchsorted(due, moments, side="right") - before
    stretch = np.minimum(moments * stretches // max(int(moments[-1]), 1), stretches - 1)
    first = np.flatnonzero(np.diff(stretch, prepend=-1))
    return Lag(
        moments[first] * SECONDS,
        np.maximum.reduceat(oldest, first) * SECONDS,
        np.maximum.reduceat(waiting, first).astype(np.float64),
    )
