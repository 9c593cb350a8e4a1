"""The section `ingest` of the configuration, and what of it a series is set to."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from tidemark.errors import ConfigError
from tidemark.ingest.policies import BUNDLED, DIRECT, POLICIES, STAGED, Policy
from tidemark.runs.spec import SeriesSpec, WorkloadSettings
from tidemark.schema import Origin, one_of
from tidemark.systems.variants import SystemEntry

SECTION = "ingest"
# Parts of the study, each with settings, cells, tables and figures of its own.
WRITERS = "writers"
FAULTS = "faults"  # writers and servers are killed
ONE, OWN = "one", "own"  # all write one table, or each a table of its own
GROUP = "group"  # clients ask a front, which commits their requests
PARTS = {ONE: WRITERS, OWN: WRITERS, FAULTS: FAULTS, **dict.fromkeys(POLICIES, GROUP)}  # by the first word of a mode
FAULT_WRITERS = 2  # of one table, while writers and servers are killed
KILL_SECONDS = 5.0  # of a window, for each kill


@dataclass(frozen=True, slots=True)
class IngestSettings(WorkloadSettings):
    """What decides how a series of any part writes, beside the system and its options."""

    part: str
    rows: int  # of a batch
    uncounted: int  # batches of each writer before a hot window

    @property
    @abstractmethod
    def label(self) -> str:
        """The mode as a part of a path."""


@dataclass(frozen=True, slots=True)
class WritersSettings(IngestSettings):
    """Many writers, each a process of its own; a batch is a commit."""

    writers: int
    tables: str  # ONE or OWN
    tries: int  # at a batch, where the client reports that another commit came first

    @property
    def label(self) -> str:
        return f"{self.tables}-{self.writers}"


@dataclass(frozen=True, slots=True)
class FaultSettings(IngestSettings):
    """Writers of one table; they, and the servers, are killed; a batch is a commit."""

    writers: int
    tries: int  # as WritersSettings
    kills: int  # of a writer, and of each server
    watch_seconds: float  # the longest wait until the kernel has written a commit's files to the disk

    @property
    def label(self) -> str:
        """The mode as a part of a path."""
        return f"{FAULTS}-{self.writers}"


@dataclass(frozen=True, slots=True)
class GroupSettings(IngestSettings):
    """Clients behind a front, which commits their requests by a policy; a batch is a request."""

    policy: str
    clients: int
    writers: int  # clients of the table that the front has, each in a thread; a bundled policy has one more
    tries: int  # of the front, at a commit that others overtake
    max_rows: int
    max_bytes: int
    max_age_ms: float
    window_ms: float
    max_files: int

    @property
    def label(self) -> str:
        return f"{self.policy}-{self.rows}x{self.clients}"

    @property
    def rules(self) -> Policy:
        """The policy with its numbers."""
        chosen = POLICIES[self.policy]
        return chosen(**{field.name: getattr(self, field.name) for field in fields(chosen)})


def settings_of(spec: SeriesSpec) -> IngestSettings:
    """The settings of a series, of the class of its part."""
    kinds: dict[str, type[IngestSettings]] = {
        WRITERS: WritersSettings,
        FAULTS: FaultSettings,
        GROUP: GroupSettings,
    }
    return kinds[dict(spec.settings)["part"]].of(spec)


def part_of(mode: str) -> str:
    """The part that a series belongs to, by its mode."""
    return PARTS[mode.partition("-")[0]]


def mode_of(mode: str) -> tuple[str, int]:
    """ONE or OWN, and the number of writers, of a series of the part `writers` by its mode."""
    tables, _, writers = mode.partition("-")
    return tables, int(writers)


def shape_of(mode: str) -> tuple[str, int, int]:
    """The policy, rows a request and clients of a series of the part `group` by its mode."""
    policy, _, shape = mode.partition("-")
    rows, _, clients = shape.partition("x")
    return policy, int(rows), int(clients)


@dataclass(frozen=True, slots=True)
class Group:
    """The part `group` of a protocol; the product of the three."""

    systems: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()  # rows a request x clients
    policies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Protocol:
    """A named set of sizes."""

    writers: tuple[int, ...]
    own: tuple[int, ...]
    runs: int
    window_seconds: float
    repeats: int
    kills: int
    watch_seconds: float
    group: Group


@dataclass(frozen=True, slots=True)
class IngestSection:
    """The section, parsed."""

    protocol: Protocol
    systems: tuple[SystemEntry, ...]
    given: Mapping[str, Any]  # all of it by name

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin) -> IngestSection:
        """ConfigError, with the place of the key, for names that stand for nothing and numbers that fit nothing."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        sizes = given["protocols"][protocol]
        alone = sorted(set(sizes["own"]) - set(sizes["writers"]))
        if alone:
            raise ConfigError(
                f"{origin.place((SECTION, 'protocols', protocol, 'own'))}: found {alone[0]}; allowed: numbers that "
                f"'writers' has as well ({', '.join(map(str, sizes['writers']))}): a table each is the control of one "
                "table for all"
            )
        return cls(
            protocol=Protocol(
                **{
                    **sizes,
                    "writers": tuple(sizes["writers"]),
                    "own": tuple(sizes["own"]),
                    "group": Group(**{name: tuple(several) for name, several in sizes["group"].items()}),
                }
            ),
            systems=tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items()),
            given=given,
        )

    def cells(self, system: str) -> Iterator[IngestSettings]:
        """What the series of a system are set to."""
        yield from self._writers()
        yield from self._faults()
        if system in self.protocol.group.systems:
            yield from self._group()

    def _group(self) -> Iterator[GroupSettings]:
        group, given = self.protocol.group, self.given["group"]
        for shape, policy in itertools.product(group.shapes, group.policies):
            _, rows, clients = shape_of(f"{policy}-{shape}")
            several = {DIRECT: min(clients, given["writers"]), STAGED: 1, BUNDLED: given["flushers"]}
            yield GroupSettings(
                part=GROUP,
                rows=rows,
                uncounted=self.given["uncounted"],
                policy=policy,
                clients=clients,
                writers=several[policy],
                tries=given["tries"],
                max_rows=given["max_rows"],
                max_bytes=given["max_bytes"],
                max_age_ms=float(given["max_age_ms"]),
                window_ms=float(given["window_ms"]),
                max_files=given["max_files"],
            )

    def _writers(self) -> Iterator[WritersSettings]:
        sizes = self.protocol
        for tables, writers in itertools.chain(
            ((ONE, count) for count in sizes.writers), ((OWN, count) for count in sizes.own)
        ):
            yield WritersSettings(
                part=WRITERS,
                rows=self.given["rows"],
                uncounted=self.given["uncounted"],
                writers=writers,
                tables=tables,
                tries=self.given["tries"],
            )

    def _faults(self) -> Iterator[FaultSettings]:
        """What the series with kills is set to, where there is one."""
        if self.protocol.kills:
            yield FaultSettings(
                part=FAULTS,
                rows=self.given["rows"],
                uncounted=0,
                writers=FAULT_WRITERS,
                tries=self.given["tries"],
                kills=self.protocol.kills,
                watch_seconds=float(self.protocol.watch_seconds),
            )
