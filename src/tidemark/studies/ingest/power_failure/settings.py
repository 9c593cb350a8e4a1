"""Settings of the part `cut`: writers of one table until the power is cut."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Self

from tidemark.config import Config
from tidemark.machine import power
from tidemark.runs.spec import SeriesSpec
from tidemark.services.servers import in_order
from tidemark.studies.ingest.settings import IngestSection, IngestSettings
from tidemark.systems.base import DEFAULT, FULL, Capability, Variant
from tidemark.systems.registry import SystemEntry, registry

CUT = "cut"
CUT_WRITERS = 2  # of one table
DURABILITY = "durability"  # name of the systems' option


@dataclass(frozen=True, slots=True)
class CutSettings(IngestSettings):
    """Writers of one table on a dedicated disk that also holds its servers' data; a batch is a commit."""

    words = (CUT,)
    label_pattern = re.compile(rf"{CUT}-(?P<writers>\d+)(-(?P<durability>{FULL}))?")

    writers: int
    tries: int  # per batch, while the client reports that another commit came first
    durability: str  # DEFAULT: as configured; FULL: with that option
    outside: str = ""  # servers that the system needs and that were not started here

    @property
    def label(self) -> str:
        return f"{CUT}-{self.writers}" + (f"-{FULL}" if self.durability == FULL else "")

    @classmethod
    def cells(cls, section: IngestSection) -> Iterator[tuple[SystemEntry, Self]]:
        """Yield each system as configured, and with `durability: full` if it has that option and does not set it."""
        given = section.given
        for entry, level in itertools.product(section.systems_of(CUT), (DEFAULT, FULL)):
            options = dict(entry.options)
            if level == FULL:
                known = (
                    {field.name for field in fields(registry()[entry.like].Options)} if entry.like in registry() else ()
                )
                if DURABILITY not in known or options.get(DURABILITY) == FULL:
                    continue
                options[DURABILITY] = FULL
            yield (
                replace(entry, options=tuple(sorted(options.items()))),
                cls(
                    part=CUT,
                    rows=given["rows"],
                    uncounted=0,
                    writers=CUT_WRITERS,
                    tries=given["tries"],
                    durability=level,
                ),
            )

    def series(self, spec: SeriesSpec, section: IngestSection, chosen: Variant, config: Config) -> list[SeriesSpec]:
        """Return a series per cut, on a new table and new servers; none if nothing is kept, as nothing can be lost."""
        if Capability.READ_BACK not in chosen.system.capabilities:
            return []
        sizes = section.sizes[CUT]
        theirs = [kind.title for kind in in_order(chosen.needs) if kind.address_in(config.services) is not None]
        settings = replace(self, outside=", ".join(theirs))
        one = replace(spec, settings=settings.pairs, window_seconds=float(sizes["window_seconds"]), runs=1)
        return [replace(one, repeat=number) for number in range(1, sizes["cuts"] + 1)]

    def refused_by(self, chosen: Variant) -> str | None:
        del chosen
        if self.outside:
            return f"its power is not ours to cut: {self.outside} was not started here"
        reason = power.why_not()
        return None if reason is None else f"no power can be cut here: {reason}"
