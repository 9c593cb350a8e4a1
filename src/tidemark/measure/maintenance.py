"""Flush and merge after a window: only the client's call is timed; its effects are determined outside of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from tidemark.errors import DiskFull, SystemFailure, TidemarkError, is_disk_full
from tidemark.runs.manifest import Flush, Merge
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem


def flush(system: TableSystem) -> Flush | None:
    """Move inlined rows to Parquet; return None if the system inlines nothing."""
    if Capability.FLUSH not in system.capabilities:
        return None
    # Counted here rather than by the client: DuckLake 0.3 reports nothing, and may count rows twice.
    rows, before = system.inlined_rows(), set(system.data_files())
    seconds = timed("flush", system.flush)
    files, size = system.weigh(set(system.data_files()) - before)
    return Flush(seconds, rows - system.inlined_rows(), files, size)


def merge(system: TableSystem) -> Merge | None:
    """Replace small files by larger ones; return None if the system has no such operation."""
    if Capability.MERGE not in system.capabilities:
        return None
    before = system.weigh(system.data_files())
    seconds = timed("merge", system.merge)
    after = system.weigh(system.data_files())
    return Merge(seconds, before[0], after[0], before[1], after[1])


def timed(what: str, call: Callable[[], object]) -> float:
    """Return the seconds that `call` takes; raise SystemFailure or DiskFull, naming `what`, if it fails."""
    began = time.perf_counter()
    try:
        call()
    except Exception as error:
        raise _of_system(what, error) from error
    return time.perf_counter() - began


def _of_system(what: str, error: Exception) -> TidemarkError:
    if is_disk_full(error):
        return DiskFull(f"{what}: no room left on the device: {error}")
    return SystemFailure(f"{what} failed: {type(error).__name__}: {error}")
