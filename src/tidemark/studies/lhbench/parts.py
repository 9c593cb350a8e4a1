"""The parts of the study, each a folder beside this file: the settings of its series, and the script of its windows."""

from __future__ import annotations

from tidemark.runs.spec import SeriesSpec
from tidemark.studies.lhbench.files.settings import FILES, FilesSettings
from tidemark.studies.lhbench.load.settings import LOAD, LoadSettings
from tidemark.studies.lhbench.merge.settings import MERGE, MergeSettings
from tidemark.studies.lhbench.refresh.settings import REFRESH, RefreshSettings
from tidemark.studies.lhbench.settings import LhbenchSettings, scale_of

PARTS: dict[str, type[LhbenchSettings]] = {
    LOAD: LoadSettings,
    REFRESH: RefreshSettings,
    MERGE: MergeSettings,
    FILES: FilesSettings,
}
MERGING = (REFRESH, MERGE)  # parts that only tables have whose rows can be changed


def settings_of(spec: SeriesSpec) -> LhbenchSettings:
    """The settings of a series, of the class of its part."""
    return PARTS[dict(spec.settings)["part"]].of(spec)


def part_of(mode: str) -> str:
    """The part that a series belongs to, by its mode."""
    return mode.partition("-")[0]


def size_of(mode: str) -> float:
    """The scale factor of a series, or the rows or the files of its synthetic table."""
    word = mode.split("-")[1]
    return float(word) if part_of(mode) in (MERGE, FILES) else scale_of(word)
