"""Results of a window that are specific to this study, as run.json keeps them below `found`."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.measure.table_calls import Latencies
from tidemark.runs.serde import Pairs

STREAMED, FLUSHED = "streamed", "flushed"  # states of a table: as the window left it, and after maintenance


@dataclass(frozen=True, slots=True)
class NotRead:
    """The reason why a table could not be read."""

    why_not: str


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """Reads of the table by a client that never wrote to it, by state of the table; empty if it was not read."""

    reads: Pairs[Latencies | NotRead] = ()
