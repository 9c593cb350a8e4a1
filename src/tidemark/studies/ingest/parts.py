"""Parts of the study, each a folder next to this file: the settings of its series, a window runner, and results.

settings.py   the class of its settings, which plans its series (here or in its folder); registered here
runner.py     open_window(test_bed, name, seconds, show): its window; registered in workload.py
results.py    its tables and sentences, and figures.py its figures, if it has any; registered in results.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tidemark.runs.spec import HasSettings
from tidemark.studies.ingest.fault_injection.settings import FAULTS, FaultSettings
from tidemark.studies.ingest.gateway_crash.settings import FRONT, FrontSettings
from tidemark.studies.ingest.maintenance.settings import MAINTENANCE, MaintenanceSettings
from tidemark.studies.ingest.power_failure.settings import CUT, CutSettings
from tidemark.studies.ingest.settings import (
    GROUP,
    PRUNING,
    STORAGE,
    TAIL,
    WRITERS,
    GroupSettings,
    IngestSettings,
    PruningSettings,
    StorageSettings,
    TailSettings,
    WritersSettings,
)

if TYPE_CHECKING:
    from tidemark.runs.runset import RunSet

PARTS: dict[str, type[IngestSettings]] = {
    WRITERS: WritersSettings,
    GROUP: GroupSettings,
    TAIL: TailSettings,
    STORAGE: StorageSettings,
    PRUNING: PruningSettings,
    FAULTS: FaultSettings,
    FRONT: FrontSettings,
    MAINTENANCE: MaintenanceSettings,
    CUT: CutSettings,
}
BY_WORD = {word: part for part, settings in PARTS.items() for word in settings.words}


def part_name(series: HasSettings) -> str:
    """Return the part that a planned or measured series belongs to; plans of earlier versions tell it by the mode."""
    return dict(series.settings).get("part") or BY_WORD[series.mode.partition("-")[0]]


def of_part(run_set: RunSet, part: str) -> RunSet:
    """Return `run_set` with only the series that belong to `part`."""
    return replace(run_set, series=tuple(each for each in run_set.series if part_name(each) == part))


def settings_of(series: HasSettings) -> IngestSettings:
    """Return the settings of a planned or measured series, as an instance of its part's class."""
    return PARTS[part_name(series)].of(series)
