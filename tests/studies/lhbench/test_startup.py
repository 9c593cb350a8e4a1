"""Tests of the engine's log: the jobs of each step, and when a query's own work begins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tidemark.services.engines.spark_events import Job, read_jobs
from tidemark.studies.lhbench.record import NOT_TOLD, Done, tell

MS = 1_000_000


def job(number: int, at: int, described: str | None, stages: list[int]) -> dict[str, Any]:
    properties = {} if described is None else {"spark.job.description": described}
    return {"Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": at, "Stage IDs": stages,
            "Properties": properties}  # fmt: skip


def task(stage: int, run_ms: int, rows: int = 0) -> dict[str, Any]:
    metrics = {
        "Executor Run Time": run_ms, "Executor CPU Time": run_ms * MS, "JVM GC Time": 1, "Peak Execution Memory": 5,
        "Memory Bytes Spilled": 9, "Disk Bytes Spilled": 3,
        "Input Metrics": {"Bytes Read": 10 * rows, "Records Read": rows},
        "Output Metrics": {"Bytes Written": 0, "Records Written": 0},
        "Shuffle Read Metrics": {"Remote Bytes Read": 1, "Local Bytes Read": 2},
        "Shuffle Write Metrics": {"Shuffle Bytes Written": 4},
    }  # fmt: skip
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Stage Attempt ID": 0, "Task Metrics": metrics}


def ended(stage: int, at: int, tasks: int) -> dict[str, Any]:
    told = {"Stage ID": stage, "Stage Attempt ID": 0, "Number of Tasks": tasks, "Submission Time": at - 5,
            "Completion Time": at}  # fmt: skip
    return {"Event": "SparkListenerStageCompleted", "Stage Info": told}


LOG = [
    {"Event": "SparkListenerLogStart", "Spark Version": "3.5.7"},
    task(90, 1_000),  # of a job from before the log
    job(0, 1_010, "Delta: query q3 1: Filtering files for query", [0]),
    task(0, 20, rows=7), ended(0, 1_030, 1), {"Event": "SparkListenerJobEnd", "Job ID": 0, "Completion Time": 1_031},
    job(1, 1_040, "query q3 1", [1, 2]),
    task(1, 30, rows=100), task(1, 10, rows=50), ended(1, 1_080, 2), task(2, 5), ended(2, 1_090, 1),
    {"Event": "SparkListenerJobEnd", "Job ID": 1, "Completion Time": 1_095},
    job(2, 1_300, None, []),
    job(3, 2_001, "query q9 1", [1, 3]), task(3, 6, rows=1), ended(3, 2_010, 1),
    {"Event": "SparkListenerTaskEnd", "Stage ID": 3, "Stage Attempt ID": 0, "Task Metrics": None},
]  # fmt: skip


def jobs(tmp_path: Path) -> list[Job]:
    path = tmp_path / "local-1"
    path.write_text("\n".join(map(json.dumps, LOG)) + "\n")
    return read_jobs(path)


def done(subject: str, submitted_ms: int, elapsed_ms: int) -> Done:
    return Done("queries", "query", subject, 1, 0, elapsed_ms * MS, 0, 0, 1, submitted_ms=submitted_ms)


def test_log_gives_jobs_with_their_stages_and_sums_over_tasks(tmp_path: Path) -> None:
    first, second, third, last = jobs(tmp_path)
    assert (first.submitted_ms, first.ended_ms, [each.number for each in first.stages]) == (1_010, 1_031, [0])
    (big,) = (each for each in last.stages if each.number == 1)  # requested again, so it is listed with the later job
    assert (big.tasks, big.run_ms, big.gc_ms, big.input_bytes, big.input_rows) == (2, 40, 2, 1_500, 150)
    assert (big.shuffle_read_bytes, big.shuffle_written_bytes, big.spilled_bytes, big.peak_bytes) == (6, 8, 6, 5)
    assert [each.number for each in second.stages] == [2] and third.stages == [] and third.description == ""
    assert last.ended_ms == -1


def test_startup_lasts_until_the_first_job_with_the_name_of_the_query(tmp_path: Path) -> None:
    steps = [done("q3", 1_000, 150), done("failed", NOT_TOLD, 0), done("q9", 2_000, 50), done("q34", 3_000, 10)]
    found = [each for each in jobs(tmp_path) if each.number != 2]
    stages = tell(steps, ["query q3 1", "query failed 1", "query q9 1", "query q34 1"], found)
    q3, failed, q9, q34 = steps
    assert (q3.startup_ns, q3.jobs, q3.gc_ns) == (40 * MS, 2, 2 * MS)
    assert (q9.startup_ns, q9.jobs, q9.tasks) == (1 * MS, 1, 3)
    assert q9.scan_ns == 46 * MS and q9.scan_bytes == 1_510
    assert q3.scan_bytes == 0  # metadata read for planning is no table data
    assert (failed.jobs, failed.startup_ns) == (0, NOT_TOLD) and (q34.jobs, q34.startup_ns) == (0, NOT_TOLD)
    stages.write_parquet(tmp_path / "stages.parquet")
    table = pq.read_table(tmp_path / "stages.parquet")
    assert table.num_rows == 4 and table.column("operation").to_pylist() == [0, 0, 2, 2]
    assert table.column("description").to_pylist()[0].startswith("Delta: ")


def test_a_job_between_two_steps_belongs_to_neither(tmp_path: Path) -> None:
    steps = [done("q3", 1_000, 150), done("q9", 2_000, 50)]
    tell(steps, ["query q3 1", "query q9 1"], jobs(tmp_path))
    assert steps[0].jobs == 2
