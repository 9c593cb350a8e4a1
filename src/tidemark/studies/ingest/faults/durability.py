"""Table ingest-durability: the parts of a commit that are on disk when it is acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidemark.analysis.words import Cell, Missing
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.studies.ingest.faults.kills import series_with_kills
from tidemark.studies.ingest.faults.settings import FAULTS


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the table ingest-durability."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in series_with_kills(workshop.run_set, (FAULTS,)):
        for run in series.runs:
            runs.append(run)
            found: dict[str, Any] = dict(run.manifest.found)["durability"]
            rows.append([series.title, *_cells(found), run.manifest.system.durability])
        if not series.runs:
            rows.append([series.title, Missing(series.missing()), *[None] * (len(COLUMNS) - 2)])
    notes = [
        "After the window with kills, a client commits some batches; right after each acknowledgement the kernel is "
        "asked (cachestat) for the pages of the files that the commit made. A file is dirty if it has a page that "
        "is not on the disk, or on its way there: a power failure at that moment loses it, a kill of a program does "
        "not. The log is the write-ahead log of the catalog's PostgreSQL.",
        "Classes, as seen: D0, nothing of a commit is flushed; D1, its record in the catalog is, and its files are "
        "not, so that after a power failure the catalog can name files that are empty; D2, all of it is. Until safe: "
        "from the last acknowledgement until the kernel has written those files by itself; above the longest wait, "
        "where it had not by then. The power is not cut here, and a disk's own cache is not seen.",
    ]
    title = "What of a commit is on the disk when it is acknowledged"
    yield workshop.table("ingest-durability", title, COLUMNS, rows, runs, notes)


COLUMNS = (
    SYSTEM, Column("level", "Class"), Column("commits", "Commits"), Column("data_files", "Data files"),
    Column("dirty_data", "Dirty data files", "%"), Column("other_files", "Other files"),
    Column("dirty_other", "Dirty other files", "%"), Column("dirty_log", "Commits with a dirty log", "%"),
    Column("seconds", "Until safe", "s"), Column("promised", "Declared durability"),
)  # fmt: skip


def _cells(found: dict[str, Any]) -> list[Cell]:
    if "excused" in found:
        return [Missing(f"not measurable here: {found['excused']}"), *[None] * (len(COLUMNS) - 3)]
    seconds: Cell = found["seconds"]
    if seconds is None:
        watched = found["watched_seconds"]
        seconds = Missing(f"more than {watched:g} s" if watched else "not waited for")
    return [
        found["level"],
        found["commits"],
        found["data_files"],
        _percent(found["dirty_data_files"], found["data_files"]),
        found["other_files"],
        _percent(found["dirty_other_files"], found["other_files"]),
        _percent(found["log_dirty"], found["commits"]),
        seconds,
    ]


def _percent(part: int | None, whole: int) -> Cell:
    """Return `part` in percent of `whole`; None if there is nothing that could be dirty."""
    return None if part is None or not whole else 100 * part / whole
