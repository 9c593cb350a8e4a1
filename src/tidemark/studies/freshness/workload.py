"""Workload of the study: events arrive at a set rate, and a mover brings them into a table that a reader watches."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine.sampler import Group
from tidemark.measure.workload import Rig, Show, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.kafka import Kafka
from tidemark.studies.freshness.settings import FreshnessSettings
from tidemark.systems.base import Capability, Variant
from tidemark.systems.in_bucket import is_in_bucket
from tidemark.systems.pipelines.kind import PipelineSystem
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.stream.paced import PacedProducer
    from tidemark.studies.freshness.window.stage import FreshnessStage, Moving

PRODUCER, MOVING = "producer", "pipeline"  # groups of processes: the sender of events, and their mover into the table
HARNESS = "harness"  # this process, with the reader


class Freshness(Workload):
    """Workload of one window: a running pipeline, events at a rate, and a wait until all of them are visible."""

    name = "freshness"
    measurement = 1
    services = (Kafka,)
    apart = (Kafka.name, PRODUCER)
    ends_by_itself = True
    spared = (Kafka.name, PRODUCER, HARNESS)  # groups that are not part of a table's cost

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = FreshnessSettings.of(spec)
        self.producer: PacedProducer | None = None
        self.moving: Moving | None = None

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the likely seconds, with half of the longest drain."""
        return spec.window_seconds + FreshnessSettings.of(spec).drain_seconds / 2

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why it cannot run: also if the table has no history or only one writer, or no kill is possible."""
        system = variant.system
        if Capability.HISTORY not in system.capabilities:
            return f"{system.title}: its table does not tell when it was written to"
        if is_in_bucket(variant.options):
            return "how old events are is measured of tables on the local disk; storage is s3"
        refused = system.refuses_writers(variant.options) if issubclass(system, TableSystem) else None
        if issubclass(system, PipelineSystem) and FreshnessSettings.of(spec).kills:
            refused = system.why_no_kill(variant.options, spec.services)
        return super().unavailable(spec, variant) or refused

    @cached_property
    def schema(self) -> pa.Schema:
        import pyarrow.parquet as pq

        return pq.read_schema(self.trips).remove_metadata()

    def started(self, work: Path) -> AbstractContextManager[None]:
        del work  # producer and pipeline belong to a window: they get its topic when they start
        return nullcontext()

    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[FreshnessStage]:
        from tidemark.studies.freshness.window.stage import staged

        del seconds
        return staged(self, rig, name, show)

    def let_go(self) -> None:
        """Stop the mover of events, if it runs; called at the end of the stage."""
        moving, self.moving, self.producer = self.moving, None, None
        if moving is not None:
            moving.stop()

    def groups(self) -> Mapping[str, Group]:
        def ended_seconds() -> float:
            return self.moving.ended_seconds() if self.moving else 0.0

        return {
            PRODUCER: Group(lambda: [self.producer.pid] if self.producer else [], alone=True),
            MOVING: Group(lambda: self.moving.pids() if self.moving else [], ended=ended_seconds),
        }

    def has_ended(self) -> bool:
        return self.producer is not None and not self.producer.is_alive()

    @property
    def warms_up(self) -> bool:
        """False: the pipeline is restarted for each window, and moves uncounted events before it."""
        return False


WORKLOAD = Freshness
