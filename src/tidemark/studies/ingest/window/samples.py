"""Samples of one window: a row per attempt at a commit, of all writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.studies.ingest.load.records import ACKED, NOT_TOLD, OUTCOMES, by_field


@dataclass(slots=True)
class IngestWindow:
    """Attempts of one window of length `elapsed_ns`, including those in flight at its end."""

    rows_a_batch: int
    elapsed_ns: int = 0
    writers: int = 0
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)  # in time order
    said: tuple[str, ...] = ()

    def take(self, records: Sequence[NDArray[np.int64]], start_ns: int) -> None:
        """Convert the records of writers 1, 2, ... into rows; attempts that began before the window are left out.

        An attempt without an end, of a writer that was killed, has an unknown duration, which is stored as 0.
        """
        made: dict[str, list[NDArray[Any]]] = {}
        for number, noted in enumerate(records, 1):
            inside = noted[noted[:, 0] >= start_ns]
            columns = by_field(inside)
            sequence, begins = columns["sequence"], columns["start_ns"] - start_ns
            first = begins[np.searchsorted(sequence, sequence, side="left")]  # batches follow each other
            columns["start_ns"] = begins
            columns["response_ns"] = begins + columns["elapsed_ns"] - first
            columns["writer"] = np.full(len(inside), number, np.int64)
            for name, values in columns.items():
                made.setdefault(name, []).append(values)
        joined = {name: np.concatenate(parts) for name, parts in made.items()}
        order = np.argsort(joined["start_ns"], kind="stable")
        self.columns = {name: values[order] for name, values in joined.items()}
        self.columns["outcome"] = np.array(OUTCOMES, object)[self.columns["outcome"]]
        self.columns["rows"] = np.where(self.columns["outcome"] == ACKED, self.rows_a_batch, 0)
        self.columns["commit"] = np.full(self.operations, NOT_TOLD, np.int64)  # commit number, set only behind a front
        self.writers = len(records)

    @property
    def operations(self) -> int:
        return len(self.columns["start_ns"])

    @property
    def rows(self) -> int:
        """Number of acknowledged rows."""
        return int(self.columns["rows"].sum())

    def elapsed(self) -> NDArray[np.int64]:
        found: NDArray[np.int64] = self.columns["elapsed_ns"]
        return found

    def budget(self) -> dict[str, int]:
        """Return the average writer's time (ns) inside acknowledged calls, inside others, and the rest with waits."""
        starts, ends = self.columns["start_ns"], self.columns["start_ns"] + self.columns["elapsed_ns"]
        inside = np.minimum(ends, self.elapsed_ns) - np.minimum(starts, self.elapsed_ns)
        acked = self.columns["outcome"] == ACKED
        parts = {"acked": int(inside[acked].sum()), "not acked": int(inside[~acked].sum())}
        parts = {name: spent // self.writers for name, spent in parts.items()}
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(self.columns), path)
