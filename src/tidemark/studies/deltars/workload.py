"""The study's workload: a client writes a new table, reads it, and does so again and again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine.sampler import Group
from tidemark.measure.workload import Files, Rig, Show, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.deltars import data
from tidemark.studies.deltars.settings import DeltarsSettings, processors
from tidemark.systems import of_kind
from tidemark.systems.base import Variant
from tidemark.systems.wholes.kind import WholeSystem

if TYPE_CHECKING:
    from tidemark.studies.deltars.window.stage import TableStage
    from tidemark.systems.wholes.process import Client

CLIENT = "client"  # the group of processes that the client is
SLOW_WRITE_SECONDS = 30.0  # with the start of an application


class Tables(Workload):
    """One window: all repetitions, each a table of its own."""

    name = "tables"
    measurement = 1
    takes_trips = False
    ends_by_itself = True
    tools = (data.TOOL,)

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = DeltarsSettings.of(spec)
        self.client: Client | None = None

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """As if every operation took a second, and a write through Kafka or Spark half a minute."""
        is_slow = of_kind(WholeSystem)[spec.system].is_slow
        return DeltarsSettings.of(spec).repetitions * (1.0 + (SLOW_WRITE_SECONDS if is_slow else 1.0))

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Also where the machine has fewer processors than the client is to have."""
        cores = DeltarsSettings.of(spec).cores
        if cores > processors():
            return f"the client is to have {cores} processors, this machine has {processors()}"
        return super().unavailable(spec, variant)

    @property
    def source(self) -> Path:
        """The file with the table that is written."""
        return data.source_of(self.workspace, self.settings.data)

    def inputs(self) -> Files:
        return {"data": (self.source,), **super().inputs()}

    def placed(self, work: Path) -> AbstractContextManager[None]:
        """Before anything is made cold, the table is there."""
        del work
        data.made(self.workspace, self.settings.data)
        return nullcontext()

    def started(self, work: Path) -> AbstractContextManager[None]:
        del work  # the client is of a window
        return nullcontext()

    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[TableStage]:
        from tidemark.studies.deltars.window.stage import staged

        del seconds
        return staged(self, rig, name, show)

    def groups(self) -> Mapping[str, Group]:
        return {CLIENT: Group(lambda: [self.client.pid] if self.client else [])}

    def has_ended(self) -> bool:
        return self.client is not None and not self.client.is_alive()

    @property
    def warms_up(self) -> bool:
        """Each repetition has a table of its own, and the first one stands beside the others."""
        return False


WORKLOAD = Tables
