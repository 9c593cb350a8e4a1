"""The study's workload: many writers, each a process with a client of its own, append to one table in a closed loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine.sampler import Group
from tidemark.measure.workload import Files, Rig, Show, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.ingest.settings import IngestSettings, WritersSettings, settings_of
from tidemark.systems.base import Variant
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.studies.ingest.load.crew import Crew
    from tidemark.studies.ingest.window.stage import IngestStage

WRITERS = "writers"


class Ingest(Workload):
    """Writers begin at one moment and commit batch after batch, as soon as the one before is acknowledged."""

    name = "ingest"

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings: IngestSettings = settings_of(spec)
        self._crew: Crew | None = None

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Also where the table may be written by one process alone: a single writer is another one than its maker."""
        system = variant.system
        refused = system.refuses_writers(variant.options) if issubclass(system, TableSystem) else None
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

    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[IngestStage]:
        from tidemark.studies.ingest.window.stage import staged

        assert isinstance(self.settings, WritersSettings)
        return staged(self, rig, name, seconds, show, self.settings)

    @contextmanager
    def working(self, crew: Crew) -> Iterator[None]:
        """While this lasts, `crew` are the ones whose processes are told from the others."""
        self._crew = crew
        try:
            yield
        finally:
            self._crew = None

    def groups(self) -> Mapping[str, Group]:
        return {WRITERS: Group(lambda: self._crew.pids if self._crew else [])}

    def has_ended(self) -> bool:
        return self._crew is not None and self._crew.has_failed()

    @property
    def warms_up(self) -> bool:
        """Writers are started anew for each window: they warm up by commits of their own, before a hot one."""
        return False


WORKLOAD = Ingest
