"""Measurement window of queries, on a table with the series' number of files."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from tidemark.measure import asking
from tidemark.measure.workload import Rig, Show
from tidemark.studies.ingest.pruning.settings import PruningSettings

if TYPE_CHECKING:
    from tidemark.studies.ingest.workload import Ingest


def staged(
    ingest: Ingest, rig: Rig, name: str, seconds: float, show: Show, settings: PruningSettings
) -> AbstractContextManager[asking.AskingStage]:
    """Return the context manager of a stage: a filled table in the folder `name`, with an open client."""
    del ingest, seconds
    return asking.staged(rig, name, show, settings.files, settings.rows)
