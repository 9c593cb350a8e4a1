"""Records of a window: one row per step in the order of time, the engine's log of it, and the results in run.json.

LHBench's program defines startup as the time from submitting a query to the start of the first job whose description
begins with the query's name. Jobs by which a format finds out what to read have other descriptions, and are included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.measure.workload import DoneWindow
from tidemark.runs.manifest import Footprint
from tidemark.runs.serde import Pairs
from tidemark.services.engines.spark_events import STAGE_COLUMNS, Job, Stage

NOT_TOLD = -1  # in place of an unknown time
MS = 1_000_000  # nanoseconds
JOBS = {  # columns of stages.parquet, before those of each stage
    "operation": "row of operations.parquet, from 0",
    "job": "number of the job",
    "description": "description of the job",
    "job_submitted_ms": "when the job was submitted",
    "job_ended_ms": "when the job ended",
}


@dataclass(frozen=True, slots=True)
class Compared:
    """A table as a reader without the engine found it: rows expected and found, and the difference in words."""

    expected: int  # expected rows
    found: int  # rows in the table
    words: str  # difference in words, or "exact"


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's answer: its rows, and how it differs from the expected one, in words."""

    rows: int  # rows of the answer
    words: str  # difference in words, or "exact"


@dataclass(frozen=True, slots=True)
class SecondQuery:
    """A query on the second engine: nanoseconds of each pass, or in `words` the reason why there are none."""

    ns: tuple[int, ...]  # time of each pass (ns)
    words: str  # why there are no times


@dataclass(frozen=True, slots=True)
class Way:
    """Results of one way in which the second engine reads the tables; it loads some of them itself."""

    load_ns: Pairs[int]  # time of loading, by table
    queries: Pairs[SecondQuery]  # times by query


@dataclass(frozen=True, slots=True)
class Second:
    """Results of the second engine after one phase, or the `reason` for none."""

    ways: Pairs[Way] | None = None  # ways of reading the tables, by name
    reason: str = ""  # why there are no times


@dataclass(frozen=True, slots=True)
class MergedSet:
    """Number of files that the updates of a set touch; refresh sets do not have it."""

    touched: int = 0  # number of files that the set touches


@dataclass(frozen=True, slots=True)
class InputData:
    """Input data of a window; `sets` are those that are merged, by their size in the part `merge`."""

    sets: Pairs[MergedSet] = ()  # merged sets, by size or name


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRecord:
    """Results of a window in run.json: by phase, then by table or query, from `tables` to `footprints`.

    `second` and `data` are the answers of the verifier's program, of which `SecondRecord` and `DataRecord` are read.
    """

    tables: Pairs[Pairs[Compared]]  # comparison of each table, by phase
    answers: Pairs[Pairs[Answer]]  # comparison of each answer, by phase and query
    beside: Pairs[Pairs[Pairs[Compared]]] = ()  # comparison by other readers, by phase, without a verdict
    second: Pairs[Any] = ()  # times of a second engine, by phase and way of reading
    footprints: Pairs[Pairs[Footprint]]  # size of each table, by phase
    words: str  # what is wrong, or "exact"
    failed: tuple[str, ...]  # queries that the engine refused
    data: Pairs[Any] = ()  # description of the generated data
    in_force: Pairs[str] = ()  # settings of the session, as it reports them

    @property
    def sizes(self) -> dict[str, dict[str, Footprint]]:
        """Sizes of the tables by phase."""
        return {phase: dict(tables) for phase, tables in self.footprints}


@dataclass(frozen=True, slots=True)
class SecondRecord:
    """Results of the second engine by phase."""

    second: Pairs[Second] = ()  # times of a second engine, by phase


@dataclass(frozen=True, slots=True)
class DataRecord:
    """Part of `data` that results read."""

    data: InputData = InputData()  # data of the window


@dataclass(slots=True)
class Done:
    """One step. `elapsed_ns` is the total time of its statements; `error` is the reason for a failure, or empty."""

    phase: str  # phase of the window
    kind: str  # kind of step, such as load, query or merge
    subject: str  # table or query
    iteration: int  # number of the repetition
    start_ns: int  # begin of the step in the window
    elapsed_ns: int  # total time of its statements
    planned_ns: int  # time until the plan of the last statement was ready
    cpu_ns: int  # CPU time of the engine's processes; -1 if they run on another machine
    rows: int  # rows of the answer
    error: str = ""  # why it failed; empty if it did not
    submitted_ms: int = NOT_TOLD  # when it was submitted, by the clock of the engine's log
    startup_ns: int = NOT_TOLD  # time from submission to the start of its first job; -1 if it had none
    jobs: int = 0  # number of jobs, including those that the format started
    tasks: int = 0  # number of tasks
    task_ns: int = 0  # total run time of the tasks
    gc_ns: int = 0  # time in garbage collection, sum over the tasks
    scan_ns: int = 0  # total run time of the tasks that read a table
    scan_bytes: int = 0  # bytes read by the tasks that read a table
    shuffle_bytes: int = 0  # bytes written for other tasks
    spilled_bytes: int = 0  # bytes spilled to disk


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


def tell(done: Sequence[Done], labels: Sequence[str], jobs: Sequence[Job]) -> Stages:
    """Add the totals of `jobs` to each step of `done` (in the order of time); a step's own jobs begin with its label.

    A job belongs to the last step that was submitted before it, and to none if that step failed or was not timed.
    """
    stages = Stages()
    with_time = [place for place, step in enumerate(done) if step.submitted_ms != NOT_TOLD]
    moments = [done[place].submitted_ms for place in with_time]
    for job in jobs:
        before = bisect_right(moments, job.submitted_ms) - 1
        if before < 0:
            continue
        place = with_time[before]
        step = done[place]
        if job.submitted_ms > step.submitted_ms + step.elapsed_ns // MS + 1:
            continue
        own = job.description.startswith(labels[place])
        if own and step.startup_ns == NOT_TOLD:
            step.startup_ns = (job.submitted_ms - step.submitted_ms) * MS
        step.jobs += 1
        for stage in job.stages:
            stages.append((place, job, stage))
            step.tasks += stage.tasks
            step.task_ns += stage.run_ms * MS
            step.gc_ns += stage.gc_ms * MS
            step.shuffle_bytes += stage.shuffle_written_bytes
            step.spilled_bytes += stage.spilled_bytes
            if own and stage.input_rows:
                step.scan_ns += stage.run_ms * MS
                step.scan_bytes += stage.input_bytes
    return stages
