"""Measurement window of queries, on a table with the series' number of files."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tidemark.measure import asking
from tidemark.measure.workload import Rig, Show
from tidemark.studies.ingest.pruning.settings import PruningSettings


def staged(rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[asking.AskingStage]:
    """Return the context manager of a stage: a filled table in the folder `name`, with an open client."""
    settings = PruningSettings.of(rig.spec)
    del seconds
    return asking.staged(rig, name, show, settings.files, settings.rows)
