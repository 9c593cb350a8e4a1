"""The study's workload: many writers, each a process with a client of its own, append to one table in a closed loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.ingest.policies import BUNDLED
from tidemark.machine.sampler import Group
from tidemark.measure.workload import Files, Rig, Show, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.ingest.settings import (
    FaultSettings,
    GroupSettings,
    IngestSettings,
    WritersSettings,
    settings_of,
)
from tidemark.systems.base import Variant
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.studies.ingest.load.crew import Writing
    from tidemark.studies.ingest.window.stage import WrittenStage

WRITERS, CLIENTS = "writers", "clients"  # who writes to the table, and who asks a front to


class Ingest(Workload):
    """Writers begin at one moment and commit batch after batch, as soon as the one before is acknowledged."""

    name = "ingest"

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings: IngestSettings = settings_of(spec)
        self._writing: Writing | None = None

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Also where the table may be written by one process alone: a single writer is another one than its maker."""
        system = variant.system
        refused = system.refuses_writers(variant.options) if issubclass(system, TableSystem) else None
        settings = settings_of(spec)
        if not refused and isinstance(settings, GroupSettings) and settings.policy == BUNDLED:
            refused = system.refuses_bundles(variant.options) if issubclass(system, TableSystem) else None
        return super().unavailable(spec, variant) or refused

    @cached_property
    def schema(self) -> pa.Schema:
        import pyarrow.parquet as pq

        return pq.read_schema(self.trips).remove_metadata()

    def inputs(self) -> Files:
        return {"dataset": (self.trips,)}

    def started(self, work: Path) -> AbstractContextManager[None]:
        del work  # writers are of a window: they are given its table when they start
        return nullcontext()

    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[WrittenStage]:
        from tidemark.studies.ingest.window import fault_stage, group, stage

        if isinstance(self.settings, FaultSettings):
            return fault_stage.staged_faults(self, rig, name, seconds, show, self.settings)

        if isinstance(self.settings, GroupSettings):
            return group.staged(self, rig, name, seconds, show, self.settings)
        assert isinstance(self.settings, WritersSettings)
        return stage.staged(self, rig, name, seconds, show, self.settings)

    @contextmanager
    def working(self, writing: Writing) -> Iterator[None]:
        """While this lasts, these are the ones whose processes are told from the others."""
        self._writing = writing
        try:
            yield
        finally:
            self._writing = None

    def groups(self) -> Mapping[str, Group]:
        def ended_seconds() -> float:
            return self._writing.ended_seconds() if self._writing else 0.0

        writers = {WRITERS: Group(lambda: self._writing.pids if self._writing else [], ended=ended_seconds)}
        if isinstance(self.settings, GroupSettings):
            from tidemark.studies.ingest.load.front import Fronted

            return {
                **writers,
                CLIENTS: Group(lambda: self._writing.client_pids if isinstance(self._writing, Fronted) else []),
            }
        return writers

    def has_ended(self) -> bool:
        return self._writing is not None and self._writing.has_failed()

    @property
    def warms_up(self) -> bool:
        """Writers are started anew for each window: they warm up by commits of their own, before a hot one."""
        return False


WORKLOAD = Ingest
