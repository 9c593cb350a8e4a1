"""Section `lhbench` of the configuration, and the settings that series of all parts have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.errors import ConfigError
from tidemark.runs.spec import WorkloadSettings
from tidemark.schema import Origin, one_of, system_of
from tidemark.systems.registry import SystemEntry, of_kind
from tidemark.systems.spark_sql.base import SqlEngineTable

SECTION = "lhbench"
SEPARATOR = "+"  # between the names in one setting


@dataclass(frozen=True, slots=True)
class LhbenchSection:
    """The section, validated by its schema."""

    given: Mapping[str, Any]  # all keys of the section
    protocol: str
    origin: Origin
    systems: tuple[SystemEntry, ...]
    seed: int

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin, seed: int) -> LhbenchSection:
        """Return the parsed section; ConfigError, with the place of the key, for an unknown name."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        systems = tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items())
        sizes = given["protocols"][protocol]
        for path, own in [((), sizes), *(((part,), sizes[part]) for part in given["parts"])]:
            for key in ("without", "instead"):
                for name in own.get(key, ()):
                    place = (SECTION, "protocols", protocol, *path, key)
                    system_of(name, SECTION, given["systems"], of_kind(SqlEngineTable), place, origin)
        return cls(given, protocol, origin, systems, seed)

    def part(self, part: str, system: str) -> Mapping[str, Any] | None:
        """Return the sizes of a part for one system, with `repeats`; None if the protocol excludes the system there."""
        own = self.sizes[part]
        if system in own.get("without", ()):
            return None
        return {"repeats": self.sizes["repeats"], **own, **own.get("instead", {}).get(system, {})}

    @property
    def measured(self) -> tuple[SystemEntry, ...]:
        """Systems that the protocol measures; ConfigError, with the place of the key, if it excludes all of them."""
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
        """All keys of the protocol, by name."""
        sizes: Mapping[str, Any] = self.given["protocols"][self.protocol]
        return sizes


@dataclass(frozen=True, slots=True)
class LhbenchSettings(WorkloadSettings):
    """Settings that identify a series of a part, in addition to system and options; each part has a subclass.

    `word` is the first word of the modes of its series.
    """

    word: ClassVar[str]

    part: str
    iterations: int  # runs of each query in one session
    seed: int  # seed for drawing rows

    @property
    @abstractmethod
    def label(self) -> str:
        """Mode as a path component: `word`, and the values that distinguish series of the part."""

    @classmethod
    @abstractmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        """Yield the settings of a system's series, from the `sizes` of its part.

        Raise ConfigError, with the place of the key, for an invalid value.
        """


def scale_word(scale: float) -> str:
    """Return a scale factor as a path component: `sf0p01` for 0.01."""
    return f"sf{scale:g}".replace(".", "p")


def scale_of(word: str) -> float:
    """Return the scale factor that `scale_word` encoded as `word`."""
    return float(word.removeprefix("sf").replace("p", "."))


def names(setting: str) -> tuple[str, ...]:
    """Return the names in one setting."""
    return tuple(setting.split(SEPARATOR)) if setting else ()
