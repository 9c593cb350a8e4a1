"""The section `lhbench` of the configuration, and what the settings of a series of any of its parts have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.errors import ConfigError
from tidemark.runs.spec import WorkloadSettings
from tidemark.schema import Origin, one_of, system_of
from tidemark.systems import of_kind
from tidemark.systems.lakehouses.kind import Lakehouse
from tidemark.systems.variants import SystemEntry

SECTION = "lhbench"
SEPARATOR = "+"  # of names in one setting


@dataclass(frozen=True, slots=True)
class LhbenchSection:
    """The section, checked by its schema."""

    given: Mapping[str, Any]  # all of it by name
    protocol: str
    origin: Origin
    systems: tuple[SystemEntry, ...]
    seed: int

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin, seed: int) -> LhbenchSection:
        """ConfigError, with the place of the key, for names that stand for nothing."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        systems = tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items())
        sizes = given["protocols"][protocol]
        for path, own in [((), sizes), *(((part,), sizes[part]) for part in given["parts"])]:
            for key in ("without", "instead"):
                for name in own.get(key, ()):
                    place = (SECTION, "protocols", protocol, *path, key)
                    system_of(name, SECTION, given["systems"], of_kind(Lakehouse), place, origin)
        return cls(given, protocol, origin, systems, seed)

    def part(self, part: str, system: str) -> Mapping[str, Any] | None:
        """The sizes of a part for one system, with `repeats`; None where the protocol leaves it out there."""
        own = self.sizes[part]
        if system in own.get("without", ()):
            return None
        return {"repeats": self.sizes["repeats"], **own, **own.get("instead", {}).get(system, {})}

    @property
    def measured(self) -> tuple[SystemEntry, ...]:
        """The systems that the protocol measures; ConfigError, with the place of the key, where it leaves out all."""
        left_out = self.sizes.get("without", ())
        chosen = tuple(each for each in self.systems if each.name not in left_out)
        if not chosen:
            place = self.origin.place((SECTION, "protocols", self.protocol, "without"))
            found = ", ".join(each.name for each in self.systems)
            raise ConfigError(
                f"{place}: found all of {SECTION}.systems ({found}); allowed: to leave one of them at least"
            )
        return chosen

    @property
    def sizes(self) -> Mapping[str, Any]:
        """The protocol: all of its keys by name."""
        sizes: Mapping[str, Any] = self.given["protocols"][self.protocol]
        return sizes


@dataclass(frozen=True, slots=True)
class LhbenchSettings(WorkloadSettings):
    """What decides a series of a part, beside the system and its options; each part has a class below this.

    `word` is the first of the modes of its series.
    """

    word: ClassVar[str]

    part: str
    iterations: int  # of each query, in one session
    seed: int  # by which rows are drawn

    @property
    @abstractmethod
    def label(self) -> str:
        """The mode as a part of a path: `word`, and what a series of the part differs by."""

    @classmethod
    @abstractmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        """What the series of a system are set to by the `sizes` of its part.

        ConfigError, with the place of the key, for what fits nothing.
        """


def scale_word(scale: float) -> str:
    """A scale factor as a part of a path: 0.01 is `sf0p01`."""
    return f"sf{scale:g}".replace(".", "p")


def scale_of(word: str) -> float:
    """And back."""
    return float(word.removeprefix("sf").replace("p", "."))


def names(setting: str) -> tuple[str, ...]:
    """The names of one setting."""
    return tuple(setting.split(SEPARATOR)) if setting else ()
