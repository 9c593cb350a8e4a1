"""What of a commit is on the disk when it is acknowledged: its files, and the log of the catalog's database.

A commit's files are those that appeared below the table's folder while it was written. Each is asked for its dirty
pages right after the acknowledgement, before the kernel has a reason to write them back by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemark.machine import cachestat
from tidemark.services.base import Service, files_below
from tidemark.services.postgres import Postgres
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.window.oracle import OF_TABLE
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.measure.workload import Rig
    from tidemark.studies.ingest.workload import Ingest

COMMITS = 10  # whose files are looked at
LOOK_S = 0.1
NOTHING, RECORD, ALL = "D0", "D1", "D2"  # of a commit that is flushed: nothing, its record in the catalog, or all of it
OUTSIDE = "a server that it stands on was not started here"


@dataclass(frozen=True, slots=True)
class AtRisk:
    """Of so many commits; a file is dirty that has a page which is not on the disk at the acknowledgement.

    `seconds` are from the last acknowledgement until no file of these commits was dirty; None where that was not seen.
    """

    commits: int
    data_files: int
    dirty_data_files: int
    other_files: int  # of the table: its log, manifests, metadata
    dirty_other_files: int
    log_dirty: int | None  # commits at which the catalog's database had not flushed its log; None where there is none
    seconds: float | None
    watched_seconds: float  # the longest that one would have waited for that

    @property
    def level(self) -> str:
        """The class of the promise, as it was seen."""
        if self.dirty_data_files == self.dirty_other_files == 0 and not self.log_dirty:
            return ALL
        return NOTHING if self.log_dirty is None or self.log_dirty == self.commits else RECORD

    def plain(self) -> dict[str, Any]:
        names = ("commits", "data_files", "dirty_data_files", "other_files", "dirty_other_files", "log_dirty")
        found = {name: getattr(self, name) for name in names}
        return {**found, "seconds": self.seconds, "watched_seconds": self.watched_seconds, "level": self.level}


def look(
    table: TableSystem, batch: Callable[[int], pa.Table], folder: Path, postgres: Postgres | None, watch_seconds: float
) -> AtRisk | str:
    """Write batches to `table`, which keeps its files below `folder`, and look at each commit's; see `why_not` before.

    `postgres`: what holds the catalog, where one does. Why nothing can be told, where no commit's file is seen here.
    """
    writer = table.door().open()
    found: dict[Path, bool] = {}  # whether it was dirty
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
        return "its files are not on a disk of this machine"
    seconds = _until_safe(list(found), watch_seconds)
    data = {path for path in table.data_files() if path in found}
    others = set(found) - data
    return AtRisk(
        commits=COMMITS,
        data_files=len(data),
        dirty_data_files=sum(found[path] for path in data),
        other_files=len(others),
        dirty_other_files=sum(found[path] for path in others),
        log_dirty=None if postgres is None else log_dirty,
        seconds=seconds,
        watched_seconds=watch_seconds,
    )


def commits_at_risk(
    ingest: Ingest, rig: Rig, table: TableSystem, folder: Path, watch_seconds: float
) -> tuple[dict[str, Any], int]:
    """`look`, as JSON has it, or why nobody can tell as `excused`; and how many commits it took."""
    servers = rig.servers.by_class
    if reason := why_not(folder, servers.values()):
        return {"excused": reason}, 0
    batch = batches(ingest.trips, ingest.settings.rows, OF_TABLE)
    postgres = servers.get(Postgres)
    assert postgres is None or isinstance(postgres, Postgres)
    found = look(table, lambda number: batch(1 + number), folder, postgres, watch_seconds)
    return {"excused": found} if isinstance(found, str) else found.plain(), COMMITS


def why_not(folder: Path, services: Iterable[Service]) -> str | None:
    """Why nothing can be told of a table below `folder` that stands on `services`; None where it can."""
    if any(service.is_external for service in services):
        return OUTSIDE
    return cachestat.why_not(folder)


def _files(folder: Path) -> set[Path]:
    """Without what is no part of the table: such names begin with a dot."""
    below = (path for path in files_below(folder) if not path.name.startswith("."))
    return {path for path in below if not any(part.startswith(".") for part in path.relative_to(folder).parts)}


def _dirty(path: Path) -> bool:
    with suppress(FileNotFoundError):  # a file of the moment
        return cachestat.pages(path).at_risk > 0
    return False


def _until_safe(files: list[Path], watch_seconds: float) -> float | None:
    """Seconds until no page of `files` waits for the disk; None where some still do after `watch_seconds`."""
    began = time.monotonic()
    waiting = files
    while waiting := [path for path in waiting if _dirty(path)]:
        if time.monotonic() - began > watch_seconds:
            return None
        time.sleep(LOOK_S)
    return time.monotonic() - began
