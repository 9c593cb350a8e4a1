"""Parts of the study: the settings of those whose writers are disturbed, and the table of all parts.

settings   a class that plans the series of the part, here or in settings.py; registered here
window     a module in window/ with open_window(test_bed, name, seconds, show); registered in study.py
results    tables and sentences in a module of tables/, figures in figures.py; registered in results.py
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from tidemark.config import Config
from tidemark.machine import power
from tidemark.runs.spec import HasSettings, SeriesSpec
from tidemark.services.servers import in_order, started_here
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.settings import (
    EVOLUTION,
    GROUP,
    PACED,
    PRUNING,
    STORAGE,
    TAIL,
    WRITERS,
    EvolutionSettings,
    Gathering,
    GroupSettings,
    IngestSection,
    IngestSettings,
    PacedSettings,
    PruningSettings,
    StorageSettings,
    TailSettings,
    WritersSettings,
    has_option,
    table_class,
    with_options,
)
from tidemark.systems.base import DEFAULT, FULL, Variant
from tidemark.systems.registry import SystemEntry, repeated

if TYPE_CHECKING:
    from tidemark.runs.runset import RunSet

FAULTS, FRONT, MAINTENANCE, CUT = "faults", "front", "maintenance", "cut"
FAULT_WRITERS = 2  # of one table
KILL_SECONDS = 5.0  # length of a window per kill


@dataclass(frozen=True, slots=True)
class FaultSettings(IngestSettings):
    """Writers of one table, which are killed, as are the servers; a batch is a commit."""

    words = (FAULTS,)
    needs_rows = True
    label_pattern = re.compile(rf"{FAULTS}-(?P<writers>\d+)(-(?P<retry>{CHECK}|{BLIND}))?")

    writers: int
    tries: int  # per batch, while the client reports that another commit came first
    kills: int  # of a writer, and of each server
    retry: str  # of a batch of unknown outcome: never, check or blind
    watch_seconds: float  # the longest wait until the kernel has written a commit's files to the disk

    @property
    def label(self) -> str:
        return f"{FAULTS}-{self.writers}" + ("" if self.retry == NEVER else f"-{self.retry}")

    @classmethod
    def _of_label(cls, label: str) -> dict[str, Any]:
        found = super(FaultSettings, cls)._of_label(label)
        return {**found, "retry": found.get("retry") or NEVER}

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        kills, watch_seconds = section.sizes["kills"], float(section.sizes["watch_seconds"])
        own = {"uncounted": 0, "writers": FAULT_WRITERS, "kills": kills, "watch_seconds": watch_seconds}
        settings = cls.made(section, FAULTS, **own)
        yield from ((entry, settings) for entry in section.with_their_retries if kills)

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return one series, long enough for its kills."""
        del section
        killed = 1 + sum(not kind.is_instrument for kind in started_here(chosen.needs, config.services))
        return repeated(spec, 1, window_seconds=KILL_SECONDS * self.kills * killed, runs=1)


ROWS, CLIENTS = 50, 32  # rows per request, and clients with a connection each: kyma's shape with the most clients


@dataclass(frozen=True, slots=True)
class FrontSettings(Gathering, IngestSettings):
    """Clients of a front whose buffer is a commit (staged) and which is killed; a batch is a request."""

    words = (FRONT,)
    form = f"{FRONT}-{{rows}}x{{clients}}"
    needs_rows = True
    label_pattern = re.compile(rf"{FRONT}-(?P<rows>\d+)x(?P<clients>\d+)")

    clients: int
    kills: int
    tries: int  # of the front, per commit, while other commits come first
    max_rows: int
    max_bytes: int
    max_age_ms: float

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems of the part `group`."""
        kills, tries = section.sizes["kills"], section.given[GROUP]["tries"]
        settings = cls.made(section, FRONT, rows=ROWS, uncounted=0, clients=CLIENTS, kills=kills, tries=tries)
        yield from ((entry, settings) for entry in section.systems_of(GROUP) if kills)

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return one series, long enough for its kills."""
        del section, chosen, config
        return repeated(spec, 1, window_seconds=KILL_SECONDS * self.kills, runs=1)


MAINTAINED, LEFT = "maintained", "left"  # with maintenance, or left without it as a control
READER, KEEPER = BESIDE = ("reader", "maintenance")  # processes next to the writers
# The same lake with its rows in the catalog: measured wherever the first is, even if the section does not list it.
INLINED = {"ducklake": "ducklake-inlined-postgres"}


@dataclass(frozen=True, slots=True)
class MaintenanceSettings(IngestSettings):
    """Writers of one table, a client that reads it, and one that maintains it, or none as a control."""

    words = (MAINTAINED, LEFT)
    needs_rows = True

    writers: int
    tries: int  # per batch, while the client reports that another commit came first
    every_seconds: float  # between the starts of two rounds of maintenance; 0: no maintenance
    look_seconds: float  # between two samples of files and bytes

    @property
    def label(self) -> str:
        return f"{MAINTAINED if self.every_seconds else LEFT}-{self.writers}"

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        names, given = section.names_of(MAINTENANCE), section.given[MAINTENANCE]
        there = {entry.name: entry for entry in section.systems}
        also = [also for name, also in INLINED.items() if name in there and also not in there]
        there |= {name: SystemEntry.parse(name, {}) for name in also}
        own = {"rows": given["rows"], "writers": given["writers"], "look_seconds": float(given["look_seconds"])}
        for name, every_seconds in itertools.product(names, (float(given["every_seconds"]), 0.0)):
            if name in there:
                yield there[name], cls.made(section, MAINTENANCE, every_seconds=every_seconds, **own)

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return series of one run, whose writers warm up with uncounted commits."""
        del chosen, config
        window_seconds = float(section.sizes[MAINTENANCE]["window_seconds"])
        return repeated(spec, section.sizes["repeats"], window_seconds=window_seconds, runs=1)

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why a client cannot maintain its table, or None if it can or the series is the control."""
        return table_class(chosen).refuses_maintenance(chosen.options) if self.every_seconds else None


CUT_WRITERS = 2  # of one table


@dataclass(frozen=True, slots=True)
class CutSettings(IngestSettings):
    """Writers of one table on a dedicated disk that also holds its servers' data; a batch is a commit."""

    words = (CUT,)
    needs_rows = True
    label_pattern = re.compile(rf"{CUT}-(?P<writers>\d+)(-(?P<durability>{FULL}))?")

    writers: int
    tries: int  # per batch, while the client reports that another commit came first
    durability: str  # DEFAULT: as configured; FULL: with that option
    outside: str = ""  # servers that the system needs and that were not started here

    @property
    def label(self) -> str:
        return f"{CUT}-{self.writers}" + (f"-{FULL}" if self.durability == FULL else "")

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield each system as configured, and with `durability: full` if it has that option and does not set it."""
        own = {"uncounted": 0, "writers": CUT_WRITERS}
        for entry in section.systems_of(CUT):
            yield entry, cls.made(section, CUT, durability=DEFAULT, **own)
            if has_option(entry, "durability") and dict(entry.options).get("durability") != FULL:
                yield with_options(entry, durability=FULL), cls.made(section, CUT, durability=FULL, **own)

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return a series per cut, on a new table and new servers."""
        sizes = section.sizes[CUT]
        theirs = [kind.title for kind in in_order(chosen.needs) if kind.address_in(config.services) is not None]
        own = {"settings": replace(self, outside=", ".join(theirs)).pairs, "runs": 1}
        return repeated(spec, sizes["cuts"], window_seconds=float(sizes["window_seconds"]), **own)

    def refused_by(self, chosen: Variant) -> str | None:
        del chosen
        if self.outside:
            return f"its power is not ours to cut: {self.outside} was not started here"
        reason = power.why_not()
        return None if reason is None else f"no power can be cut here: {reason}"


PARTS: dict[str, type[IngestSettings]] = {
    WRITERS: WritersSettings,
    PACED: PacedSettings,
    GROUP: GroupSettings,
    TAIL: TailSettings,
    STORAGE: StorageSettings,
    PRUNING: PruningSettings,
    EVOLUTION: EvolutionSettings,
    FAULTS: FaultSettings,
    FRONT: FrontSettings,
    MAINTENANCE: MaintenanceSettings,
    CUT: CutSettings,
}
BY_WORD = {word: part for part, settings in PARTS.items() for word in settings.words}


def part_name(series: HasSettings) -> str:
    """Return the part that a planned or measured series belongs to; plans of earlier versions tell it by the mode."""
    return dict(series.settings).get("part") or BY_WORD[series.mode.partition("-")[0]]


def of_part(run_set: RunSet, part: str) -> RunSet:
    """Return `run_set` with only the series that belong to `part`."""
    return replace(run_set, series=tuple(each for each in run_set.series if part_name(each) == part))


def settings_of(series: HasSettings) -> IngestSettings:
    """Return the settings of a planned or measured series, as an instance of its part's class."""
    return PARTS[part_name(series)].of(series)
