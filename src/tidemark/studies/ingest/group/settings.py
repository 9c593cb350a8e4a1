"""Settings of the part `group`: clients behind a front, which commits their requests one by one or gathered."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Self

from tidemark.schema import one_of
from tidemark.studies.ingest.gateway.policies import BUNDLED, DIRECT, POLICIES, STAGED, Policy
from tidemark.studies.ingest.settings import SECTION, IngestSection, IngestSettings
from tidemark.systems.base import Variant
from tidemark.systems.tables import TableSystem
from tidemark.systems.variants import SystemEntry

GROUP = "group"


@dataclass(frozen=True, slots=True)
class GroupSettings(IngestSettings):
    """Clients behind a front that commits their requests by a policy; a batch is a request."""

    words = tuple(POLICIES)
    label_pattern = re.compile(rf"(?P<policy>{'|'.join(POLICIES)})-(?P<rows>\d+)x(?P<clients>\d+)")

    policy: str
    clients: int
    writers: int  # table clients of the front, one thread each; a bundled policy has one more
    tries: int  # of the front, per commit, while other commits come first
    max_rows: int
    max_bytes: int
    max_age_ms: float
    window_ms: float
    max_files: int

    @property
    def label(self) -> str:
        return f"{self.policy}-{self.rows}x{self.clients}"

    @property
    def has_front(self) -> bool:
        return True

    @property
    def rules(self) -> Policy:
        """The policy with its parameters."""
        chosen = POLICIES[self.policy]
        return chosen(**{field.name: getattr(self, field.name) for field in fields(chosen)})

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        sizes, given = section.sizes[GROUP], section.given[GROUP]
        for name in sizes["systems"]:
            one_of(name, section.known, (SECTION, "protocols", section.protocol, GROUP, "systems"), section.origin)
        chosen = [entry for entry in section.systems if entry.name in sizes["systems"]]
        for entry, shape, policy in itertools.product(chosen, sizes["shapes"], sizes["policies"]):
            rows, clients = map(int, shape.split("x"))
            several = {DIRECT: min(clients, given["writers"]), STAGED: 1, BUNDLED: given["flushers"]}
            yield (
                entry,
                cls(
                    part=GROUP,
                    rows=rows,
                    uncounted=section.given["uncounted"],
                    policy=policy,
                    clients=clients,
                    writers=several[policy],
                    tries=given["tries"],
                    max_rows=given["max_rows"],
                    max_bytes=given["max_bytes"],
                    max_age_ms=float(given["max_age_ms"]),
                    window_ms=float(given["window_ms"]),
                    max_files=given["max_files"],
                ),
            )

    def refused_by(self, chosen: Variant) -> str | None:
        """Return why a client cannot commit several files at once, or None if it can or the policy does not need it."""
        system = chosen.system
        if self.policy != BUNDLED or not issubclass(system, TableSystem):
            return None
        return system.refuses_bundles(chosen.options)
