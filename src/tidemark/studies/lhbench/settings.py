"""Section `lhbench` of the configuration, and the settings of the series of each part."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from tidemark.errors import ConfigError
from tidemark.runs.spec import HasSettings, WorkloadSettings
from tidemark.schema import Origin, one_of, system_of
from tidemark.studies.lhbench.data.tpcds import FACTS
from tidemark.systems.registry import SystemEntry, of_kind
from tidemark.systems.spark_sql import SqlEngineTable

SECTION = "lhbench"
SEPARATOR = "+"  # between the names in one setting
LOAD, REFRESH, MERGE, FILES = "load", "refresh", "merge", "files"  # parts
QUERIES = 99  # of TPC-DS
ALL = "all"


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
            found = ", ".join(each.name for each in self.systems)
            raise ConfigError(
                f"{self.place('without')}: found all of {SECTION}.systems ({found}); allowed: to leave one of them at "
                "least"
            )
        return chosen

    @property
    def sizes(self) -> Mapping[str, Any]:
        """All keys of the protocol, by name."""
        sizes: Mapping[str, Any] = self.given["protocols"][self.protocol]
        return sizes

    def place(self, *path: str) -> str:
        """Return the place of a key of the protocol, for messages."""
        return self.origin.place((SECTION, "protocols", self.protocol, *path))

    def queries(self, part: str) -> str:
        """Return the setting `queries` of a part: ascending numbers."""
        given = self.sizes[part]["queries"]
        if given == ALL:
            return SEPARATOR.join(map(str, range(1, QUERIES + 1)))
        return SEPARATOR.join(map(str, sorted(set(given))))


@dataclass(frozen=True, slots=True)
class LhbenchSettings(WorkloadSettings):
    """Settings that identify a series of a part, in addition to system and options; each part has a subclass."""

    part: str
    iterations: int  # runs of each query in one session
    seed: int  # seed for drawing rows

    @property
    @abstractmethod
    def label(self) -> str:
        """Mode as a path component: the part, and the values that distinguish series of the part."""

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

    @property
    def label(self) -> str:
        return f"{self.part}-{scale_word(self.scale)}"

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for scale in sizes["scales"]:
            yield cls(
                part=LOAD,
                iterations=sizes["iterations"],
                seed=section.seed,
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
    def label(self) -> str:
        return f"{self.part}-{scale_word(self.scale)}-{self.refreshes}"

    @property
    def tables(self) -> tuple[str, ...]:
        return names(self.merged)

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for name in sizes["merged"]:
            if name not in FACTS:
                raise ConfigError(f"{section.place(REFRESH, 'merged')}: found '{name}'; allowed: {', '.join(FACTS)}")
        yield cls(
            part=REFRESH,
            iterations=sizes["iterations"],
            seed=section.seed,
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
    def label(self) -> str:
        return f"{self.part}-{self.rows}-{self.files}"

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
                place = section.place(MERGE)
                raise ConfigError(f"{place}: found {updates:,} updates; allowed: at most the rows, {sizes['rows']:,}")
        yield cls(
            part=MERGE,
            iterations=sizes["iterations"],
            seed=section.seed,
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
    def label(self) -> str:
        return f"{self.part}-{self.files}"

    @property
    def size(self) -> float:
        return self.files

    @classmethod
    def cells(cls, section: LhbenchSection, sizes: Mapping[str, Any]) -> Iterator[Self]:
        for files in sorted(sizes["counts"]):
            yield cls(part=FILES, iterations=sizes["iterations"], seed=section.seed, files=files, rows=sizes["rows"])


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
