"""Workload of the study: many writer processes, each with its own client, append to one table in a closed loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.machine.power import Disk
from tidemark.machine.sampler import Group
from tidemark.measure.workload import Rig, Show, Stage, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.ingest.cut.settings import CutSettings
from tidemark.studies.ingest.maintenance.settings import BESIDE, MaintenanceSettings
from tidemark.studies.ingest.parts import settings_of
from tidemark.studies.ingest.settings import IngestSettings
from tidemark.systems.base import Variant
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.studies.ingest.load.crew import Writing

WRITERS, CLIENTS = "writers", "clients"  # process groups: writers of the table, and clients of a front
# Modules with the measurement window of each part. Full names, since the digest of measuring code follows such names.
STAGES = {
    "writers": "tidemark.studies.ingest.writers.stage",
    "group": "tidemark.studies.ingest.group.stage",
    "tail": "tidemark.studies.ingest.tail.stage",
    "storage": "tidemark.studies.ingest.writers.stage",
    "pruning": "tidemark.studies.ingest.pruning.stage",
    "faults": "tidemark.studies.ingest.faults.stage",
    "front": "tidemark.studies.ingest.front.stage",
    "maintenance": "tidemark.studies.ingest.maintenance.stage",
    "cut": "tidemark.studies.ingest.cut.stage",
}
Staged = Callable[..., AbstractContextManager[Stage[Any]]]


class Ingest(Workload):
    """Writers that start together, each committing its next batch as soon as the previous one is acknowledged."""

    name = "ingest"
    measurement = 1

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings: IngestSettings = settings_of(spec)
        self._writing: Writing | None = None
        self.disk: Disk | None = None  # set while the series runs, if its power is to be cut

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why the series cannot run, also if only one process may write: writers do not create the table."""
        system = variant.system
        refused = system.refuses_writers(variant.options) if issubclass(system, TableSystem) else None
        return super().unavailable(spec, variant) or refused or settings_of(spec).refused_by(variant)

    @cached_property
    def schema(self) -> pa.Schema:
        import pyarrow.parquet as pq

        return pq.read_schema(self.trips).remove_metadata()

    @contextmanager
    def placed(self, work: Path) -> Iterator[None]:
        """Mount a separate disk on `work` if the power is to be cut."""
        if not isinstance(self.settings, CutSettings):
            yield
            return
        with Disk(work, work.with_name(f"{work.name}-disk")) as self.disk:
            yield

    def started(self, work: Path) -> AbstractContextManager[None]:
        del work  # writers belong to a window: they receive its table when they start
        return nullcontext()

    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[Stage[Any]]:
        staged: Staged = import_module(STAGES[self.settings.part]).staged
        return staged(self, rig, name, seconds, show, self.settings)

    @contextmanager
    def working(self, writing: Writing) -> Iterator[None]:
        """Attribute the processes of `writing` to this workload's groups while the context is active."""
        self._writing = writing
        try:
            yield
        finally:
            self._writing = None

    def groups(self) -> Mapping[str, Group]:
        def ended_seconds() -> float:
            return self._writing.ended_seconds() if self._writing else 0.0

        writers = {WRITERS: Group(lambda: self._writing.pids if self._writing else [], ended=ended_seconds)}
        if isinstance(self.settings, MaintenanceSettings):
            return {**writers, **{name: Group(partial(self._beside, name)) for name in BESIDE}}
        if self.settings.has_front:
            from tidemark.studies.ingest.group.load import Fronted

            return {
                **writers,
                CLIENTS: Group(lambda: self._writing.client_pids if isinstance(self._writing, Fronted) else []),
            }
        return writers

    def _beside(self, name: str) -> list[int]:
        """Return the pids of the process `name` that runs next to the writers of a maintained table."""
        from tidemark.studies.ingest.maintenance.crew import KeptCrew

        return self._writing.beside(name) if isinstance(self._writing, KeptCrew) else []

    def has_ended(self) -> bool:
        return self._writing is not None and self._writing.has_failed()

    @property
    def warms_up(self) -> bool:
        """False: each window starts new writers, which warm up with their own commits before a hot window."""
        return False


WORKLOAD = Ingest
