"""The trips: found, fetched or made, checked, and prepared for the stream."""

from __future__ import annotations

from pathlib import Path

from tidemark.dataset.download import can_download
from tidemark.dataset.prepare import Prepared, prepare
from tidemark.dataset.source import Acquired, DatasetSettings, acquire
from tidemark.paths import Workspace
from tidemark.runs.dataset import Provenance

__all__ = [
    "Acquired",
    "DatasetSettings",
    "Prepared",
    "Provenance",
    "acquire",
    "can_download",
    "make_dataset",
    "prepare",
]


def make_dataset(settings: DatasetSettings, workspace: Workspace, target: Path) -> Provenance:
    """Acquire and check the trips that `settings` ask for and write them to `target`, a Parquet file.

    `dataset.json` beside it holds the provenance that is returned. Raises DatasetError or HashMismatch
    where the trips cannot be used, DiskFull where they do not fit; then `target` is what it was before.
    """
    return prepare(acquire(settings, workspace), target, settings.rows).provenance
