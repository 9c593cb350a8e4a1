"""Study `lhbench`, the cost of the designs of Delta Lake, Hudi and Iceberg on one engine: series and workload.

A session on the engine loads tables, runs queries and merges; a verifier checks the results. The likely duration of a
window includes reading and comparing its tables. Its seconds hold for two processors without other load; a format's
values are means over the steps of a window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from tidemark.config import Config
from tidemark.measure.workload import Files, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.lhbench.data.store import TOOL, Store, Verifier
from tidemark.studies.lhbench.data.tpcds import TABLES
from tidemark.studies.lhbench.settings import (
    MERGING,
    PARTS,
    FilesSettings,
    LhbenchSection,
    LhbenchSettings,
    LoadSettings,
    MergeSettings,
    RefreshSettings,
    settings_of,
)
from tidemark.studies.lhbench.verifier.readers import DELTA, HUDI, ICEBERG, PARQUET
from tidemark.studies.study import Study
from tidemark.systems.base import Variant
from tidemark.systems.registry import repeated, spec_of, variant_of
from tidemark.systems.spark_sql import SqlEngineTable

STUDY = Study(
    name="lhbench",
    title="LHBench: Delta Lake, Hudi and Iceberg on one engine",
    question="What do three table formats cost on one engine, when tables are loaded, queried and merged into?",
)


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


class Lhbench(Workload):
    """Workload of one session. A window lasts as long as its steps; each repeat of a series is a separate session."""

    name = "lhbench"
    measurement = 1
    runner = "tidemark.studies.lhbench.window"
    takes_trips = False
    ends_by_itself = True
    warms_up = False  # a session begins with its window, and any warm-up consists of uncounted steps of the script
    tools = (TOOL,)

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        chosen = variant_of(spec)
        if cls.unavailable(spec, chosen) is not None:
            return 0.0
        assert issubclass(chosen.system, SqlEngineTable)
        return min(likely_seconds(settings_of(spec), chosen.system.reader), spec.window_seconds)

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why a series cannot run: also merges without a table format, or a table of files written by others."""
        system, settings = variant.system, settings_of(spec)
        assert issubclass(system, SqlEngineTable)
        if settings.part in MERGING and not system.merges:
            return f"{system.title}: rows cannot be merged into files alone"
        if isinstance(settings, FilesSettings) and not system.registers:
            return f"{system.title}: only files that it wrote itself can be a table of it"
        if isinstance(settings, FilesSettings) and variant.options != system.Options():
            return f"{variant.title}: no row is changed in this part, so it stands for '{system.name}' there"
        return super().unavailable(spec, variant)

    def prepare_directory(self, work: Path) -> AbstractContextManager[object]:
        """Generate the input data if they are missing; they are generated once per workspace."""
        Store.of(self.workspace).make(Verifier.of(self.workspace, work / "data"), settings_of(self.spec))
        return nullcontext()

    def inputs(self) -> Files:
        return {"data": Store.of(self.workspace).files(settings_of(self.spec))}


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    section = LhbenchSection.read(config)
    master = section.given["engine"]["master"]
    if master is not None:
        base = replace(base, services=replace(config.services, spark_master=master))
    longest, runs = float(section.sizes["window_seconds"]), section.sizes["runs"]
    made: list[SeriesSpec] = []
    for entry, chosen in section.systems(SqlEngineTable, section.left_out):
        for part in section.given["parts"]:
            if (sizes := section.part(part, entry.name)) is not None:
                for settings in PARTS[part].cells(section, sizes):
                    spec = spec_of(base, entry, chosen, settings, window_seconds=longest, runs=runs)
                    made += repeated(spec, sizes["repeats"])
    return made


WORKLOAD = Lhbench
