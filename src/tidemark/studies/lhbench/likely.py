"""Estimates of a window's duration, including reading and comparing its tables, from the durations of single steps.

Seconds hold for two processors without other load. A format's values are means over the steps of a window; the first
step of a session compiles and is part of `SESSION_S`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.studies.lhbench.data.tables import TABLES
from tidemark.studies.lhbench.files.settings import FilesSettings
from tidemark.studies.lhbench.judge.readers import DELTA, HUDI, ICEBERG, PARQUET
from tidemark.studies.lhbench.load.settings import LoadSettings
from tidemark.studies.lhbench.merge.settings import MergeSettings
from tidemark.studies.lhbench.refresh.settings import RefreshSettings
from tidemark.studies.lhbench.settings import LhbenchSettings


@dataclass(frozen=True, slots=True)
class Steps:
    """Seconds per step at scale factor 0.1: loading a table, a query, a merge; `size`: one size of the part `merge`."""

    load: float
    query: float
    merge: float = 0.0
    size: float = 0.0


STEPS: Mapping[str, Steps] = {
    PARQUET: Steps(1.2, 0.75),
    DELTA: Steps(1.7, 1.0, 6.4, 11.5),
    ICEBERG: Steps(1.4, 0.9, 2.3, 11.5),
    HUDI: Steps(4.5, 0.9, 14.0, 70.0),
}
SESSION_S = 18.0  # until a session has compiled what it needs
JUDGING_S = 1.5  # per phase whose tables or answers are compared
FEW_TABLES = 8  # tables that a handful of queries names
SCALE, ROWS = 0.1, 2_000_000  # scale factor and rows that `STEPS` were measured at
FILES_S, FILE_S = 22.0, 0.0011  # per session that queries many files, and the addition per file
PHASES = 4  # phases per size of the part `merge`


def likely_seconds(settings: LhbenchSettings, reader: str) -> float:
    """Return the likely duration of a window of `settings` in seconds, for the format of `reader`."""
    steps = STEPS[reader]
    if isinstance(settings, FilesSettings):
        return FILES_S + FILE_S * settings.files + JUDGING_S
    if isinstance(settings, MergeSettings):
        size = steps.size * max(1.0, settings.rows / ROWS)
        return SESSION_S + size + len(settings.sizes) * (size + PHASES * JUDGING_S)
    assert isinstance(settings, LoadSettings | RefreshSettings)
    # Ten times the rows took three times as long; below `SCALE`, the number of rows does not determine the time.
    grown = math.sqrt(max(1.0, settings.scale / SCALE))
    asked = len(settings.numbers) * settings.iterations * steps.query
    if isinstance(settings, LoadSettings):
        tables = len(TABLES) if settings.whole else FEW_TABLES
        return SESSION_S + grown * (tables * steps.load + asked) + 2 * JUDGING_S
    merges = settings.refreshes * len(settings.tables) * steps.merge
    return SESSION_S + grown * (FEW_TABLES * steps.load + 3 * asked + merges) + (settings.refreshes + 5) * JUDGING_S
