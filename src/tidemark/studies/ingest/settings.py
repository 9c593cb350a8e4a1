"""The section `ingest` of the configuration, and what the settings of a series of any of its parts have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec, WorkloadSettings
from tidemark.schema import Origin, one_of
from tidemark.systems import of_kind, registry
from tidemark.systems.base import Variant
from tidemark.systems.tables import TableSystem
from tidemark.systems.variants import SystemEntry

SECTION = "ingest"
RETRIES = frozenset({"commit_retries", "retry_wait_ms"})  # options of a client that tries a refused commit again


@dataclass(frozen=True, slots=True)
class IngestSection:
    """The section, checked by its schema."""

    given: Mapping[str, Any]  # all of it by name
    protocol: str
    origin: Origin
    systems: tuple[SystemEntry, ...]

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin) -> IngestSection:
        """ConfigError, with the place of the key, for names that stand for nothing."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        systems = tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items())
        return cls(given, protocol, origin, systems)

    @property
    def sizes(self) -> Mapping[str, Any]:
        """The protocol: all of its keys by name."""
        sizes: Mapping[str, Any] = self.given["protocols"][self.protocol]
        return sizes

    @property
    def as_shipped(self) -> list[SystemEntry]:
        """The systems that are no variants of others."""
        return [each for each in self.systems if each.name == each.like and each.like in registry()]

    @property
    def with_their_retries(self) -> list[SystemEntry]:
        """The systems whose clients try a refused commit again as they are shipped."""
        return [each for each in self.systems if not only_retries(each)]

    @property
    def known(self) -> dict[str, None]:
        """The names that a part may choose systems by: of those of the section, as far as they are there."""
        return dict.fromkeys(sorted({entry.name for entry in self.systems} | set(of_kind(TableSystem))))


def only_retries(entry: SystemEntry) -> bool:
    """Whether it is a variant that sets nothing but how often its client tries a refused commit again."""
    named = {name for name, value in dict(entry.options).items() if value is not None}
    return entry.name != entry.like and bool(named) and named <= RETRIES


@dataclass(frozen=True, slots=True)
class IngestSettings(WorkloadSettings):
    """What decides how a series of a part writes, beside the system and its options; each part has a class below this.

    `words` are the first words of the modes of its series.
    """

    words: ClassVar[tuple[str, ...]]

    part: str
    rows: int  # of a batch
    uncounted: int  # batches of each writer before a hot window

    @property
    @abstractmethod
    def label(self) -> str:
        """The mode as a part of a path: one of `words`, and what a series of the part differs by."""

    @property
    def has_front(self) -> bool:
        """Whether clients ask a front, which writes to the table."""
        return False

    @classmethod
    @abstractmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """The systems of the part, with their options, and what their series are set to.

        ConfigError, with the place of the key, for numbers and names of the part that fit nothing.
        """

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """`spec`, which is all but measured so often as the protocol says; none where it would tell nothing."""
        del chosen, config
        return [replace(spec, repeat=number) for number in range(1, section.sizes["repeats"] + 1)]

    def refused_by(self, chosen: Variant) -> str | None:
        """Why the part cannot be had of a system, in words that tables print; None where it can."""
        del chosen
        return None
