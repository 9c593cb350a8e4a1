"""Part `merge`: one merge into a synthetic table, from few rows to many (section 3.3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.errors import ConfigError
from tidemark.studies.lhbench.settings import SECTION, SEPARATOR, LhbenchSection, LhbenchSettings, names

MERGE = "merge"


@dataclass(frozen=True, slots=True)
class MergeSettings(LhbenchSettings):
    """Settings of the part `merge`; `updates`: numbers of changed rows (and of as many new ones), one table each."""

    word: ClassVar[str] = MERGE

    rows: int
    files: int
    updates: str

    @property
    def label(self) -> str:
        return f"{self.word}-{self.rows}-{self.files}"

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(int, names(self.updates)))

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for updates in sizes["updates"]:
            if updates > sizes["rows"]:
                place = section.origin.place((SECTION, "protocols", section.protocol, MERGE))
                raise ConfigError(f"{place}: found {updates:,} updates; allowed: at most the rows, {sizes['rows']:,}")
        yield cls(
            part=MERGE,
            iterations=sizes["iterations"],
            seed=section.seed,
            rows=sizes["rows"],
            files=sizes["files"],
            updates=SEPARATOR.join(map(str, sorted(sizes["updates"]))),
        )


def shape_of(mode: str) -> tuple[int, int]:
    """Return the rows and files of a series, from its mode."""
    rows, files = mode.split("-")[1:3]
    return int(rows), int(files)
