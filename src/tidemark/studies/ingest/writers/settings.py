"""Settings of the part `writers`: many writers of one table, or of a table each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

from tidemark.errors import ConfigError
from tidemark.studies.ingest.settings import SECTION, IngestSection, IngestSettings, only_retries
from tidemark.systems.variants import SystemEntry

WRITERS = "writers"
ONE, OWN = "one", "own"  # all write one table, or each a separate one


@dataclass(frozen=True, slots=True)
class WritersSettings(IngestSettings):
    """Many writers, each a separate process; a batch is a commit."""

    words: ClassVar[tuple[str, ...]] = (ONE, OWN)
    label_pattern = re.compile(rf"(?P<tables>{ONE}|{OWN})-(?P<writers>\d+)")

    writers: int
    tables: str  # ONE or OWN
    tries: int  # per batch, while the client reports that another commit came first

    @property
    def label(self) -> str:
        return f"{self.tables}-{self.writers}"

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        sizes = section.sizes
        alone = sorted(set(sizes["own"]) - set(sizes["writers"]))
        if alone:
            raise ConfigError(
                f"{section.origin.place((SECTION, 'protocols', section.protocol, 'own'))}: found {alone[0]}; allowed: "
                f"numbers that 'writers' has as well ({', '.join(map(str, sizes['writers']))}): a table each is the "
                "control of one table for all"
            )
        common = {name: section.given[name] for name in ("rows", "uncounted", "tries")}
        counts = [*((ONE, count) for count in sizes["writers"]), *((OWN, count) for count in sizes["own"])]
        for entry, (tables, writers) in itertools.product(section.systems, counts):
            if only_retries(entry) and (tables == OWN or writers == 1):
                continue  # without conflicts, there is nothing to retry
            yield entry, cls(part=WRITERS, writers=writers, tables=tables, **common)


def mode_of(mode: str) -> tuple[str, int]:
    """Return ONE or OWN and the number of writers, given the mode of a series of the part."""
    tables, _, writers = mode.partition("-")
    return tables, int(writers)
