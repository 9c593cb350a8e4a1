"""Record of a window whose operations run one after another."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray


class Done(Protocol):
    """Completed operation: a dataclass whose fields are the columns of its row."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def elapsed_ns(self) -> int: ...

    @property
    def rows(self) -> int: ...


@dataclass(slots=True)
class DoneWindow[D: Done]:
    """A `Window` whose operations are `done`, in order of time; subclasses divide their time by activity."""

    elapsed_ns: int = 0
    done: list[D] = field(default_factory=list)

    @property
    def operations(self) -> int:
        return len(self.done)

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.done)

    def elapsed(self) -> NDArray[np.int64]:
        return np.array([each.elapsed_ns for each in self.done], np.int64)

    def budget(self) -> dict[str, int]:
        busy = sum(each.elapsed_ns for each in self.done)
        return {"operations": busy, "rest": self.elapsed_ns - busy}

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist([asdict(each) for each in self.done]), path, compression="zstd")
