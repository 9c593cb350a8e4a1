"""The trips: located, downloaded or generated, checked, and prepared for the stream."""

from __future__ import annotations

from pathlib import Path

from tidemark.dataset.download import can_download
from tidemark.dataset.prepare import prepare
from tidemark.dataset.source import acquire
from tidemark.paths import Workspace
from tidemark.runs.dataset import Provenance
from tidemark.settings import DatasetConfig

__all__ = ["Provenance", "acquire", "can_download", "make_dataset", "prepare"]


def make_dataset(chosen: DatasetConfig, seed: int, workspace: Workspace, target: Path) -> Provenance:
    """Acquire and check the trips that are `chosen` and write them to `target`, a Parquet file.

    `dataset.json` next to it holds the returned provenance. Raises DatasetError or HashMismatch if the trips
    cannot be used, DiskFull if they do not fit; `target` is then unchanged.
    """
    return prepare(acquire(chosen, seed, workspace), target, chosen.rows)
