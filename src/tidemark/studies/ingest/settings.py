"""The section `ingest` of the configuration, and the settings common to the series of all parts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec, WorkloadSettings
from tidemark.schema import Origin, one_of
from tidemark.systems.base import Variant
from tidemark.systems.registry import SystemEntry, of_kind, registry
from tidemark.systems.tables import TableSystem

SECTION = "ingest"
RETRIES = frozenset({"commit_retries", "retry_wait_ms"})  # options of a client that retries a refused commit


@dataclass(frozen=True, slots=True)
class IngestSection:
    """The section, already checked against its schema."""

    given: Mapping[str, Any]  # all keys by name
    protocol: str
    origin: Origin
    systems: tuple[SystemEntry, ...]

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin) -> IngestSection:
        """Return the section; raise ConfigError, with the place of the key, if the protocol is unknown."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        systems = tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items())
        return cls(given, protocol, origin, systems)

    @property
    def sizes(self) -> Mapping[str, Any]:
        """The sizes of the protocol: all of its keys by name."""
        sizes: Mapping[str, Any] = self.given["protocols"][self.protocol]
        return sizes

    @property
    def as_shipped(self) -> list[SystemEntry]:
        """The systems that are not variants of others."""
        return [each for each in self.systems if each.name == each.like and each.like in registry()]

    @property
    def with_their_retries(self) -> list[SystemEntry]:
        """The systems whose clients retry a refused commit as shipped: all but variants that set only retries."""
        return [each for each in self.systems if not only_retries(each)]

    @property
    def known(self) -> dict[str, None]:
        """Names that a part may select systems by, sorted; a known system that the section lacks selects nothing."""
        return dict.fromkeys(sorted({entry.name for entry in self.systems} | set(of_kind(TableSystem))))


def only_retries(entry: SystemEntry) -> bool:
    """Return True if `entry` is a variant that sets only how its client retries a refused commit."""
    named = {name for name, value in dict(entry.options).items() if value is not None}
    return entry.name != entry.like and bool(named) and named <= RETRIES


@dataclass(frozen=True, slots=True)
class IngestSettings(WorkloadSettings):
    """Settings that decide how a series writes, in addition to its system and options; each part has a subclass.

    `words` are the first words of the modes of its series.
    """

    words: ClassVar[tuple[str, ...]]

    part: str
    rows: int  # per batch
    uncounted: int  # warm-up batches of each writer before a hot window

    @property
    @abstractmethod
    def label(self) -> str:
        """The mode as a path component: one of `words`, followed by what distinguishes the series of the part."""

    @property
    def has_front(self) -> bool:
        """True if clients send requests to a front, which writes to the table."""
        return False

    @classmethod
    @abstractmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems of the part, with their options, and the settings of their series.

        Raise ConfigError, with the place of the key, for numbers or names of the part that are not valid.
        """

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return `spec` once for each repeat of the protocol; a part returns [] if the series could show nothing."""
        del chosen, config
        return [replace(spec, repeat=number) for number in range(1, section.sizes["repeats"] + 1)]

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why the part cannot measure a system, in words for tables, or None if it can."""
        del chosen
        return None
