"""Workload of the study: a client repeatedly writes a new table and reads it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tidemark.measure.workload import Files, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.deltars import data
from tidemark.studies.deltars.settings import DeltarsSettings, processors
from tidemark.systems.base import Variant
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.registry import of_kind

SLOW_WRITE_SECONDS = 30.0  # including the start of an application


class Tables(Workload):
    """Workload with one window of all repetitions, each with a separate table."""

    name = "tables"
    measurement = 1
    stage = "tidemark.studies.deltars.window.stage"
    takes_trips = False
    ends_by_itself = True
    tools = (data.TOOL,)

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = DeltarsSettings.of(spec)

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return an estimate of one second per operation, and half a minute per write through Kafka or Spark."""
        is_slow = of_kind(BulkTable)[spec.system].is_slow
        return DeltarsSettings.of(spec).repetitions * (1.0 + (SLOW_WRITE_SECONDS if is_slow else 1.0))

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why a series cannot run: also if the machine has fewer processors than the client needs."""
        cores = DeltarsSettings.of(spec).cores
        if cores > processors():
            return f"the client is to have {cores} processors, this machine has {processors()}"
        return super().unavailable(spec, variant)

    def inputs(self) -> Files:
        return {"data": (data.source_of(self.workspace, self.settings.data),), **super().inputs()}

    def placed(self, work: Path) -> AbstractContextManager[None]:
        """Generate the table, if it is missing, before anything is made cold."""
        del work
        data.made(self.workspace, self.settings.data)
        return nullcontext()

    @property
    def warms_up(self) -> bool:
        """False: each repetition has a separate table, and the first one is reported along with the others."""
        return False


WORKLOAD = Tables
