"""Study of many writers on one table: kyma's performance page, and a question that the thesis left open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from tidemark.config import Config
from tidemark.machine.power import Disk
from tidemark.measure.workload import Workload
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.ingest.parts import PARTS, CutSettings, settings_of
from tidemark.studies.ingest.settings import SECTION, AgesSettings, IngestSection, WritersSettings, table_class
from tidemark.studies.study import Study
from tidemark.systems.base import Capability, Variant
from tidemark.systems.registry import spec_of, variant, with_defaults
from tidemark.systems.tables import TableSystem

STUDY = Study(
    name="ingest",
    title="kyma, performance: ingest by concurrent writers, one commit a request",
    question="How many commits a second does one table take from many writers, and how many are refused or lost?",
)

# Modules with measurement windows, and the parts of each. Full names: the digest of measuring code follows such names.
RUNNERS = {
    "tidemark.studies.ingest.window.runner": ("writers", "group", "storage"),
    "tidemark.studies.ingest.window.open_loop": ("paced", "tail"),
    "tidemark.studies.ingest.window.one_client": ("pruning", "evolution", "ages"),
    "tidemark.studies.ingest.window.fault_injection": ("faults", "front"),
    "tidemark.studies.ingest.window.maintenance": ("maintenance",),
    "tidemark.studies.ingest.window.power_failure": ("cut",),
    "tidemark.studies.ingest.window.ambiguity": ("ambiguity",),
}


class Ingest(Workload):
    """Writers that start together, each committing its next batch as soon as the previous one is acknowledged."""

    name = "ingest"
    measurement = 2

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        super().__init__(spec, variant, trips, private)
        self.settings = settings_of(spec)
        self.ends_by_itself = isinstance(self.settings, AgesSettings)
        self.disk: Disk | None = None  # set while the series runs, if its power is to be cut

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why the series cannot run, also if only one process may write: writers do not create the table."""
        settings, kind = settings_of(spec), table_class(variant)
        is_alone = isinstance(settings, WritersSettings) and settings.writers == 1 and kind.hands_over
        refused = kind.refuses_writers(variant.options) if settings.needs_writers and not is_alone else None
        return super().unavailable(spec, variant) or refused or settings.refused_by(variant)

    @contextmanager
    def prepare_directory(self, work: Path) -> Iterator[None]:
        """Mount a separate disk on `work` if the power is to be cut."""
        if not isinstance(self.settings, CutSettings):
            yield
            return
        with Disk(work, work.with_name(f"{work.name}-disk")) as self.disk:
            yield

    def start_processes(self, _work: Path) -> AbstractContextManager[Disk | None]:
        """Yield the disk whose power is to be cut; writers belong to a window, and start with its table."""
        return nullcontext(self.disk)

    @property
    def runner(self) -> str:  # type: ignore[override]
        return next(module for module, parts in RUNNERS.items() if self.settings.part in parts)

    @property
    def warms_up(self) -> bool:
        """False: each window starts new writers, which warm up with their own commits before a hot window."""
        return False


WORKLOAD = Ingest


def plan(config: Config, base: SeriesSpec) -> list[SeriesSpec]:
    """Return the series of `config` under one stack, in no particular order; `base` has the fields that they share."""
    ingest = _section(config)
    window_seconds = float(ingest.sizes["window_seconds"])
    made: list[SeriesSpec] = []
    for given, settings in (cell for part in PARTS.values() for cell in part.cells(ingest)):
        entry = with_defaults(given, ingest.given)
        chosen = ingest.with_polaris(variant(entry, config.origin, (SECTION, "systems"), TableSystem))
        if settings.needs_rows and Capability.READ_BACK not in chosen.system.capabilities:
            continue
        spec = spec_of(base, entry, chosen, settings, window_seconds=window_seconds, runs=ingest.sizes["runs"])
        made += settings.series(spec, ingest, chosen, config)
    return made


def limits(config: Config) -> list[str]:
    """Check the section and return no limits: more writers than processors are what the study examines."""
    for part in PARTS.values():
        list(part.cells(_section(config)))
    return []


def _section(config: Config) -> IngestSection:
    return IngestSection.of(config, SECTION, dict)
