"""Study `deltars`, the cost of writing complete tables locally and on HDFS: its series and workload."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from pathlib import Path

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.measure.workload import Files, Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.deltars import data
from tidemark.studies.deltars.config import Protocol
from tidemark.studies.deltars.samples import DATA, DeltarsSettings
from tidemark.studies.section import Section
from tidemark.studies.study import Study
from tidemark.systems.base import Variant
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.registry import of_kind, repeated, spec_of

STUDY = Study(
    name="deltars",
    title="Reducing read and write latency using Rust in an offline feature store (G. Manfredi, KTH 2024)",
    question="How long do writing and reading a whole table take with delta-rs, on a local disk and on HDFS, and by "
    "way of Kafka, Spark and Hudi?",
)
# Likely seconds of a repetition, and the rows of its table that a second more is for: as two processors took.
FAST_S, FAST_ROWS = 0.2, 5e5
SLOW_S, SLOW_ROWS = 30.0, 1e4  # through Kafka or Spark, with the start of an application
START_S = 30.0  # of HDFS, in the series of a system that needs it


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


class Tables(Workload):
    """Workload with one window of all repetitions, each with a separate table."""

    name = "tables"
    measurement = 1
    runner = "tidemark.studies.deltars.runner"
    takes_trips = False
    ends_by_itself = True
    warms_up = False  # each repetition has a separate table, and the first one is reported along with the others
    tools = (data.TOOL,)

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return an estimate by the number of rows, and by the servers that each write or each series starts."""
        system, settings = of_kind(BulkTable)[spec.system], DeltarsSettings.of(spec)
        seconds, rows = (SLOW_S, SLOW_ROWS) if system.is_slow else (FAST_S, FAST_ROWS)
        return settings.repetitions * (seconds + settings.rows / rows) + (START_S if system.needs else 0.0)

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why a series cannot run: also if the machine has fewer processors than the client needs."""
        cores = DeltarsSettings.of(spec).cores
        if cores > processors():
            return f"the client is to have {cores} processors, this machine has {processors()}"
        return super().unavailable(spec, variant)

    def inputs(self) -> Files:
        return {"data": (data.source_of(self.workspace, DeltarsSettings.of(self.spec).data),), **super().inputs()}

    def prepare_directory(self, _work: Path) -> AbstractContextManager[None]:
        """Generate the table, if it is missing, before anything is made cold."""
        data.made(self.workspace, DeltarsSettings.of(self.spec).data)
        return nullcontext()


WORKLOAD = Tables


def section(config: Config) -> Section[Protocol]:
    """Return the study's section. Raises ConfigError, with the place of the key, for an unknown table or system."""
    found = Section.of(config, STUDY.name, Protocol)
    for key, tables in (("tables", found.sizes.tables), ("slow", found.sizes.slow)):
        for name in tables:
            if DATA.fullmatch(name) is None:
                raise ConfigError(
                    f"{found.place_of_size(key, name)}: found the table '{name}'; allowed: supplier_sf and lineitem_sf "
                    "with a scale above 0, such as supplier_sf10"
                )
    for name in found.sizes.instead:
        found.check_name(name, (BulkTable,), "instead")
    return found


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    deltars = section(config)
    sizes = deltars.sizes
    made: list[SeriesSpec] = []
    for entry, chosen in deltars.systems(BulkTable):
        assert issubclass(chosen.system, BulkTable)
        tables = sizes.slow if chosen.system.is_slow else sizes.tables
        for (table, repetitions), cores in product(tables.items(), sizes.instead.get(entry.name, sizes).cores):
            if cores <= processors():
                settings = DeltarsSettings(
                    data=table,
                    cores=cores,
                    repetitions=repetitions,
                    timeout_seconds=float(deltars.given["timeout_seconds"]),
                    checked_rows=deltars.given["checked_rows"],
                )
                longest = repetitions * 2 * settings.timeout_seconds
                spec = spec_of(base, entry, chosen, settings, window_seconds=longest, runs=1)
                made += repeated(spec, sizes.repeats, cpus=cores)
    return made


def limits(config: Config) -> list[str]:
    """Return a message with the planned numbers of processors that this machine does not have; empty if none."""
    asked = ", ".join(str(cores) for cores in section(config).sizes.cores if cores > processors())
    words = f"study 'deltars': clients with {asked} processors were asked for, this machine has {processors()}"
    return [words] if asked else []
