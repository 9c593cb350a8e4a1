"""Settings of the part `maintenance`: writers of one table, and a client that keeps it small meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.ingest.settings import IngestSection, IngestSettings
from tidemark.systems.base import Capability, Variant
from tidemark.systems.registry import SystemEntry
from tidemark.systems.tables import TableSystem

MAINTENANCE = "maintenance"
MAINTAINED, LEFT = "maintained", "left"  # with maintenance, or left without it as a control
READER, KEEPER = BESIDE = ("reader", "maintenance")  # processes next to the writers
# The same lake with its rows in the catalog: measured wherever the first is, even if the section does not list it.
INLINED = {"ducklake": "ducklake-inlined-postgres"}


@dataclass(frozen=True, slots=True)
class MaintenanceSettings(IngestSettings):
    """Writers of one table, a client that reads it, and one that maintains it, or none as a control."""

    words = (MAINTAINED, LEFT)

    writers: int
    tries: int  # per batch, while the client reports that another commit came first
    every_seconds: float  # between the starts of two rounds of maintenance; 0: no maintenance
    look_seconds: float  # between two samples of files and bytes

    @property
    def label(self) -> str:
        return f"{MAINTAINED if self.every_seconds else LEFT}-{self.writers}"

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        names, given = section.names_of(MAINTENANCE), section.given[MAINTENANCE]
        there = {entry.name: entry for entry in section.systems}
        there |= {
            also: SystemEntry.parse(also, {}) for name, also in INLINED.items() if name in there and also not in there
        }
        for name, every_seconds in itertools.product(names, (float(given["every_seconds"]), 0.0)):
            if name in there:
                yield (
                    there[name],
                    cls(
                        part=MAINTENANCE,
                        rows=given["rows"],
                        uncounted=section.given["uncounted"],
                        writers=given["writers"],
                        tries=section.given["tries"],
                        every_seconds=every_seconds,
                        look_seconds=float(given["look_seconds"]),
                    ),
                )

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return series of one run, whose writers warm up with uncounted commits; none if nothing is kept."""
        del config
        if Capability.READ_BACK not in chosen.system.capabilities:
            return []
        window_seconds = float(section.sizes[MAINTENANCE]["window_seconds"])
        return [
            replace(spec, window_seconds=window_seconds, runs=1, repeat=number)
            for number in range(1, section.sizes["repeats"] + 1)
        ]

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why a client cannot maintain its table, or None if it can or the series is the control."""
        system = chosen.system
        if not self.every_seconds or not issubclass(system, TableSystem):
            return None
        return system.refuses_maintenance(chosen.options)
