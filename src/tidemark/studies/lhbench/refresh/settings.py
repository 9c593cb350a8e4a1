"""Part `refresh`: queries, merges of refresh sets, queries again, compaction, and queries again (section 3.3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.errors import ConfigError
from tidemark.studies.lhbench.data.tables import FACTS
from tidemark.studies.lhbench.load.settings import asked
from tidemark.studies.lhbench.settings import SECTION, SEPARATOR, LhbenchSection, LhbenchSettings, names, scale_word

REFRESH = "refresh"


@dataclass(frozen=True, slots=True)
class RefreshSettings(LhbenchSettings):
    word: ClassVar[str] = REFRESH

    scale: float
    queries: str
    merged: str  # tables to merge into
    refreshes: int
    share: float  # size of a set, as a share of the table's rows
    updates: float  # share of a set that are updates

    @property
    def label(self) -> str:
        return f"{self.word}-{scale_word(self.scale)}-{self.refreshes}"

    @property
    def numbers(self) -> tuple[str, ...]:
        return names(self.queries)

    @property
    def tables(self) -> tuple[str, ...]:
        return names(self.merged)

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for name in sizes["merged"]:
            if name not in FACTS:
                place = section.origin.place((SECTION, "protocols", section.protocol, REFRESH, "merged"))
                raise ConfigError(f"{place}: found '{name}'; allowed: {', '.join(FACTS)}")
        yield cls(
            part=REFRESH,
            iterations=sizes["iterations"],
            seed=section.seed,
            scale=float(sizes["scale"]),
            queries=SEPARATOR.join(asked(section, REFRESH)),
            merged=SEPARATOR.join(sizes["merged"]),
            refreshes=sizes["refreshes"],
            share=float(sizes["share"]),
            updates=float(sizes["updates"]),
        )


def shape_of(mode: str) -> int:
    """Return the number of refreshes of a series, from its mode."""
    return int(mode.split("-")[2])
