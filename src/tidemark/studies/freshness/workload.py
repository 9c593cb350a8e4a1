"""Workload of the study: events arrive at a set rate, and a mover brings them into a table that a reader watches."""

from __future__ import annotations

from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.kafka import Kafka
from tidemark.studies.freshness.settings import PRODUCER, FreshnessSettings
from tidemark.systems.base import Capability, Variant
from tidemark.systems.object_store import is_in_bucket
from tidemark.systems.sinks import StreamingSink
from tidemark.systems.tables import TableSystem


class Freshness(Workload):
    """Workload of one window: a running pipeline, events at a rate, and a wait until all of them are visible."""

    name = "freshness"
    measurement = 1
    runner = "tidemark.studies.freshness.window.runner"
    services = (Kafka,)
    excluded_groups = (Kafka.name, PRODUCER)
    ends_by_itself = True

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
        if issubclass(system, StreamingSink) and FreshnessSettings.of(spec).kills:
            refused = system.why_no_kill(variant.options, spec.services)
        return super().unavailable(spec, variant) or refused

    @property
    def warms_up(self) -> bool:
        """False: the pipeline is restarted for each window, and moves uncounted events before it."""
        return False


WORKLOAD = Freshness
