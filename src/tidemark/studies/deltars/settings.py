"""Section `deltars` of the configuration, and the settings of its series."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tidemark.errors import ConfigError
from tidemark.runs.spec import WorkloadSettings
from tidemark.schema import Origin, one_of, system_of
from tidemark.settings import decoded
from tidemark.studies.deltars.config import Protocol
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.registry import SystemEntry, of_kind

SECTION = "deltars"
DATA = re.compile(r"(?P<table>supplier|lineitem)_sf(?P<scale>0\.\d*[1-9]|[1-9]\d*)")


@dataclass(frozen=True, slots=True)
class DeltarsSettings(WorkloadSettings):
    """Settings that identify a series, in addition to the system and its options."""

    data: str  # table that is written and read, such as supplier_sf10
    cores: int  # processors of the client
    repetitions: int
    timeout_seconds: float  # per write or read
    checked_rows: int  # larger tables are compared by value only in the first and last repetition
    label_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?P<data>.+)-(?P<cores>\d+)")

    @property
    def label(self) -> str:
        """Mode as a path component."""
        return f"{self.data}-{self.cores}"

    @property
    def cell(self) -> tuple[str, int]:
        """Table and processors."""
        return self.data, self.cores


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True)
class DeltarsSection:
    """The section, parsed, with the sizes of the protocol in force."""

    sizes: Protocol
    systems: tuple[SystemEntry, ...]
    given: Mapping[str, Any]

    @classmethod
    def parse(cls, given: Mapping[str, Any], protocol: str, origin: Origin) -> DeltarsSection:
        """Return the parsed section; ConfigError, with the place of the key, for an unknown name."""
        one_of(protocol, given["protocols"], ("protocol",), origin)
        sizes = decoded(given["protocols"][protocol], Protocol)
        named = [("tables", name) for name in sizes.tables] + [("slow", name) for name in sizes.slow]
        for key, name in named:
            if DATA.fullmatch(name) is None:
                place = origin.place((SECTION, "protocols", protocol, key, name))
                raise ConfigError(
                    f"{place}: found the table '{name}'; allowed: supplier_sf and lineitem_sf with a scale above 0, "
                    "such as supplier_sf10"
                )
        systems = tuple(SystemEntry.parse(name, entry) for name, entry in given["systems"].items())
        otherwise = (SECTION, "protocols", protocol, "instead")
        for name in sizes.instead:
            system_of(name, SECTION, given["systems"], of_kind(BulkTable), otherwise, origin)
        return cls(sizes, systems, given)

    def cells(self, name: str, is_slow: bool) -> Iterator[DeltarsSettings]:
        """Yield the settings of the series of the system `name`, for which this machine has enough processors."""
        sizes = self.sizes
        for data, repetitions in (sizes.slow if is_slow else sizes.tables).items():
            for cores in sizes.instead.get(name, sizes).cores:
                if cores <= processors():
                    yield DeltarsSettings(
                        data=data,
                        cores=cores,
                        repetitions=repetitions,
                        timeout_seconds=float(self.given["timeout_seconds"]),
                        checked_rows=self.given["checked_rows"],
                    )

    def beyond(self) -> list[int]:
        """Return the configured numbers of processors that this machine does not have."""
        return [cores for cores in self.sizes.cores if cores > processors()]
