"""The section `deltars` of the configuration, and what of it a series is set to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.errors import ConfigError
from tidemark.runs.spec import SeriesSpec, WorkloadSettings
from tidemark.schema import Origin, one_of, system_of
from tidemark.systems import of_kind
from tidemark.systems.variants import SystemEntry
from tidemark.systems.wholes.kind import WholeSystem

SECTION = "deltars"
DATA = re.compile(r"(?P<table>supplier|lineitem)_sf(?P<scale>0\.\d*[1-9]|[1-9]\d*)")


@dataclass(frozen=True, slots=True)
class DeltarsSettings(WorkloadSettings):
    """What decides a series, beside the system and its options."""

    data: str  # the table that is written and read: supplier_sf10
    cores: int  # processors of the client
    repetitions: int
    timeout_seconds: float  # of one write, or one read
    checked_rows: int  # of larger tables all values are compared in the first and last repetition alone

    @property
    def label(self) -> str:
        """The mode as a part of a path."""
        return f"{self.data}-{self.cores}"


def shape_of(mode: str) -> tuple[str, int]:
    """Table and processors of a series, by its mode."""
    data, _, cores = mode.rpartition("-")
    return data, int(cores)


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class DeltarsSection:
    """The section, parsed: tables with how often each is written and read, and the clients' processors.

    `slow`: the same for systems whose writes take an engine's time.
    """

    tables: Mapping[str, int]
    slow: Mapping[str, int]
    cores: tuple[int, ...]
    instead: Mapping[str, Mapping[str, Any]]  # by the system's name: what is otherwise for it
    repeats: int
    systems: tuple[SystemEntry, ...]
    given: Mapping[str, Any]

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin) -> DeltarsSection:
        """ConfigError, with the place of the key, for names that stand for nothing."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        sizes = given["protocols"][protocol]
        named = [("tables", name) for name in sizes["tables"]] + [("slow", name) for name in sizes["slow"]]
        for key, name in named:
            if DATA.fullmatch(name) is None:
                place = origin.place((SECTION, "protocols", protocol, key, name))
                raise ConfigError(
                    f"{place}: found the table '{name}'; allowed: supplier_sf and lineitem_sf with a scale above 0, "
                    "such as supplier_sf10"
                )
        systems = tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items())
        otherwise = (SECTION, "protocols", protocol, "instead")
        for name in sizes["instead"]:
            system_of(name, SECTION, given["systems"], of_kind(WholeSystem), otherwise, origin)
        return cls(
            sizes["tables"], sizes["slow"], tuple(sizes["cores"]), sizes["instead"], sizes["repeats"], systems, given
        )

    def cells(self, name: str, is_slow: bool) -> Iterator[DeltarsSettings]:
        """What the series of the system `name` are set to, as far as this machine has the processors."""
        for data, repetitions in (self.slow if is_slow else self.tables).items():
            for cores in self.instead.get(name, {}).get("cores", self.cores):
                if cores <= processors():
                    yield DeltarsSettings(
                        data=data,
                        cores=cores,
                        repetitions=repetitions,
                        timeout_seconds=float(self.given["timeout_seconds"]),
                        checked_rows=self.given["checked_rows"],
                    )

    def beyond(self) -> list[int]:
        """The numbers of processors that were asked for and are not here."""
        return [cores for cores in self.cores if cores > processors()]


def settings_of(spec: SeriesSpec) -> DeltarsSettings:
    return DeltarsSettings.of(spec)
