"""Study `deltars`, the cost of writing complete tables locally and on HDFS: its series and workload."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from tidemark.config import Config
from tidemark.measure.workload import Files, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.deltars import data
from tidemark.studies.deltars.settings import SECTION, DeltarsSection, DeltarsSettings, processors
from tidemark.studies.study import Study
from tidemark.systems.base import Variant
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.registry import of_kind, repeated, spec_of, variant, with_defaults

STUDY = Study(
    name="deltars",
    title="Reducing read and write latency using Rust in an offline feature store (G. Manfredi, KTH 2024)",
    question="How long do writing and reading a whole table take with delta-rs, on a local disk and on HDFS, and by "
    "way of Kafka, Spark and Hudi?",
)
SLOW_WRITE_SECONDS = 30.0  # including the start of an application


class Tables(Workload):
    """Workload with one window of all repetitions, each with a separate table."""

    name = "tables"
    measurement = 1
    runner = "tidemark.studies.deltars.runner"
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

    def prepare_directory(self, work: Path) -> AbstractContextManager[None]:
        """Generate the table, if it is missing, before anything is made cold."""
        del work
        data.made(self.workspace, self.settings.data)
        return nullcontext()

    @property
    def warms_up(self) -> bool:
        """False: each repetition has a separate table, and the first one is reported along with the others."""
        return False


WORKLOAD = Tables


def section(config: Config) -> DeltarsSection:
    """Return the study's section, parsed and validated; ConfigError if it is invalid."""
    return DeltarsSection.parse(config.sections[SECTION], config.protocol, config.origin)


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    deltars = section(config)
    made: list[SeriesSpec] = []
    for given in deltars.systems:
        # Checked first, so that a system of another kind is refused by its name.
        variant(given, config.origin, (SECTION, "systems"), BulkTable)
        entry = with_defaults(given, deltars.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"), BulkTable)
        assert issubclass(chosen.system, BulkTable)
        for settings in deltars.cells(entry.name, chosen.system.is_slow):
            longest = settings.repetitions * 2 * settings.timeout_seconds
            spec = spec_of(base, entry, chosen, settings, window_seconds=longest, runs=1)
            made += repeated(spec, deltars.sizes.repeats, cpus=settings.cores)
    return made


def limits(config: Config) -> list[str]:
    """Return a message with the planned numbers of processors that this machine does not have; empty if none."""
    beyond = section(config).beyond()
    if not beyond:
        return []
    asked = ", ".join(map(str, beyond))
    return [f"study 'deltars': clients with {asked} processors were asked for, this machine has {processors()}"]
