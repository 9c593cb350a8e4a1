"""Settings of the part `pruning`: a table of many files, and queries for filtered rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from tidemark.studies.ingest.settings import IngestSection, IngestSettings
from tidemark.systems.base import Capability
from tidemark.systems.registry import SystemEntry, registry

PRUNING = "pruning"
PRUNE = "prune"


@dataclass(frozen=True, slots=True)
class PruningSettings(IngestSettings):
    """One table of `files` files, each a commit of `rows` rows, and queries, some of which need not read all files."""

    words = (PRUNE,)

    files: int

    @property
    def label(self) -> str:
        return f"{PRUNE}-{self.files}"

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems as shipped that report which files they read."""
        given = section.given
        for entry, files in itertools.product(section.as_shipped, section.sizes["pruned"]):
            if Capability.PLANS in registry()[entry.like].capabilities:
                yield entry, cls(part=PRUNING, rows=given["rows"], uncounted=given["uncounted"], files=files)


def files_of(mode: str) -> int:
    """Return the number of files in the table, given the mode of a series of the part."""
    return int(mode.rpartition("-")[2])
