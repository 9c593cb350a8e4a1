"""Section of a study in the configuration: the sizes of the protocol in force, and the systems to measure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.schema import one_of, system_of
from tidemark.services.polaris import Polaris
from tidemark.settings import decoded
from tidemark.systems.base import System, Variant
from tidemark.systems.registry import SystemEntry, of_kind, variant, with_defaults


@dataclass(frozen=True, slots=True)
class Section[Sizes]:
    """Section of the study `name`: all of its keys as `given`, and the `sizes` of the protocol in force."""

    config: Config
    name: str
    given: Mapping[str, Any]
    sizes: Sizes

    @classmethod
    def of(cls, config: Config, name: str, sizes: type[Sizes]) -> Self:
        """Return the section of a study. Raises ConfigError, with the place of the key, for an unknown protocol."""
        given = config.sections[name]
        one_of(config.protocol, given["protocols"], ("protocol",), config.origin)
        return cls(config, name, given, decoded(given["protocols"][config.protocol], sizes))

    def place(self, *path: str) -> str:
        """Return the place of a key of the section, for messages."""
        return self.config.origin.place((self.name, *path))

    def place_of_size(self, *path: str) -> str:
        """Return the place of a key of the protocol in force, for messages."""
        return self.place("protocols", self.config.protocol, *path)

    def check_name(self, system: str, kinds: tuple[type[System], ...], *path: str) -> None:
        """Raise ConfigError for the name of a system, at a key of the protocol, that no system of `kinds` has."""
        place, known = (self.name, "protocols", self.config.protocol, *path), [*chain(*map(of_kind, kinds))]
        system_of(system, self.name, self.given["systems"], known, place, self.config.origin)

    def systems(self, kind: type[System], without: Collection[str] = ()) -> Iterator[tuple[SystemEntry, Variant]]:
        """Yield the systems, each with all of its options. Raises ConfigError for one that cannot be measured."""
        place = (self.name, "systems")
        for name, options in self.given["systems"].items():
            if name not in without:
                given = SystemEntry.parse(name, options)
                variant(given, self.config.origin, place, kind)  # checked before options follow settings of the section
                entry = with_defaults(given, self.given)
                yield entry, self.with_polaris(variant(entry, self.config.origin, place, kind))

    def with_polaris(self, chosen: Variant) -> Variant:
        """Return `chosen`; raise ConfigError if it needs a Polaris that can be neither started nor reached."""
        missing = self.config.services.why_no_polaris()
        if missing and Polaris in chosen.needs:
            raise ConfigError(f"{self.place('systems', chosen.name)}: found 'polaris', but {missing}")
        return chosen
