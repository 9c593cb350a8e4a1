"""Samples of the machine, taken once a second while a window is open: machine.parquet.

Sampling starts before any client library may be in memory, so Arrow is imported only to write the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class MachineSamples:
    """Columns of machine.parquet, with one entry per second.

    Percentages are of all processors, or of one where stated. A process group that did not exist is null.
    """

    second: list[float] = field(default_factory=list)
    cpu_percent: list[float] = field(default_factory=list)
    steal_percent: list[float] = field(default_factory=list)  # of one processor: stolen by the hypervisor
    foreign_percent: list[float | None] = field(default_factory=list)  # of one processor, kernel threads included
    disk_written_bytes: list[int | None] = field(default_factory=list)
    groups: dict[str, list[float | None]] = field(default_factory=dict)  # of one processor: `cpu_<group>_percent`
    memory: dict[str, list[int | None]] = field(default_factory=dict)  # shared pages in part: `memory_<group>_bytes`

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, pa.Array] = {
            "second": pa.array(self.second, pa.float64()),
            "cpu_percent": pa.array(self.cpu_percent, pa.float64()),
            "steal_percent": pa.array(self.steal_percent, pa.float64()),
            "foreign_percent": pa.array(self.foreign_percent, pa.float64()),
            "disk_written_bytes": pa.array(self.disk_written_bytes, pa.int64()),
        }
        for name, percents in self.groups.items():
            columns[f"cpu_{name}_percent"] = pa.array(percents, pa.float64())
        for name, sizes in self.memory.items():
            columns[f"memory_{name}_bytes"] = pa.array(sizes, pa.int64())
        pq.write_table(pa.table(columns), path, compression="zstd")
