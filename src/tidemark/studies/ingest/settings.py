"""The section `ingest` of the configuration, and what of it a series is set to."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.errors import ConfigError
from tidemark.runs.spec import WorkloadSettings
from tidemark.schema import Origin, one_of
from tidemark.systems.variants import SystemEntry

SECTION = "ingest"
ONE, OWN = "one", "own"  # all write one table, or each a table of its own


@dataclass(frozen=True, slots=True)
class IngestSettings(WorkloadSettings):
    """What decides how a series writes, beside the system and its options."""

    writers: int
    tables: str  # ONE or OWN
    rows: int  # of a batch, which is a commit
    tries: int  # at a batch, where the client reports that another commit came first
    uncounted: int  # batches of each writer before a hot window

    @property
    def label(self) -> str:
        """The mode as a part of a path."""
        return f"{self.tables}-{self.writers}"


def mode_of(mode: str) -> tuple[str, int]:
    """ONE or OWN, and the number of writers, of a series by its mode."""
    tables, _, writers = mode.partition("-")
    return tables, int(writers)


@dataclass(frozen=True, slots=True)
class Protocol:
    """A named set of sizes."""

    writers: tuple[int, ...]
    own: tuple[int, ...]
    runs: int
    window_seconds: float
    repeats: int


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
            protocol=Protocol(**{**sizes, "writers": tuple(sizes["writers"]), "own": tuple(sizes["own"])}),
            systems=tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items()),
            given=given,
        )

    def cells(self) -> Iterator[IngestSettings]:
        """What the series of each system are set to."""
        sizes = self.protocol
        for tables, writers in itertools.chain(
            ((ONE, count) for count in sizes.writers), ((OWN, count) for count in sizes.own)
        ):
            yield IngestSettings(writers, tables, self.given["rows"], self.given["tries"], self.given["uncounted"])
