"""What one window left behind: a row a step, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

NOT_TOLD = -1  # in place of nanoseconds that nobody knows


@dataclass(slots=True)
class Done:
    """One step. `elapsed_ns` is what its statements took together; `error` says why it failed, else it is empty."""

    phase: str
    kind: str
    subject: str
    iteration: int
    start_ns: int
    elapsed_ns: int
    planned_ns: int  # until the plan of the last statement was there
    cpu_ns: int  # of the engine's processes
    rows: int  # of the answer
    error: str = ""


@dataclass(slots=True)
class LakeWindow:
    """`elapsed_ns`: of all phases, without what was read and compared between them."""

    elapsed_ns: int = 0
    done: list[Done] = field(default_factory=list)

    @property
    def operations(self) -> int:
        return len(self.done)

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.done)

    def elapsed(self) -> NDArray[np.int64]:
        return np.array([each.elapsed_ns for each in self.done], np.int64)

    def budget(self) -> dict[str, int]:
        """What kinds of step took, and the rest."""
        parts: dict[str, int] = {}
        for each in self.done:
            parts[each.kind] = parts.get(each.kind, 0) + each.elapsed_ns
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = tuple(Done.__slots__)
        pq.write_table(pa.table({name: [getattr(each, name) for each in self.done] for name in names}), path)
