"""Settings of the part `tail`: requests by a schedule, at a share of the closed-loop rate of the same clients."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from tidemark.config import Config
from tidemark.runs.spec import SeriesSpec
from tidemark.schema import one_of
from tidemark.studies.ingest.gateway.policies import STAGED, GroupCommit, Policy
from tidemark.studies.ingest.settings import SECTION, IngestSection, IngestSettings
from tidemark.studies.ingest.tail.schedule import CONSTANT, POISSON
from tidemark.systems.base import Variant
from tidemark.systems.variants import SystemEntry

TAIL = "tail"
ONE = "one"  # a writer of the table, without a front


@dataclass(frozen=True, slots=True)
class TailSettings(IngestSettings):
    """One writer, or the clients of a front that gathers (staged); a batch is a request."""

    words = (TAIL,)
    label_pattern = re.compile(rf"{TAIL}-(?P<target>{ONE}|{STAGED})-(?P<percent>\d+)(-(?P<arrivals>{CONSTANT}))?")

    target: str  # ONE or STAGED
    percent: int  # of the closed loop's request rate before the window
    arrivals: str
    closed_seconds: float
    longest_wait_seconds: float  # of a due request: beyond it, the window is overloaded
    clients: int  # connections of the front; 1 without a front
    tries: int
    max_rows: int  # of the front's buffer, as the following; without effect if there is no front
    max_bytes: int
    max_age_ms: float

    @property
    def label(self) -> str:
        return "-".join((TAIL, self.target, str(self.percent), *((CONSTANT,) if self.arrivals == CONSTANT else ())))

    @classmethod
    def _of_label(cls, label: str) -> dict[str, Any]:
        found = super(TailSettings, cls)._of_label(label)
        return {**found, "arrivals": found.get("arrivals") or POISSON}

    @property
    def has_front(self) -> bool:
        return self.target == STAGED

    @property
    def rules(self) -> Policy:
        """The front's policy with its parameters."""
        return GroupCommit(self.max_rows, self.max_bytes, self.max_age_ms)

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        sizes, given, front = section.sizes[TAIL], section.given[TAIL], section.given["group"]
        for name in sizes["systems"]:
            one_of(name, section.known, (SECTION, "protocols", section.protocol, TAIL, "systems"), section.origin)
        chosen = [entry for entry in section.systems if entry.name in sizes["systems"]]
        for entry, target, percent, arrivals in itertools.product(
            chosen, sizes["targets"], sizes["percents"], sizes["arrivals"]
        ):
            yield (
                entry,
                cls(
                    part=TAIL,
                    rows=section.given["rows"],
                    uncounted=section.given["uncounted"],
                    target=target,
                    percent=percent,
                    arrivals=arrivals,
                    closed_seconds=float(sizes["closed_seconds"]),
                    longest_wait_seconds=float(given["longest_wait_seconds"]),
                    clients=given["clients"] if target == STAGED else 1,
                    tries=front["tries"] if target == STAGED else section.given["tries"],
                    max_rows=front["max_rows"],
                    max_bytes=front["max_bytes"],
                    max_age_ms=float(front["max_age_ms"]),
                ),
            )

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return the series, with the part's own window length if the protocol sets one."""
        seconds = section.sizes[TAIL]["window_seconds"]
        own = spec if seconds is None else replace(spec, window_seconds=float(seconds))
        return IngestSettings.series(self, own, section, chosen, config)
