"""A run's directory: three files, written beside a temporary name and renamed when they are whole."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol

from tidemark.paths import sync_directory, write_atomically
from tidemark.runs.coding.shapes import to_json
from tidemark.runs.manifest import Manifest


class Samples(Protocol):
    """What a window left behind, a row each: of its operations, or of the machine's seconds."""

    def write_parquet(self, path: Path) -> None:
        """Write them to `path`, a new file."""


def write_run(directory: Path, operations: Samples, seconds: Samples, manifest: Manifest) -> None:
    """Make `directory` with its three files, all of it at once.

    The rows of `operations` have at least the columns that `samples.OPERATION_COLUMNS` names, those of `seconds`
    those of `samples.MACHINE_COLUMNS`.
    """
    beside = directory.with_name(f".{directory.name}.writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    operations.write_parquet(beside / "operations.parquet")
    seconds.write_parquet(beside / "machine.parquet")
    write_atomically(beside / "run.json", to_json(manifest))
    for name in ("operations.parquet", "machine.parquet"):
        with (beside / name).open("rb") as file:
            os.fsync(file.fileno())
    sync_directory(beside)
    beside.rename(directory)
    sync_directory(directory.parent)
