"""How long a window is likely to take, with what is read and compared in it: reckoned from what single steps took.

Seconds are those of two processors with nothing else to do. What belongs to a format are means over the steps of a
window: the first of a session compiles, and is in `SESSION_S`.
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
    """Seconds of one step at scale factor 0.1: a table, a query, a merge; `size` is a whole one of the part `merge`."""

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
JUDGING_S = 1.5  # of a phase whose tables or answers are compared
FEW_TABLES = 8  # that a handful of queries names
SCALE, ROWS = 0.1, 2_000_000  # that `STEPS` are of
FILES_S, FILE_S = 22.0, 0.0011  # of a session that is asked of many files, and for each of them
PHASES = 4  # that a size of the part `merge` has


def likely_seconds(settings: LhbenchSettings, reader: str) -> float:
    """Of a window of `settings`, in a format that is known by its reader."""
    steps = STEPS[reader]
    if isinstance(settings, FilesSettings):
        return FILES_S + FILE_S * settings.files + JUDGING_S
    if isinstance(settings, MergeSettings):
        size = steps.size * max(1.0, settings.rows / ROWS)
        return SESSION_S + size + len(settings.sizes) * (size + PHASES * JUDGING_S)
    assert isinstance(settings, LoadSettings | RefreshSettings)
    # Ten times the rows took three times as long; with fewer, it is not rows that take time.
    grown = math.sqrt(max(1.0, settings.scale / SCALE))
    asked = len(settings.numbers) * settings.iterations * steps.query
    if isinstance(settings, LoadSettings):
        tables = len(TABLES) if settings.whole else FEW_TABLES
        return SESSION_S + grown * (tables * steps.load + asked) + 2 * JUDGING_S
    merges = settings.refreshes * len(settings.tables) * steps.merge
    return SESSION_S + grown * (FEW_TABLES * steps.load + 3 * asked + merges) + (settings.refreshes + 5) * JUDGING_S
