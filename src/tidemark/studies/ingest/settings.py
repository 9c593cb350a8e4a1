"""The section `ingest` of the configuration, and the settings of series; those of disturbed parts are in parts.py."""

from __future__ import annotations

import itertools
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.runs.spec import SeriesSpec, WorkloadSettings
from tidemark.schema import one_of
from tidemark.studies.ingest.gateway.group_commit import BUNDLED, DIRECT, POLICIES, STAGED, GroupCommit, Policy
from tidemark.studies.ingest.load.schedule import CONSTANT, POISSON
from tidemark.studies.section import Section
from tidemark.systems.base import Capability, Variant
from tidemark.systems.object_store import S3
from tidemark.systems.registry import SystemEntry, of_kind, registry, repeated
from tidemark.systems.tables import TableSystem

SECTION = "ingest"
RETRIES = frozenset({"commit_retries", "retry_wait_ms"})  # options of a client that retries a refused commit
WRITERS, PACED, GROUP, TAIL, STORAGE, PRUNING = "writers", "paced", "group", "tail", "storage", "pruning"
EVOLUTION, AGES = "evolution", "ages"
COMMITS_AT_AGE = 10  # timed commits, which make the table older


class IngestSection(Section[dict[str, Any]]):
    """The section, already checked against its schema; its sizes by key."""

    __slots__ = ()

    @property
    def entries(self) -> list[SystemEntry]:
        """The systems as the section has them."""
        return [SystemEntry.parse(name, options) for name, options in self.given["systems"].items()]

    @property
    def as_shipped(self) -> list[SystemEntry]:
        """The systems that are not variants of others."""
        return [each for each in self.entries if each.name == each.like and each.like in registry()]

    def names_of(self, part: str) -> list[str]:
        """Return the names by which a part selects its systems; raise ConfigError, with the place, for an unknown one.

        A known system that the section lacks selects nothing.
        """
        names: list[str] = self.sizes[part]["systems"]
        known = dict.fromkeys(sorted({*self.given["systems"], *of_kind(TableSystem)}))
        for name in names:
            place = (SECTION, "protocols", self.config.protocol, part, "systems")
            one_of(name, known, place, self.config.origin)
        return names

    def systems_of(self, part: str) -> list[SystemEntry]:
        """Return the systems that a part selects, as `names_of` does."""
        names = self.names_of(part)
        return [entry for entry in self.entries if entry.name in names]


def only_retries(entry: SystemEntry) -> bool:
    """Return True if `entry` is a variant that sets only how its client retries a refused commit."""
    named = {name for name, value in dict(entry.options).items() if value is not None}
    return entry.name != entry.like and bool(named) and named <= RETRIES


def has_option(entry: SystemEntry, name: str) -> bool:
    return entry.like in registry() and name in {field.name for field in fields(registry()[entry.like].Options)}


def may_set(entry: SystemEntry, name: str, value: str) -> bool:
    """Return True if `value` is among the choices of an option that `entry` leaves out."""
    options = fields(registry()[entry.like].Options) if entry.like in registry() else ()
    choices = [each.metadata.get("choices") or () for each in options if each.name == name]
    return name not in dict(entry.options) and any(value in each for each in choices)


def with_options(entry: SystemEntry, **more: Any) -> SystemEntry:
    return replace(entry, options=tuple(sorted({**dict(entry.options), **more}.items())))


def table_class(chosen: Variant) -> type[TableSystem]:
    """Return the class of a system that the study can measure, which all are that pass the check of the plan."""
    assert issubclass(chosen.system, TableSystem)
    return chosen.system


@dataclass(frozen=True, slots=True)
class IngestSettings(WorkloadSettings):
    """Settings that decide how a series writes, in addition to its system and options; each part has a subclass.

    `words` are the first words of the modes of its series. `needs_rows` is set if a part shows losses: it has no series
    of systems that keep nothing. Without `needs_writers`, the table may be one that a single process at a time writes.
    """

    words: ClassVar[tuple[str, ...]]
    needs_rows: ClassVar[bool] = False
    needs_writers: ClassVar[bool] = True

    part: str
    rows: int  # per batch
    uncounted: int  # warm-up batches of each writer before a hot window

    @property
    def has_front(self) -> bool:
        """True if clients send requests to a front, which writes to the table."""
        return False

    @classmethod
    def made(cls, section: IngestSection, part: str, **own: Any) -> Self:
        """Return settings with the values `own`; the others are keys of the section, or limits of a front's buffer."""
        front = section.given[GROUP]
        limits = {name: front[name] for name in ("max_rows", "max_bytes", "max_files")}
        ages = {name: float(front[name]) for name in ("max_age_ms", "window_ms")}
        given = {**section.given, **limits, **ages, "part": part, **own}
        return cls(**{field.name: given[field.name] for field in fields(cls) if field.name in given})

    @classmethod
    @abstractmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems of the part, with their options, and the settings of their series.

        Raise ConfigError, with the place of the key, for numbers or names of the part that are not valid.
        """

    def series(self, spec: SeriesSpec, section: IngestSection, _chosen: Variant, _config: Config) -> list[SeriesSpec]:
        """Return `spec` once for each repeat of the protocol, unless a part has other rules."""
        return repeated(spec, section.sizes["repeats"])

    def refused_by(self, _chosen: Variant) -> str | None:
        """Return why the part cannot measure a system, in words for tables, or None if it can."""
        return None


ONE, OWN = "one", "own"  # all write one table, or each a separate one; ONE in `tail`: a writer without a front


@dataclass(frozen=True, slots=True)
class WritersSettings(IngestSettings):
    """Many writers, each a separate process; a batch is a commit."""

    words: ClassVar[tuple[str, ...]] = (ONE, OWN)
    label_pattern = re.compile(rf"(?P<tables>{ONE}|{OWN})-(?P<writers>\d+)")

    writers: int
    tables: str  # ONE or OWN
    tries: int  # per batch, while the client reports that another commit came first

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        sizes = section.sizes
        alone = sorted(set(sizes["own"]) - set(sizes["writers"]))
        if alone:
            raise ConfigError(
                f"{section.place_of_size('own')}: found {alone[0]}; allowed: numbers that 'writers' has as well "
                f"({', '.join(map(str, sizes['writers']))}): a table each is the control of one table for all"
            )
        counts = [*((ONE, count) for count in sizes["writers"]), *((OWN, count) for count in sizes["own"])]
        for entry, (tables, writers) in itertools.product(section.entries, counts):
            if only_retries(entry) and (tables == OWN or writers == 1):
                continue  # without conflicts, there is nothing to retry
            yield entry, cls.made(section, WRITERS, writers=writers, tables=tables)


@dataclass(frozen=True, slots=True)
class PacedSettings(IngestSettings):
    """Writers of one table that each commit once in every `every_seconds` seconds, at a random moment."""

    words = (PACED,)
    needs_rows = True
    label_pattern = re.compile(rf"{PACED}-(?P<writers>\d+)-(?P<every_seconds>\d+)")

    writers: int
    every_seconds: int
    tries: int  # per batch, while the client reports that another commit came first

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        sizes = section.sizes[PACED]
        for entry, writers, every in itertools.product(
            section.systems_of(PACED), sizes["writers"], sizes["every_seconds"]
        ):
            yield entry, cls.made(section, PACED, writers=writers, every_seconds=every)

    def series(self, spec: SeriesSpec, section: IngestSection, _chosen: Variant, _config: Config) -> list[SeriesSpec]:
        """Return one series, whose windows last as long as the commits of each writer."""
        return repeated(spec, 1, window_seconds=float(self.every_seconds * section.sizes[PACED]["commits"]))


@dataclass(frozen=True, slots=True)
class StorageSettings(WritersSettings):
    """One writer, whose table's files are in an S3 server with a round trip of `rtt_ms` milliseconds."""

    words = ("s3",)
    label_pattern = re.compile(r"s3-(?P<rtt_ms>\d+)")

    rtt_ms: int

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems as shipped that can keep their files in an S3 server."""
        for entry, rtt_ms in itertools.product(section.as_shipped, section.sizes["rtts"]):
            if has_option(entry, "rtt_ms"):
                settings = cls.made(section, STORAGE, writers=1, tables=ONE, rtt_ms=rtt_ms)
                yield with_options(entry, storage=S3, rtt_ms=rtt_ms), settings


@dataclass(frozen=True, slots=True)
class PruningSettings(IngestSettings):
    """One table of `files` files, each a commit of `rows` rows, and queries, some of which need not read all files."""

    words = ("prune",)
    label_pattern = re.compile(r"prune-(?P<files>\d+)")

    files: int

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems as shipped that report which files they read."""
        for entry, files in itertools.product(section.as_shipped, section.sizes["pruned"]):
            if Capability.PLANS in registry()[entry.like].capabilities:
                yield entry, cls.made(section, PRUNING, files=files)


@dataclass(frozen=True, slots=True)
class EvolutionSettings(IngestSettings):
    """A table with rows to which `columns` columns are added, one after the other, each followed by a commit."""

    words = ("evolve",)
    needs_rows = True
    label_pattern = re.compile(r"evolve-(?P<columns>\d+)")

    columns: int

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        for entry, columns in itertools.product(section.as_shipped, section.sizes["added"]):
            yield entry, cls.made(section, EVOLUTION, columns=columns)

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why a client cannot add a column, or None if it can."""
        return table_class(chosen).refuses_columns()


@dataclass(frozen=True, slots=True)
class AgesSettings(IngestSettings):
    """One table that is made older, and measured whenever it has one of these numbers of commits, of one row each."""

    words = (AGES,)
    needs_rows = True
    needs_writers = False

    ages: str  # numbers of commits, separated by spaces

    @property
    def label(self) -> str:
        return "-".join((AGES, *self.ages.split()))

    @property
    def numbers(self) -> list[int]:
        return [int(age) for age in self.ages.split()]

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        ages = section.sizes[AGES]["ages"]
        for younger, older in itertools.pairwise(ages):
            if older < younger + COMMITS_AT_AGE:
                raise ConfigError(
                    f"{section.place_of_size(AGES, 'ages')}: found {older} after {younger}; allowed: ages in ascending "
                    f"order, {COMMITS_AT_AGE} or more apart, as so many commits are timed at each"
                )
        settings = cls.made(section, AGES, rows=1, uncounted=0, ages=" ".join(map(str, ages)))
        yield from ((entry, settings) for entry in section.systems_of(AGES))

    def series(self, spec: SeriesSpec, section: IngestSection, _chosen: Variant, _config: Config) -> list[SeriesSpec]:
        """Return one series of one run, whose window ends with the last age, or after the time limit."""
        return repeated(spec, 1, window_seconds=float(section.sizes[AGES]["window_seconds"]), runs=1)

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why no other client reads the table here, or None if one does."""
        is_read = table_class(chosen).open_reader is not TableSystem.open_reader
        return None if is_read else f"{chosen.title}: DuckDB does not read its table"


class Gathering:
    """Settings of a front whose buffer is a commit (staged)."""

    __slots__ = ()

    max_rows: int
    max_bytes: int
    max_age_ms: float

    @property
    def has_front(self) -> bool:
        return True

    @property
    def rules(self) -> Policy:
        """The front's policy with its parameters."""
        return GroupCommit(self.max_rows, self.max_bytes, self.max_age_ms)


@dataclass(frozen=True, slots=True)
class GroupSettings(Gathering, IngestSettings):
    """Clients behind a front that commits their requests by a policy; a batch is a request."""

    words = tuple(POLICIES)
    label_pattern = re.compile(rf"(?P<policy>{'|'.join(POLICIES)})-(?P<rows>\d+)x(?P<clients>\d+)")

    policy: str
    clients: int
    writers: int  # table clients of the front, one thread each; a bundled policy has one more
    tries: int  # of the front, per commit, while other commits come first
    max_rows: int
    max_bytes: int
    max_age_ms: float
    window_ms: float
    max_files: int

    @property
    def rules(self) -> Policy:
        chosen = POLICIES[self.policy]
        return chosen(**{field.name: getattr(self, field.name) for field in fields(chosen)})

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        sizes, given = section.sizes[GROUP], section.given[GROUP]
        for entry, shape, policy in itertools.product(section.systems_of(GROUP), sizes["shapes"], sizes["policies"]):
            rows, clients = map(int, shape.split("x"))
            writers = {DIRECT: min(clients, given["writers"]), STAGED: 1, BUNDLED: given["flushers"]}[policy]
            own = {"rows": rows, "clients": clients, "writers": writers, "tries": given["tries"]}
            yield entry, cls.made(section, GROUP, policy=policy, **own)

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why a client cannot commit several files at once, or None if it can or the policy does not need it."""
        return table_class(chosen).refuses_bundles(chosen.options) if self.policy == BUNDLED else None


@dataclass(frozen=True, slots=True)
class TailSettings(Gathering, IngestSettings):
    """One writer, or the clients of a front that gathers (staged); a batch is a request."""

    words = (TAIL,)
    label_pattern = re.compile(rf"{TAIL}-(?P<target>{ONE}|{STAGED})-(?P<percent>\d+)(-(?P<arrivals>{CONSTANT}))?")

    target: str  # ONE or STAGED
    percent: int  # of the closed loop's request rate before the window
    arrivals: str
    closed_seconds: float
    longest_wait_seconds: float  # of a due request: beyond it, the window is overloaded
    clients: int  # connections of the front; 1 without a front
    tries: int
    max_rows: int  # of the front's buffer, as the following; without effect if there is no front
    max_bytes: int
    max_age_ms: float

    @property
    def label(self) -> str:
        return "-".join((TAIL, self.target, str(self.percent), *((CONSTANT,) if self.arrivals == CONSTANT else ())))

    @classmethod
    def _of_label(cls, label: str) -> dict[str, Any]:
        found = super(TailSettings, cls)._of_label(label)
        return {**found, "arrivals": found.get("arrivals") or POISSON}

    @property
    def has_front(self) -> bool:
        return self.target == STAGED

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        sizes, given = section.sizes[TAIL], section.given[TAIL]
        seconds = {"closed_seconds": sizes["closed_seconds"], "longest_wait_seconds": given["longest_wait_seconds"]}
        common = {name: float(value) for name, value in seconds.items()}
        of_target = {
            ONE: {"clients": 1, "tries": section.given["tries"]},
            STAGED: {"clients": given["clients"], "tries": section.given[GROUP]["tries"]},
        }
        for entry, target, percent, arrivals in itertools.product(
            section.systems_of(TAIL), sizes["targets"], sizes["percents"], sizes["arrivals"]
        ):
            own = {"target": target, "percent": percent, "arrivals": arrivals, **of_target[target]}
            yield entry, cls.made(section, TAIL, **common, **own)

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return the series, with the part's own window length if the protocol sets one."""
        seconds = section.sizes[TAIL]["window_seconds"]
        own = spec if seconds is None else replace(spec, window_seconds=float(seconds))
        return IngestSettings.series(self, own, section, chosen, config)


UNDISTURBED: dict[str, type[IngestSettings]] = {
    WRITERS: WritersSettings,
    PACED: PacedSettings,
    GROUP: GroupSettings,
    TAIL: TailSettings,
    STORAGE: StorageSettings,
    PRUNING: PruningSettings,
    EVOLUTION: EvolutionSettings,
    AGES: AgesSettings,
}
