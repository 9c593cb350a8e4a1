"""Losses by a power cut: rows acknowledged before it, compared with the rows present after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemark.studies.ingest.load.records import ACKED, NUMBERS, by_field
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.record import Cost
from tidemark.studies.ingest.window.oracle import OF_TABLE

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Remains:
    """Contents of the data files, each read separately: int64 ids, and the counts of all and of unreadable files."""

    ids: Ints
    files: int
    unreadable: int

    @classmethod
    def below(cls, folder: Path) -> Remains:
        import pyarrow.parquet as pq

        parts, files, unreadable = [np.zeros(0, np.int64)], 0, 0
        for path in sorted(folder.rglob("*.parquet")):
            files += 1
            try:
                parts.append(pq.read_table(path, columns=["id"]).column(0).drop_null().to_numpy())
            except Exception:  # any error that an empty or truncated file causes
                unreadable += 1
        return cls(np.concatenate(parts), files, unreadable)


def cost(
    records: Sequence[Ints], cut_ns: int, synced: int, rows: int, seen: Ints | None, said: str, remains: Remains
) -> Cost:
    """Return the cost by the `records` of writers 1, 2, ...; the table began with `synced` batches of `rows` rows.

    `seen` are the ids that another client reads after the cut; None if it cannot, for the reason in `said`.
    """
    there = np.zeros(0, np.int64) if seen is None else seen
    acked, ended, doubt = [_ids(OF_TABLE, np.zeros(0, np.int64), rows)], [np.zeros(0, np.int64)], []
    for number, noted in enumerate(records, 1):
        columns = by_field(noted)
        chosen = columns["outcome"] == NUMBERS[ACKED]
        acked.append(_ids(number, columns["sequence"][chosen], rows))
        ended.append((columns["start_ns"] + columns["elapsed_ns"])[chosen])
        open_ones = np.setdiff1d(columns["sequence"], columns["sequence"][chosen])
        doubt.append(_ids(number, open_ones, rows))
    wanted, moments, unknown = np.concatenate(acked), np.concatenate(ended), np.concatenate(doubt)
    missing = ~np.isin(wanted, there)
    first = _ids(OF_TABLE, np.arange(synced), rows)
    counts = np.unique(there, return_counts=True)[1]
    known = [np.isin(each, there).sum(axis=1) for each in (wanted, first, unknown)]
    gone = moments[missing.any(axis=1)]
    lost, synced_lost, doubled = int(missing.sum()), int((~np.isin(first, there)).sum()), int((counts > 1).sum())
    partial = sum(int(((found > 0) & (found < rows)).sum()) for found in known)
    return Cost(
        acked=wanted.size,
        lost=lost,
        oldest_lost_s=round((cut_ns - int(gone.min())) / 1e9, 6) if len(gone) else None,
        synced=first.size,
        synced_lost=synced_lost,
        doubled=doubled,
        partial=partial,
        unknown=len(unknown),
        done=int((known[2] > 0).sum()),
        left_in_files=int(np.isin(wanted[missing], remains.ids).sum()),
        said=said,
        holds=not (lost or synced_lost or doubled or partial or said),
    )


def _ids(number: int, batches: Ints, rows: int) -> Ints:
    """Return int64[batches, rows]: the ids of a writer's batches."""
    return (number << ID_BITS) + rows * batches[:, None] + np.arange(rows, dtype=np.int64)
