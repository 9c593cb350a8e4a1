"""Spark's event log: the jobs that it tells of, each with its stages and what their tasks came to.

A log is a file of JSON, a line an event. Times in milliseconds are of the machine's clock, since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

DESCRIPTION = "spark.job.description"
RUNNING = -1  # in place of the moment at which something ended


@dataclass(slots=True)
class Stage:
    """One attempt at a stage; sums over its tasks, those that failed among them."""

    number: int
    attempt: int
    submitted_ms: int = 0
    ended_ms: int = RUNNING
    tasks: int = 0
    run_ms: int = 0  # in which tasks ran, together
    cpu_ns: int = 0
    gc_ms: int = 0  # in which their JVM collected garbage; tasks that ran at the same time tell of it twice
    input_bytes: int = 0
    input_rows: int = 0
    output_bytes: int = 0
    shuffle_read_bytes: int = 0
    shuffle_written_bytes: int = 0
    spilled_bytes: int = 0  # to the disk
    peak_bytes: int = 0  # of memory for execution, of the task that had most

    def add(self, metrics: Mapping[str, Any]) -> None:
        """A task that has ended."""
        read, written = metrics["Shuffle Read Metrics"], metrics["Shuffle Write Metrics"]
        self.run_ms += metrics["Executor Run Time"]
        self.cpu_ns += metrics["Executor CPU Time"]
        self.gc_ms += metrics["JVM GC Time"]
        self.input_bytes += metrics["Input Metrics"]["Bytes Read"]
        self.input_rows += metrics["Input Metrics"]["Records Read"]
        self.output_bytes += metrics["Output Metrics"]["Bytes Written"]
        self.shuffle_read_bytes += read["Remote Bytes Read"] + read["Local Bytes Read"]
        self.shuffle_written_bytes += written["Shuffle Bytes Written"]
        self.spilled_bytes += metrics["Disk Bytes Spilled"]
        self.peak_bytes = max(self.peak_bytes, metrics["Peak Execution Memory"])


STAGE_COLUMNS = tuple(each.name for each in fields(Stage))


@dataclass(slots=True)
class Job:
    """`description` is what the session called it; a stage stands with the last job that asked for it before it ran."""

    number: int
    description: str
    submitted_ms: int
    ended_ms: int = RUNNING
    stages: list[Stage] = field(default_factory=list)


def read_jobs(path: Path) -> list[Job]:
    """The jobs of one log, in the order in which they began; what began before the log is left out."""
    with path.open() as file:
        return jobs_of(json.loads(line) for line in file)


def jobs_of(events: Iterable[Mapping[str, Any]]) -> list[Job]:
    """The jobs that `events` tell of."""
    jobs: dict[int, Job] = {}
    asked: dict[int, int] = {}  # the last job that asked for a stage
    stages: dict[tuple[int, int], Stage] = {}
    for event in events:
        match event["Event"]:
            case "SparkListenerJobStart":
                number = event["Job ID"]
                described = (event.get("Properties") or {}).get(DESCRIPTION, "")
                jobs[number] = Job(number, described, event["Submission Time"])
                asked |= dict.fromkeys(event["Stage IDs"], number)
            case "SparkListenerJobEnd" if event["Job ID"] in jobs:
                jobs[event["Job ID"]].ended_ms = event["Completion Time"]
            case "SparkListenerTaskEnd":
                stage = _stage(stages, event["Stage ID"], event["Stage Attempt ID"])
                if event.get("Task Metrics"):
                    stage.add(event["Task Metrics"])
            case "SparkListenerStageCompleted":
                told = event["Stage Info"]
                stage = _stage(stages, told["Stage ID"], told["Stage Attempt ID"])
                stage.tasks = told["Number of Tasks"]
                stage.submitted_ms = told.get("Submission Time", 0)
                stage.ended_ms = told.get("Completion Time", RUNNING)
    for stage in stages.values():
        if stage.number in asked:
            jobs[asked[stage.number]].stages.append(stage)
    return list(jobs.values())


def _stage(stages: dict[tuple[int, int], Stage], number: int, attempt: int) -> Stage:
    return stages.setdefault((number, attempt), Stage(number, attempt))
