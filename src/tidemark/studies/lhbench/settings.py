"""Section `lhbench` of the configuration, and the settings of the series of each part."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.config import Config
from tidemark.errors import ConfigError
from tidemark.runs.spec import HasSettings, WorkloadSettings
from tidemark.studies.lhbench.data.tpcds import FACTS
from tidemark.studies.section import Section
from tidemark.systems.spark_sql import SqlEngineTable

SEPARATOR = "+"  # between the names in one setting
LOAD, REFRESH, MERGE, FILES = "load", "refresh", "merge", "files"  # parts
QUERIES = 99  # of TPC-DS
ALL = "all"


class LhbenchSection(Section[dict[str, Any]]):
    """The section, validated by its schema; its sizes by key."""

    __slots__ = ()

    @classmethod
    def read(cls, config: Config) -> Self:
        """Return the section; ConfigError, with the place of the key, for an unknown name."""
        found = cls.of(config, "lhbench", dict)
        for path in ((), *((part,) for part in found.given["parts"])):
            own = found.sizes[path[0]] if path else found.sizes
            for key in ("without", "instead"):
                for name in own.get(key, ()):
                    found.check_name(name, (SqlEngineTable,), *path, key)
        return found

    def part(self, part: str, system: str) -> Mapping[str, Any] | None:
        """Return the sizes of a part for one system, with `repeats`; None if the protocol excludes the system there."""
        own = self.sizes[part]
        if system in own.get("without", ()):
            return None
        return {"repeats": self.sizes["repeats"], **own, **own.get("instead", {}).get(system, {})}

    @property
    def left_out(self) -> Sequence[str]:
        """Systems that the protocol excludes; ConfigError, with the place of the key, if these are all."""
        found: Sequence[str] = self.sizes.get("without", ())
        names = self.given["systems"]
        if set(names) <= set(found):
            raise ConfigError(
                f"{self.place_of_size('without')}: found all of lhbench.systems ({', '.join(names)}); allowed: to "
                "leave one of them at least"
            )
        return found

    def common(self, part: str, sizes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that the series of all parts have."""
        return {"part": part, "iterations": sizes["iterations"], "seed": self.config.seed}

    def queries(self, part: str) -> str:
        """Return the setting `queries` of a part: ascending numbers."""
        given = self.sizes[part]["queries"]
        numbers = range(1, QUERIES + 1) if given == ALL else sorted(set(given))
        return SEPARATOR.join(map(str, numbers))


@dataclass(frozen=True, slots=True)
class LhbenchSettings(WorkloadSettings):
    """Settings that identify a series of a part, in addition to system and options; each part has a subclass."""

    part: str
    iterations: int  # runs of each query in one session
    seed: int  # seed for drawing rows

    @property
    @abstractmethod
    def size(self) -> float:
        """Scale factor, or the rows or files of the synthetic table."""

    @classmethod
    @abstractmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        """Yield the settings of a system's series, from the `sizes` of its part.

        Raise ConfigError, with the place of the key, for an invalid value.
        """

    def _spelt(self, value: Any) -> str:
        return scale_word(value) if isinstance(value, float) else str(value)

    @classmethod
    def _of_label(cls, label: str) -> dict[str, Any]:
        plain = re.sub(r"sf(\d+)p?(\d*)", r"\1.\2", label)  # a scale factor as `scale_word` writes it
        return super(LhbenchSettings, cls)._of_label(plain)


def scale_word(scale: float) -> str:
    """Return a scale factor as a path component: `sf0p01` for 0.01."""
    return f"sf{scale:g}".replace(".", "p")


def names(setting: str) -> tuple[str, ...]:
    """Return the names in one setting."""
    return tuple(setting.split(SEPARATOR)) if setting else ()


@dataclass(frozen=True, slots=True)
class TpcdsSettings(LhbenchSettings):
    """Settings of the parts that load and query tables of TPC-DS; `queries` are numbers."""

    scale: float
    queries: str

    @property
    def size(self) -> float:
        return self.scale

    @property
    def numbers(self) -> tuple[str, ...]:
        return names(self.queries)


@dataclass(frozen=True, slots=True)
class LoadSettings(TpcdsSettings):
    """Part `load`: the tables of TPC-DS are loaded and queried (section 3.2 of the paper).

    With `whole`, tables that no query names are loaded too.
    """

    label_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<part>load)-(?P<scale>.+)")

    whole: bool  # all 24 tables

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for scale in sizes["scales"]:
            yield cls(
                **section.common(LOAD, sizes),
                scale=float(scale),
                queries=section.queries(LOAD),
                whole=sizes["tables"] == ALL,
            )


@dataclass(frozen=True, slots=True)
class RefreshSettings(TpcdsSettings):
    """Part `refresh`: queries, merges of refresh sets, queries again, compaction, and queries again (section 3.3.1)."""

    label_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<part>refresh)-(?P<scale>[^-]+)-(?P<refreshes>\d+)")

    merged: str  # tables to merge into
    refreshes: int
    share: float  # size of a set, as a share of the table's rows
    updates: float  # share of a set that are updates

    @property
    def tables(self) -> tuple[str, ...]:
        return names(self.merged)

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for name in sizes["merged"]:
            if name not in FACTS:
                place = section.place_of_size(REFRESH, "merged")
                raise ConfigError(f"{place}: found '{name}'; allowed: {', '.join(FACTS)}")
        yield cls(
            **section.common(REFRESH, sizes),
            scale=float(sizes["scale"]),
            queries=section.queries(REFRESH),
            merged=SEPARATOR.join(sizes["merged"]),
            refreshes=sizes["refreshes"],
            share=float(sizes["share"]),
            updates=float(sizes["updates"]),
        )


@dataclass(frozen=True, slots=True)
class MergeSettings(LhbenchSettings):
    """Part `merge`: one merge into a synthetic table, from few rows to many (section 3.3.2).

    `updates` are numbers of changed rows (and of as many new ones), with a table for each.
    """

    label_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<part>merge)-(?P<rows>\d+)-(?P<files>\d+)")

    rows: int
    files: int
    updates: str

    @property
    def size(self) -> float:
        return self.rows

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(map(int, names(self.updates)))

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for updates in sizes["updates"]:
            if updates > sizes["rows"]:
                place = section.place_of_size(MERGE)
                raise ConfigError(f"{place}: found {updates:,} updates; allowed: at most the rows, {sizes['rows']:,}")
        yield cls(
            **section.common(MERGE, sizes),
            rows=sizes["rows"],
            files=sizes["files"],
            updates=SEPARATOR.join(map(str, sorted(sizes["updates"]))),
        )


@dataclass(frozen=True, slots=True)
class FilesSettings(LhbenchSettings):
    """Part `files`: the cost of a query before it reads data, for a table with many files (section 3.4).

    Each number of files has a separate session, so that what an engine caches of one table cannot help the next.
    """

    label_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<part>files)-(?P<files>\d+)")

    files: int
    rows: int  # per file

    @property
    def size(self) -> float:
        return self.files

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for files in sorted(sizes["counts"]):
            yield cls(**section.common(FILES, sizes), files=files, rows=sizes["rows"])


PARTS: dict[str, type[LhbenchSettings]] = {
    LOAD: LoadSettings,
    REFRESH: RefreshSettings,
    MERGE: MergeSettings,
    FILES: FilesSettings,
}
MERGING = (REFRESH, MERGE)  # parts that need tables whose rows can be changed


def settings_of(series: HasSettings) -> LhbenchSettings:
    """Return the settings of a planned or measured series, as an instance of its part's class."""
    return PARTS[series.mode.partition("-")[0]].of(series)
