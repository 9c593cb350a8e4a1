"""Figures of each step from an engine's log: the start of its first job, and the totals of its jobs.

LHBench's program defines startup as the time from submitting a query to the start of the first job whose description
begins with the query's name. Jobs by which a format finds out what to read have other descriptions, and are included.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tidemark.services.spark.events import Job
from tidemark.studies.lhbench.window.samples import NOT_TOLD, Done, Stages

MS = 1_000_000  # nanoseconds


def tell(done: Sequence[Done], labels: Sequence[str], jobs: Sequence[Job]) -> Stages:
    """Add the totals of `jobs` to each step of `done` (in the order of time); a step's own jobs begin with its label.

    A job belongs to the last step that was submitted before it, and to none if that step failed or was not timed.
    """
    stages = Stages()
    told = [place for place, step in enumerate(done) if step.submitted_ms != NOT_TOLD]
    moments = [done[place].submitted_ms for place in told]
    for job in jobs:
        before = bisect_right(moments, job.submitted_ms) - 1
        if before < 0:
            continue
        place = told[before]
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
