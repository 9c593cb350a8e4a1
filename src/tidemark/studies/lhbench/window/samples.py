"""Samples of one window: one row per step, in the order of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.measure.done import DoneWindow
from tidemark.services.spark.events import STAGE_COLUMNS, Job, Stage

NOT_TOLD = -1  # in place of an unknown time


@dataclass(slots=True)
class Done:
    """One step. `elapsed_ns` is the total time of its statements; `error` is the reason for a failure, or empty."""

    phase: str
    kind: str
    subject: str
    iteration: int
    start_ns: int
    elapsed_ns: int
    planned_ns: int  # until the plan of the last statement was ready
    cpu_ns: int  # CPU time of the engine's processes; NOT_TOLD if they run on another machine
    rows: int  # rows of the answer
    error: str = ""
    submitted_ms: int = NOT_TOLD  # by the clock of the engine's log, since 1970
    startup_ns: int = NOT_TOLD  # from submission to the start of its first job; NOT_TOLD if it had none
    jobs: int = 0  # including those that the format started
    tasks: int = 0
    task_ns: int = 0  # total run time of the tasks
    gc_ns: int = 0
    scan_ns: int = 0  # total run time of the tasks that read a table
    scan_bytes: int = 0
    shuffle_bytes: int = 0  # written
    spilled_bytes: int = 0


class Stages(list[tuple[int, Job, Stage]]):
    """Stages of all steps, as (index of the step among the operations, job, stage)."""

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
    """Window of all phases; `elapsed_ns` excludes the reading and comparing between them."""

    stages: Stages = field(default_factory=Stages)

    def budget(self) -> dict[str, int]:
        """Return the nanoseconds of each kind of step, and the rest."""
        parts: dict[str, int] = {}
        for each in self.done:
            parts[each.kind] = parts.get(each.kind, 0) + each.elapsed_ns
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}
