"""Writing of a run's directory: files go into a temporary directory, which is renamed once it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from tidemark.paths import sync_directory, write_atomically
from tidemark.runs.coding.serde import to_json
from tidemark.runs.manifest import Manifest


class Samples(Protocol):
    """Samples of a window, one row each: its operations, or the machine's seconds."""

    def write_parquet(self, path: Path) -> None:
        """Write the samples to `path`, a new file."""


NOTHING: Mapping[str, Samples] = MappingProxyType({})


def write_run(
    directory: Path, operations: Samples, seconds: Samples, manifest: Manifest, more: Mapping[str, Samples] = NOTHING
) -> None:
    """Create `directory` with all of its files atomically; `more` maps names to the workload's own samples.

    `operations` has at least the columns of `samples.OPERATION_COLUMNS`, and `seconds` those of
    `samples.MACHINE_COLUMNS`.
    """
    beside = directory.with_name(f".{directory.name}.writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for name, samples in {"operations": operations, "machine": seconds, **more}.items():
        path = beside / f"{name}.parquet"
        samples.write_parquet(path)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    write_atomically(beside / "run.json", to_json(manifest))
    sync_directory(beside)
    beside.rename(directory)
    sync_directory(directory.parent)
