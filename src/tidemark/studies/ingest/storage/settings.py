"""Settings of the part `storage`: one writer, whose table's files are in an S3 server some milliseconds away."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

from tidemark.studies.ingest.settings import IngestSection
from tidemark.studies.ingest.writers.settings import ONE, WritersSettings
from tidemark.systems.object_store import S3
from tidemark.systems.registry import SystemEntry, registry

STORAGE = "storage"
FAR = "s3"


@dataclass(frozen=True, slots=True)
class StorageSettings(WritersSettings):
    """One writer, whose table's files are in an S3 server with a round trip of `rtt_ms` milliseconds."""

    words = (FAR,)

    rtt_ms: int

    @property
    def label(self) -> str:
        return f"{FAR}-{self.rtt_ms}"

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield the systems as shipped that can keep their files in an S3 server."""
        common = {name: section.given[name] for name in ("rows", "uncounted", "tries")}
        for entry, rtt_ms in itertools.product(section.as_shipped, section.sizes["rtts"]):
            if "rtt_ms" in {each.name for each in fields(registry()[entry.like].Options)}:
                options = {**dict(entry.options), "storage": S3, "rtt_ms": rtt_ms}
                settings = cls(part=STORAGE, writers=1, tables=ONE, rtt_ms=rtt_ms, **common)
                yield replace(entry, options=tuple(sorted(options.items()))), settings


def rtt_of(mode: str) -> int:
    """Return the round trip to the store in milliseconds, given the mode of a series of the part."""
    return int(mode.rpartition("-")[2])
