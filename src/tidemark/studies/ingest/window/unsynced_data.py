"""Durability of a commit at its acknowledgement: pages not yet on disk of its files and of the catalog's WAL.

A commit's files are those that appeared below the table's folder while it was written. Each is checked for dirty
pages right after the acknowledgement, before the kernel has a reason to write them back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.machine import cachestat
from tidemark.services.base import files_below
from tidemark.services.postgres import Postgres
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.parts import settings_of
from tidemark.studies.ingest.record import AtRisk, Excused
from tidemark.studies.ingest.window.runner import OF_TABLE
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.measure.workload import TestBed

COMMITS = 10  # whose files are checked
LOOK_S = 0.1
NOTHING, RECORD, ALL = "D0", "D1", "D2"  # flushed part of a commit: nothing, its record in the catalog, or all of it
OUTSIDE = "a server that it stands on was not started here"


def durability_class(dirty_files: int, log_dirty: int | None, commits: int) -> str:
    """Return the class of `commits` commits by their dirty files, and by those with a dirty log (see `AtRisk`)."""
    if dirty_files == 0 and not log_dirty:
        return ALL
    return NOTHING if log_dirty is None or log_dirty == commits else RECORD


def look(
    table: TableSystem, batch: Callable[[int], pa.Table], folder: Path, postgres: Postgres | None, watch_seconds: float
) -> AtRisk | Excused:
    """Write batches to `table`, whose files lie below `folder`, and check the files of each commit.

    Call `cachestat.why_not` first. `postgres` holds the catalog, if any. Return a reason if no file appears here.
    """
    writer = table.client_factory().open()
    found: dict[Path, bool] = {}  # True if dirty
    log_dirty = 0
    known = _files(folder)
    for number in range(COMMITS):
        writer.write(batch(number))
        new = _files(folder) - known
        found |= {path: _dirty(path) for path in new}
        if postgres is not None:
            log_dirty += any(_dirty(path) for path in postgres.log_files())
        known |= new
    writer.close()
    if not found and not table.inlined_rows():
        return Excused("its files are not on a disk of this machine")
    seconds = _until_safe(list(found), watch_seconds)
    data = {path for path in table.data_files() if path in found}
    others = set(found) - data
    log = None if postgres is None else log_dirty
    return AtRisk(
        commits=COMMITS,
        data_files=len(data),
        dirty_data_files=sum(found[path] for path in data),
        other_files=len(others),
        dirty_other_files=sum(found[path] for path in others),
        log_dirty=log,
        seconds=seconds,
        watched_seconds=watch_seconds,
        level=durability_class(sum(found.values()), log, COMMITS),
    )


def commits_at_risk(
    test_bed: TestBed, table: TableSystem, folder: Path, watch_seconds: float
) -> tuple[AtRisk | Excused, int]:
    """Return the result of `look`, or the reason if it is not possible, and the number of commits made."""
    servers = test_bed.servers.by_class
    is_outside = any(service.is_external for service in servers.values())
    if reason := OUTSIDE if is_outside else cachestat.why_not(folder):
        return Excused(reason), 0
    batch = batches(test_bed.workload.trips, settings_of(test_bed.spec).rows, OF_TABLE)
    postgres = servers.get(Postgres)
    assert postgres is None or isinstance(postgres, Postgres)
    return look(table, lambda number: batch(1 + number), folder, postgres, watch_seconds), COMMITS


def _files(folder: Path) -> set[Path]:
    """Return the table's files; files and folders whose names begin with a dot are not part of it."""
    below = (path for path in files_below(folder) if not path.name.startswith("."))
    return {path for path in below if not any(part.startswith(".") for part in path.relative_to(folder).parts)}


def _dirty(path: Path) -> bool:
    with suppress(FileNotFoundError):  # a temporary file
        return cachestat.at_risk(path) > 0
    return False


def _until_safe(files: list[Path], watch_seconds: float) -> float | None:
    """Return the seconds until no page of `files` is dirty, or None if some still are after `watch_seconds`."""
    began = time.monotonic()
    waiting = files
    while waiting := [path for path in waiting if _dirty(path)]:
        if time.monotonic() - began > watch_seconds:
            return None
        time.sleep(LOOK_S)
    return time.monotonic() - began
