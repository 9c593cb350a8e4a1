"""Workload of the study: a session on an engine loads tables, runs queries and merges; a judge checks the results."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tidemark.measure.workload import Files, Workload
from tidemark.paths import Workspace
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.lhbench.data.store import Store
from tidemark.studies.lhbench.files.settings import FilesSettings
from tidemark.studies.lhbench.judge.calls import TOOL, Judge
from tidemark.studies.lhbench.likely import likely_seconds
from tidemark.studies.lhbench.load.settings import LoadSettings
from tidemark.studies.lhbench.parts import MERGING, settings_of
from tidemark.studies.lhbench.refresh.settings import RefreshSettings
from tidemark.studies.lhbench.settings import LhbenchSettings
from tidemark.systems.base import Variant
from tidemark.systems.registry import variant_of
from tidemark.systems.spark_sql.base import SqlEngineTable


class Lhbench(Workload):
    """Workload of one session. A window lasts as long as its steps; each repeat of a series is a separate session."""

    name = "lhbench"
    measurement = 1
    stage = "tidemark.studies.lhbench.window.stage"
    takes_trips = False
    ends_by_itself = True
    tools = (TOOL,)

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings: LhbenchSettings = settings_of(spec)
        self.store = Store.of(Workspace(private.parent))

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

    def placed(self, work: Path) -> AbstractContextManager[object]:
        """Generate the input data if they are missing; they are generated once per workspace."""
        self.store.make(Judge.of(Workspace(self.private.parent), work / "data"), self.settings)
        return nullcontext()

    def inputs(self) -> Files:
        return {"data": self.store.files(self.settings, self._tables())}

    def _tables(self) -> tuple[str, ...]:
        from tidemark.studies.lhbench.load import script as load
        from tidemark.studies.lhbench.refresh import script as refresh

        if isinstance(self.settings, LoadSettings):
            return load.tables_of(self.settings, self.store)
        return refresh.tables_of(self.settings, self.store) if isinstance(self.settings, RefreshSettings) else ()

    @property
    def warms_up(self) -> bool:
        """False: a session begins with its window, and any warm-up consists of uncounted steps of the script."""
        return False


WORKLOAD = Lhbench
