"""Part `load`: the tables of TPC-DS are loaded and queried (section 3.2 of the paper)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.errors import ConfigError
from tidemark.studies.lhbench.settings import SECTION, SEPARATOR, LhbenchSection, LhbenchSettings, names, scale_word

LOAD = "load"
QUERIES = 99
ALL = "all"


def asked(section: LhbenchSection, part: str) -> tuple[str, ...]:
    """Return the query numbers of a part in ascending order; ConfigError for a number that does not exist."""
    given = section.sizes[part]["queries"]
    if given == ALL:
        return tuple(map(str, range(1, QUERIES + 1)))
    wrong = [each for each in given if not 1 <= each <= QUERIES]
    if wrong:
        place = section.origin.place((SECTION, "protocols", section.protocol, part, "queries"))
        raise ConfigError(f"{place}: found {wrong[0]}; allowed: numbers from 1 to {QUERIES}, or {ALL}")
    return tuple(map(str, sorted(set(given))))


@dataclass(frozen=True, slots=True)
class LoadSettings(LhbenchSettings):
    """Settings of the part `load`; `queries` are numbers. With `whole`, tables that no query names are loaded too."""

    word: ClassVar[str] = LOAD

    scale: float
    queries: str
    whole: bool  # all 24 tables

    @property
    def label(self) -> str:
        return f"{self.word}-{scale_word(self.scale)}"

    @property
    def numbers(self) -> tuple[str, ...]:
        return names(self.queries)

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for scale in sizes["scales"]:
            yield cls(
                part=LOAD,
                iterations=sizes["iterations"],
                seed=section.seed,
                scale=float(scale),
                queries=SEPARATOR.join(asked(section, LOAD)),
                whole=sizes["tables"] == ALL,
            )
