"""Spark's event log: its jobs, each with its stages and the sums over their tasks.

A log is a JSON file with one event per line. Times are milliseconds since 1970 by the machine's clock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

DESCRIPTION = "spark.job.description"
RUNNING = -1  # value of an end time while the job or stage runs


@dataclass(slots=True)
class Stage:
    """One attempt at a stage; sums over its tasks, including failed ones."""

    number: int  # number of the stage
    attempt: int  # number of the attempt
    submitted_ms: int = 0  # when the stage was submitted
    ended_ms: int = RUNNING  # when it ended
    tasks: int = 0  # number of tasks
    run_ms: int = 0  # total time of all tasks
    cpu_ns: int = 0  # processor time of all tasks
    gc_ms: int = 0  # in garbage collection of their JVM; counted once for each concurrent task
    input_bytes: int = 0  # bytes read from tables
    input_rows: int = 0  # rows read from tables
    output_bytes: int = 0  # bytes written to tables
    shuffle_read_bytes: int = 0  # bytes read from other tasks
    shuffle_written_bytes: int = 0  # bytes written for other tasks
    spilled_bytes: int = 0  # bytes spilled to disk
    peak_bytes: int = 0  # peak execution memory, maximum over the tasks

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Add the metrics of a task that has ended."""
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
    """A job; the session sets `description`. A stage belongs to the last job that requested it before it ran."""

    number: int
    description: str
    submitted_ms: int
    ended_ms: int = RUNNING
    stages: list[Stage] = field(default_factory=list)


def read_jobs(path: Path) -> list[Job]:
    """Return the jobs of one log, in the order of their start; jobs from before the log are left out."""
    jobs: dict[int, Job] = {}
    asked: dict[int, int] = {}  # the last job that requested a stage
    stages: dict[tuple[int, int], Stage] = {}
    with path.open() as file:
        for event in map(json.loads, file):
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
                    info = event["Stage Info"]
                    stage = _stage(stages, info["Stage ID"], info["Stage Attempt ID"])
                    stage.tasks = info["Number of Tasks"]
                    stage.submitted_ms = info.get("Submission Time", 0)
                    stage.ended_ms = info.get("Completion Time", RUNNING)
    for stage in stages.values():
        if stage.number in asked:
            jobs[asked[stage.number]].stages.append(stage)
    return list(jobs.values())


def _stage(stages: dict[tuple[int, int], Stage], number: int, attempt: int) -> Stage:
    return stages.setdefault((number, attempt), Stage(number, attempt))
