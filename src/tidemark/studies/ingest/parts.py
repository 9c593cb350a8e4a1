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
from tidemark.machine import power, strace
from tidemark.runs.spec import HasSettings, SeriesSpec
from tidemark.services.base import Service
from tidemark.services.fault_proxy import CUT_OFF, LATE, RESTART, CommitFaults, CommitKills, HttpFaults, PostgresFaults
from tidemark.services.iceberg.rest import RestCatalog
from tidemark.services.postgres import Postgres
from tidemark.services.seaweedfs import SeaweedFS
from tidemark.services.servers import in_order, started_here
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.settings import (
    GROUP,
    UNDISTURBED,
    Gathering,
    IngestSection,
    IngestSettings,
    has_option,
    may_set,
    only_retries,
    table_class,
    with_options,
)
from tidemark.systems.base import DEFAULT, FULL, Variant
from tidemark.systems.object_store import S3
from tidemark.systems.registry import SystemEntry, registry, repeated

if TYPE_CHECKING:
    from tidemark.runs.runset import RunSet

FAULTS, FRONT, MAINTENANCE, CUT, AMBIGUITY = "faults", "front", "maintenance", "cut", "ambiguity"
FAULT_WRITERS = CUT_WRITERS = 2  # of one table
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
        """Yield the systems whose clients retry a refused commit as shipped: all but variants that set only retries."""
        kills, watch_seconds = section.sizes["kills"], float(section.sizes["watch_seconds"])
        own = {"uncounted": 0, "writers": FAULT_WRITERS, "kills": kills, "watch_seconds": watch_seconds}
        settings = cls.made(section, FAULTS, **own)
        yield from ((entry, settings) for entry in section.entries if kills and not only_retries(entry))

    def series(self, spec: SeriesSpec, _section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return one series, long enough for its kills."""
        killed = 1 + sum(not kind.is_instrument for kind in started_here(chosen.needs, config.services))
        return repeated(spec, 1, window_seconds=KILL_SECONDS * self.kills * killed, runs=1)


ROWS, CLIENTS = 50, 32  # rows per request, and clients with a connection each: kyma's shape with the most clients


@dataclass(frozen=True, slots=True)
class FrontSettings(Gathering, IngestSettings):
    """Clients of a front whose buffer is a commit (staged) and which is killed; a batch is a request."""

    words = (FRONT,)
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

    def series(self, spec: SeriesSpec, _section: IngestSection, _chosen: Variant, _config: Config) -> list[SeriesSpec]:
        """Return one series, long enough for its kills."""
        return repeated(spec, 1, window_seconds=KILL_SECONDS * self.kills, runs=1)


MAINTAINED, LEFT = "maintained", "left"  # with maintenance, or left without it as a control
READER, KEEPER = BESIDE = ("reader", "maintenance")  # processes next to the writers
# The same lake with its rows in the catalog: measured wherever the first is, even if the section does not list it.
INLINED = {"ducklake": "ducklake-inlined-postgres"}


def _with_inlined(section: IngestSection, part: str) -> list[SystemEntry]:
    """Return the systems that a part selects, among them those of INLINED."""
    there = {entry.name: entry for entry in section.entries}
    also = [also for name, also in INLINED.items() if name in there and also not in there]
    there |= {name: SystemEntry.parse(name, {}) for name in also}
    return [there[name] for name in section.names_of(part) if name in there]


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
        given, entries = section.given[MAINTENANCE], _with_inlined(section, MAINTENANCE)
        own = {"rows": given["rows"], "writers": given["writers"], "look_seconds": float(given["look_seconds"])}
        for entry, every_seconds in itertools.product(entries, (float(given["every_seconds"]), 0.0)):
            yield entry, cls.made(section, MAINTENANCE, every_seconds=every_seconds, **own)

    def series(self, spec: SeriesSpec, section: IngestSection, _chosen: Variant, _config: Config) -> list[SeriesSpec]:
        """Return series of one run, whose writers warm up with uncounted commits."""
        window_seconds = float(section.sizes[MAINTENANCE]["window_seconds"])
        return repeated(spec, section.sizes["repeats"], window_seconds=window_seconds, runs=1)

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why a client cannot maintain its table, or None if it can or the series is the control."""
        return table_class(chosen).refuses_maintenance(chosen.options) if self.every_seconds else None


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

    def refused_by(self, _chosen: Variant) -> str | None:
        if self.outside:
            return f"its power is not ours to cut: {self.outside} was not started here"
        reason = power.why_not()
        return None if reason is None else f"no power can be cut here: {reason}"


# Servers that commits go to, and the requests that commit: "METHOD path", or none for a COMMIT in SQL.
COMMITTED_BY: dict[type[Service], str] = {
    Postgres: "",
    RestCatalog: r"^POST .*(/transactions/commit|/tables/[^/]+)$",
    SeaweedFS: r"^PUT .*/_delta_log/\d+\.json$",
}
CATALOGS = (Postgres, RestCatalog)  # those of them that are restarted
HIT_SECONDS, RESTART_SECONDS = 1.0, 5.0  # expected for one hit
LIMIT_SECONDS = 2  # a client's time limit, where an answer is to be late for it
PAST = 1.25  # cuts are at moments of so many times what the row before took: few writes take longer
ANSWERS, KILLED = "answers", "killed"
NO_SERVER = (
    "its commit is a file on this machine: there is no server whose answer could be lost, and no call is known by "
    "which it becomes visible"
)
KILLED_ALONE = "without a server, a commit can be hit in these ways alone: after, before"


@dataclass(frozen=True, slots=True)
class AmbiguitySettings(IngestSettings):
    """One writer of tables with a proxy before the server that commits; a batch is one row, whose id is its token.

    Of a table on the local disk, the writer's process is killed instead.
    """

    words = (ANSWERS, KILLED)
    needs_rows = True

    hits: int  # in each way, with each policy
    faults: str  # the ways, separated by spaces
    retries: str  # the policies, separated by spaces
    restarts: int = 0  # of the server, with each policy
    cuts: int = 0  # of all connections, at random moments
    outside: str = ""  # the server that commits, if it was not started here
    local: bool = False  # without a server
    through: str = ""  # the catalog, if it is not the system's default

    @property
    def label(self) -> str:
        return f"{KILLED if self.local else ANSWERS}-{self.hits}" + (f"-{self.through}" if self.through else "")

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems of the part, and those that can go through other catalogs with each of these too.

        One without a server is measured as it is, and with its table in an S3 server.
        """
        sizes = section.sizes[AMBIGUITY]
        own = {name: " ".join(sizes[name]) for name in ("faults", "retries")}
        own |= {name: sizes[name] for name in ("hits", "restarts", "cuts")}
        settings = cls.made(section, AMBIGUITY, rows=1, uncounted=0, **own)
        for entry in _with_inlined(section, AMBIGUITY):
            is_local = entry.like in registry() and not registry()[entry.like].needs
            is_local &= dict(entry.options).get("storage") != S3
            yield entry, replace(settings, local=is_local)
            if is_local and has_option(entry, "storage"):
                yield with_options(entry, storage=S3), settings
            for catalog in sizes["catalogs"]:
                if may_set(entry, "catalog", catalog):
                    yield with_options(entry, catalog=catalog, storage=S3), replace(settings, through=catalog)

    def series(self, spec: SeriesSpec, _section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return one series of one run, in which everything is hit."""
        server = committed_by(chosen)
        theirs = server is not None and server.address_in(config.services) is not None
        settings = replace(self, outside=server.title) if server is not None and theirs else self
        each = {LATE: HIT_SECONDS + LIMIT_SECONDS, RESTART: RESTART_SECONDS}
        seconds = sum(hits * each.get(fault, HIT_SECONDS) for fault, _, hits in self.planned(chosen))
        return repeated(spec, 1, settings=settings.pairs, window_seconds=max(HIT_SECONDS, seconds), runs=1)

    def refused_by(self, chosen: Variant) -> str | None:
        if self.outside:
            return f"no proxy can be put before {self.outside}, which was not started here"
        if self.local:
            why = strace.why_not() if table_class(chosen).is_linked else NO_SERVER
            return why or (None if self.ways(chosen) else KILLED_ALONE)
        if (server := committed_by(chosen)) is None:
            titles = " and ".join(kind.title for kind in chosen.needs)
            return f"no proxy here knows by which requests {titles} commits"
        if not self.ways(chosen):
            return f"commits to {server.title} can be hit in these ways alone: {', '.join(faults_of(chosen))}"
        return None

    def ways(self, chosen: Variant) -> list[str]:
        """Return the ways in which commits of `chosen` are hit."""
        return [each for each in self.faults.split() if each in faults_of(chosen)]

    def planned(self, chosen: Variant) -> Iterator[tuple[str, str, int]]:
        """Yield each way and policy with its number of hits; then restarts of a catalog's server, and random cuts.

        What a cut loses does not depend on the policy: BLIND, if it is one of them, shows each lost answer as harm.
        """
        retries, server = self.retries.split(), committed_by(chosen)
        for fault, retry in itertools.product(self.ways(chosen), retries):
            yield fault, retry, self.hits
        if self.restarts and server is not None and issubclass(server, CATALOGS):
            yield from ((RESTART, retry, self.restarts) for retry in retries)
        if self.cuts and server is not None:
            yield CUT_OFF, BLIND if BLIND in retries else retries[0], self.cuts


def committed_by(chosen: Variant) -> type[Service] | None:
    """Return the server that a system's clients send their commits to; None if there is none that is known."""
    return next((kind for kind in chosen.needs if issubclass(kind, tuple(COMMITTED_BY))), None)


def request_of(server: type[Service]) -> str:
    """Return the pattern of requests by which clients commit to `server`; empty for a COMMIT in SQL."""
    return next(request for known, request in COMMITTED_BY.items() if issubclass(server, known))


def faults_of(chosen: Variant) -> list[str]:
    """Return the ways in which a system's commits can be hit: no answer is late for a client without a time limit."""
    server = committed_by(chosen)
    hits: type[CommitFaults] = CommitKills
    if server is not None:
        hits = HttpFaults if request_of(server) else PostgresFaults
    has_limit = table_class(chosen).time_limit is not None
    return [each for each in hits.faults if each != RESTART and (each != LATE or has_limit)]


PARTS: dict[str, type[IngestSettings]] = {
    **UNDISTURBED,
    FAULTS: FaultSettings,
    FRONT: FrontSettings,
    MAINTENANCE: MaintenanceSettings,
    CUT: CutSettings,
    AMBIGUITY: AmbiguitySettings,
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
