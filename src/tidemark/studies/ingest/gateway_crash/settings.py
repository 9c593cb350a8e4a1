"""Settings of the part `front`: clients behind a front that gathers their requests, while its process is killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec
from tidemark.studies.ingest.fault_injection.settings import KILL_SECONDS
from tidemark.studies.ingest.gateway.policies import GroupCommit, Policy
from tidemark.studies.ingest.settings import GROUP, IngestSection, IngestSettings
from tidemark.systems.base import Capability, Variant
from tidemark.systems.registry import SystemEntry

FRONT = "front"
ROWS, CLIENTS = 50, 32  # rows per request, and clients with a connection each: kyma's shape with the most clients


@dataclass(frozen=True, slots=True)
class FrontSettings(IngestSettings):
    """Clients of a front whose buffer is a commit (staged) and which is killed; a batch is a request."""

    words = (FRONT,)
    label_pattern = re.compile(rf"{FRONT}-(?P<rows>\d+)x(?P<clients>\d+)")

    clients: int
    kills: int
    tries: int  # of the front, per commit, while other commits come first
    max_rows: int
    max_bytes: int
    max_age_ms: float

    @property
    def label(self) -> str:
        return f"{FRONT}-{self.rows}x{self.clients}"

    @property
    def has_front(self) -> bool:
        return True

    @property
    def rules(self) -> Policy:
        """The front's policy with its parameters."""
        return GroupCommit(self.max_rows, self.max_bytes, self.max_age_ms)

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems of the part `group`."""
        kills = section.sizes["kills"]
        for entry in section.systems_of(GROUP) if kills else ():
            yield (
                entry,
                cls(
                    part=FRONT,
                    rows=ROWS,
                    uncounted=0,
                    clients=CLIENTS,
                    kills=kills,
                    tries=section.given[GROUP]["tries"],
                    **section.buffer,
                ),
            )

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return one series, long enough for its kills; none if nothing is kept, as nothing can be lost."""
        del section, config
        if Capability.READ_BACK not in chosen.system.capabilities:
            return []
        return [replace(spec, window_seconds=KILL_SECONDS * self.kills, runs=1)]
