"""Parts of the study. Each has a subfolder with the settings of its series and the script of its windows."""

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
MERGING = (REFRESH, MERGE)  # parts that need tables whose rows can be changed


def settings_of(spec: SeriesSpec) -> LhbenchSettings:
    """Return the settings of a series, as an instance of its part's class."""
    return PARTS[dict(spec.settings)["part"]].of(spec)


def part_of(mode: str) -> str:
    """Return the part of a series, from its mode."""
    return mode.partition("-")[0]


def size_of(mode: str) -> float:
    """Return the scale factor of a series, or the rows or files of its synthetic table, from its mode."""
    word = mode.split("-")[1]
    return float(word) if part_of(mode) in (MERGE, FILES) else scale_of(word)
