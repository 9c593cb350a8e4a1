"""Settings of the part `faults`: writers of one table, while writers and servers are killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec
from tidemark.services.servers import started_here
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.settings import IngestSection, IngestSettings
from tidemark.systems.base import Capability, Variant
from tidemark.systems.registry import SystemEntry

FAULTS = "faults"
FAULT_WRITERS = 2  # of one table
KILL_SECONDS = 5.0  # length of a window per kill


@dataclass(frozen=True, slots=True)
class FaultSettings(IngestSettings):
    """Writers of one table, which are killed, as are the servers; a batch is a commit."""

    words = (FAULTS,)
    label_pattern = re.compile(rf"{FAULTS}-(?P<writers>\d+)(-(?P<retry>{CHECK}|{BLIND}))?")

    writers: int
    tries: int  # per batch, while the client reports that another commit came first
    kills: int  # of a writer, and of each server
    retry: str  # of a batch of unknown outcome: never, check or blind
    watch_seconds: float  # the longest wait until the kernel has written a commit's files to the disk

    @property
    def label(self) -> str:
        return f"{FAULTS}-{self.writers}" + ("" if self.retry == NEVER else f"-{self.retry}")

    @classmethod
    def _of_label(cls, label: str) -> dict[str, Any]:
        found = super(FaultSettings, cls)._of_label(label)
        return {**found, "retry": found.get("retry") or NEVER}

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        kills, given = section.sizes["kills"], section.given
        for entry in section.with_their_retries if kills else ():
            yield (
                entry,
                cls(
                    part=FAULTS,
                    rows=given["rows"],
                    uncounted=0,
                    writers=FAULT_WRITERS,
                    tries=given["tries"],
                    kills=kills,
                    retry=given["retry"],
                    watch_seconds=float(section.sizes["watch_seconds"]),
                ),
            )

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return one series, long enough for its kills; none if nothing is kept, as nothing can be lost."""
        del section
        if Capability.READ_BACK not in chosen.system.capabilities:
            return []
        killed = 1 + sum(not kind.is_instrument for kind in started_here(chosen.needs, config.services))
        return [replace(spec, window_seconds=KILL_SECONDS * self.kills * killed, runs=1)]
