"""The runs of one part of the study: what its tables, figures and sentences are of."""

from __future__ import annotations

from dataclasses import replace

from tidemark.runs.runset import RunSet
from tidemark.studies.ingest.settings import part_of


def of_part(run_set: RunSet, part: str) -> RunSet:
    """The series of the study that belong to `part`."""
    return replace(run_set, series=tuple(each for each in run_set.series if part_of(each.mode) == part))
