"""What one window left behind: a row a step, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.measure.done import DoneWindow
from tidemark.services.spark.events import STAGE_COLUMNS, Job, Stage

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
    cpu_ns: int  # of the engine's processes; NOT_TOLD where they are not of this machine
    rows: int  # of the answer
    error: str = ""
    submitted_ms: int = NOT_TOLD  # by the clock of the engine's log, since 1970
    startup_ns: int = NOT_TOLD  # from then until its first job began; not told where none did
    jobs: int = 0  # with those that the format asked for
    tasks: int = 0
    task_ns: int = 0  # in which tasks ran, together
    gc_ns: int = 0
    scan_ns: int = 0  # of those tasks that read a table
    scan_bytes: int = 0
    shuffle_bytes: int = 0  # written
    spilled_bytes: int = 0


class Stages(list[tuple[int, Job, Stage]]):
    """The stages of all steps, each with the place of its step among the operations, and with its job."""

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns: dict[str, list[Any]] = {
            "operation": [place for place, _, _ in self],
            "job": [job.number for _, job, _ in self],
            "description": [job.description for _, job, _ in self],
            "job_submitted_ms": [job.submitted_ms for _, job, _ in self],
            "job_ended_ms": [job.ended_ms for _, job, _ in self],
            **{name: [getattr(stage, name) for _, _, stage in self] for name in STAGE_COLUMNS},
        }
        pq.write_table(pa.table({**columns, "description": pa.array(columns["description"], pa.string())}), path)


@dataclass(slots=True)
class LakeWindow(DoneWindow[Done]):
    """`elapsed_ns`: of all phases, without what was read and compared between them."""

    stages: Stages = field(default_factory=Stages)

    def budget(self) -> dict[str, int]:
        """What kinds of step took, and the rest."""
        parts: dict[str, int] = {}
        for each in self.done:
            parts[each.kind] = parts.get(each.kind, 0) + each.elapsed_ns
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}
