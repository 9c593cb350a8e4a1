"""Study of many writers on one table: kyma's performance page, and a question that the thesis left open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.machine.power import Disk
from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.services.polaris import Polaris
from tidemark.studies.ingest.parts import PARTS, CutSettings, settings_of
from tidemark.studies.ingest.settings import SECTION, AgesSettings, IngestSection, IngestSettings, table_class
from tidemark.studies.study import Study
from tidemark.systems.base import Capability, Variant
from tidemark.systems.registry import spec_of, variant, with_defaults
from tidemark.systems.tables import TableSystem

STUDY = Study(
    name="ingest",
    title="kyma, performance: ingest by concurrent writers, one commit a request",
    question="How many commits a second does one table take from many writers, and how many are refused or lost?",
)

# Modules with the measurement window of each part. Full names, since the digest of measuring code follows such names.
STAGES = {
    "writers": "tidemark.studies.ingest.window.runner",
    "paced": "tidemark.studies.ingest.window.paced",
    "group": "tidemark.studies.ingest.window.runner",
    "tail": "tidemark.studies.ingest.window.open_loop",
    "storage": "tidemark.studies.ingest.window.runner",
    "pruning": "tidemark.studies.ingest.window.pruning",
    "evolution": "tidemark.studies.ingest.window.evolution",
    "ages": "tidemark.studies.ingest.window.ages",
    "faults": "tidemark.studies.ingest.window.fault_injection",
    "front": "tidemark.studies.ingest.window.fault_injection",
    "maintenance": "tidemark.studies.ingest.window.maintenance",
    "cut": "tidemark.studies.ingest.window.power_failure",
    "ambiguity": "tidemark.studies.ingest.window.ambiguity",
}


class Ingest(Workload):
    """Writers that start together, each committing its next batch as soon as the previous one is acknowledged."""

    name = "ingest"
    measurement = 1

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings: IngestSettings = settings_of(spec)
        self.ends_by_itself = isinstance(self.settings, AgesSettings)
        self.disk: Disk | None = None  # set while the series runs, if its power is to be cut

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why the series cannot run, also if only one process may write: writers do not create the table."""
        settings = settings_of(spec)
        refused = table_class(variant).refuses_writers(variant.options) if settings.needs_writers else None
        return super().unavailable(spec, variant) or refused or settings.refused_by(variant)

    @contextmanager
    def prepare_directory(self, work: Path) -> Iterator[None]:
        """Mount a separate disk on `work` if the power is to be cut."""
        if not isinstance(self.settings, CutSettings):
            yield
            return
        with Disk(work, work.with_name(f"{work.name}-disk")) as self.disk:
            yield

    def start_processes(self, work: Path) -> AbstractContextManager[Disk | None]:
        """Yield the disk whose power is to be cut; writers belong to a window, and start with its table."""
        del work
        return nullcontext(self.disk)

    @property
    def runner(self) -> str:  # type: ignore[override]
        return STAGES[self.settings.part]

    @property
    def warms_up(self) -> bool:
        """False: each window starts new writers, which warm up with their own commits before a hot window."""
        return False


WORKLOAD = Ingest


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """Return the series of `config` under one stack, in no particular order; `base` has the fields that they share."""
    ingest = _section(config)
    missing = config.services.why_no_polaris()
    made: list[SeriesSpec] = []
    for given, settings in (cell for part in PARTS.values() for cell in part.cells(ingest)):
        entry = with_defaults(given, ingest.given)
        chosen = variant(entry, config.origin, (SECTION, "systems"), TableSystem)
        if missing and Polaris in chosen.needs:
            place = config.origin.place((SECTION, "systems", entry.name))
            raise ConfigError(f"{place}: found catalog: polaris, but {missing}")
        if settings.needs_rows and Capability.READ_BACK not in chosen.system.capabilities:
            continue
        spec = spec_of(
            base,
            entry,
            chosen,
            settings,
            window_seconds=float(ingest.sizes["window_seconds"]),
            runs=ingest.sizes["runs"],
        )
        made += settings.series(spec, ingest, chosen, config)
    return made


def limits(config: Config) -> list[str]:
    """Check the section and return no limits: more writers than processors are what the study examines."""
    for part in PARTS.values():
        list(part.cells(_section(config)))
    return []


def _section(config: Config) -> IngestSection:
    return IngestSection.parse(config.sections[SECTION], config.protocol, config.origin)
