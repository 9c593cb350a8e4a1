"""Oracle: each acknowledged row is present once, as read by another client, and no refused row is present.

Its findings are a result of this study and invalidate no run: a system that loses acknowledged rows is shown as such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidemark.studies.ingest.load.records import ACKED, NUMBERS, SENT, UNKNOWN, by_field
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.record import OracleRecord

OF_TABLE = 0  # writer number of a table's first rows
REFUSED_BATCH, UNKNOWN_BATCH, ACKED_BATCH = 0, 1, 2


@dataclass(slots=True)
class Finding:
    """Counts of rows, unless named as batches. A row of unknown outcome may be present once or not at all."""

    expected: int = 0  # acknowledged
    found: int = 0
    lost: int = 0  # acknowledged, but missing
    doubled: int = 0  # ids that are present more than once
    risen: int = 0  # ids that were refused, but are present
    phantom: int = 0  # ids that no writer wrote
    partial: int = 0  # batches of which only some rows are present
    done: int = 0  # batches of unknown outcome that are present
    not_done: int = 0  # batches of unknown outcome that are missing
    unread: str | None = None  # why the table could not be read

    @property
    def is_exact(self) -> bool:
        return not (self.lost or self.doubled or self.risen or self.phantom or self.partial or self.unread)

    def add(self, other: Finding) -> None:
        for name, value in asdict(other).items():
            if name != "unread":
                setattr(self, name, getattr(self, name) + value)
        self.unread = self.unread or other.unread

    def record(self) -> OracleRecord:
        return OracleRecord(**asdict(self), words=self.words)

    @property
    def words(self) -> str:
        """Description of what is wrong; "exact" if nothing is."""
        if self.unread:
            return f"cannot be read: {self.unread}"
        names = ("lost", "doubled", "risen", "phantom")
        found = [f"{getattr(self, name):,} rows {name}" for name in names if getattr(self, name)]
        found += [f"{self.partial:,} batches partial"] if self.partial else []
        return ", ".join(found) or "exact"


def states(records: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[batches]: each batch's final status, which is the best status of its attempts."""
    columns = by_field(records)
    outcome = columns["outcome"]
    attempts = np.full(len(outcome), REFUSED_BATCH)
    attempts[np.isin(outcome, (SENT, NUMBERS[UNKNOWN]))] = UNKNOWN_BATCH
    attempts[outcome == NUMBERS[ACKED]] = ACKED_BATCH
    found = np.full(int(columns["sequence"].max(initial=-1)) + 1, REFUSED_BATCH)
    np.maximum.at(found, columns["sequence"], attempts)
    return found


def counts_of(ids: NDArray[np.int64], writer: int, batches: int, rows: int) -> NDArray[np.int64]:
    """Return int64[batches, rows]: how often each id of a writer, in batches of `rows` rows, is among `ids`."""
    own = (ids & ((1 << ID_BITS) - 1))[(ids >> ID_BITS) == writer]
    counts: NDArray[np.int64] = np.bincount(own[own < rows * batches], minlength=rows * batches)
    return counts.reshape(batches, rows)


def look(ids: pa.ChunkedArray, batches: Mapping[int, NDArray[np.int64]], rows: int) -> Finding:
    """Compare the `ids` of a table with the final status of its writers' `batches`, of `rows` rows each."""
    seen = ids.drop_null().to_numpy()
    finding = Finding(found=len(ids), phantom=ids.null_count)
    writers, places = seen >> ID_BITS, seen & ((1 << ID_BITS) - 1)
    for writer, known in batches.items():
        own = places[writers == writer]
        finding.phantom += int((own >= rows * len(known)).sum())
        counts = counts_of(seen, writer, len(known), rows)
        acked, refused, unknown = (counts[known == state] for state in (ACKED_BATCH, REFUSED_BATCH, UNKNOWN_BATCH))
        finding.expected += acked.size
        finding.lost += int((acked == 0).sum())
        finding.doubled += int((counts > 1).sum())
        finding.risen += int((refused > 0).sum())
        there = (counts > 0).sum(axis=1)
        finding.partial += int(((there > 0) & (there < rows)).sum())
        finding.done += int((unknown > 0).any(axis=1).sum())
        finding.not_done += int((unknown == 0).all(axis=1).sum())
    finding.phantom += int((~np.isin(writers, list(batches))).sum())
    return finding
