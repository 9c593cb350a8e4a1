"""Results of the kills: the tables ingest-faults and ingest-durability, and the finding."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import median

from tidemark.analysis.formatting import Cell, MissingCell
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.studies.ingest.fault_injection.kills import Killed, Kills, kept_sentence, killed_of, series_with_kills
from tidemark.studies.ingest.fault_injection.settings import FAULTS
from tidemark.studies.ingest.part import UNEQUAL, PartResults
from tidemark.studies.ingest.record import AtRisk, DurabilityRecord, Excused

WITHOUT = "rows are lost without any kill, see ingest-outcomes"


def faults(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-faults."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in series_with_kills(builder.run_set):
        for killed in killed_of(series):
            runs.append(killed.run)
            rows += [_row(killed, kills) for kills in killed.kills]
        if not series.runs:
            rows.append([series.title, MissingCell(series.missing()), *[None] * (len(COLUMNS) - 2)])
    notes = [
        "Two writers append to one table in a closed loop. At random moments a writer (its process) or a server (all "
        "its processes) gets SIGKILL and is started again at once; a writer is replaced by a new one, and writers "
        "whose server is gone open their clients again every 50 ms until one opens. Once all that it concerns have had "
        "a commit acknowledged that began after the kill, another client reads all ids: what was acknowledged before "
        "the kill must be there, once. Where no client can read the table any more, nothing more is killed.",
        "In a separate window, the buffer's process is killed, with requests waiting: a front (staged) that commits "
        "the requests of 32 clients. It is started again at once; a batch is a request, and a client connects again "
        "every 50 ms until it gets through.",
        "Unknown: the writer cannot know whether the batch is committed, because its call failed without a certain "
        "outcome, or the writer or the front was killed in it; its final status was read at the end. A writer that "
        "lives on sends it again never, after it looked for the commit's token and did not find it (check), or in any "
        "case (blind), as the key 'retry' sets; a batch that a front left open is not sent again.",
        "Down: from the kill until all commit again. Orphans: data files on the disk after the run that are not of the "
        "table. The bound is the upper end of a one-sided 95 % interval (Clopper and Pearson; 3 / n without a loss).",
        "A killed program loses what it had in memory, and not what it had given to the kernel: a power failure can "
        "lose more.",
        UNEQUAL,
    ]
    title = "What is there after a writer, a server or a buffer's process was killed"
    yield builder.table("ingest-faults", title, COLUMNS, rows, runs, notes)


COLUMNS = (
    SYSTEM, Column("victim", "Killed"), Column("retry", "Unknown is sent again"), Column("verdict", "Verdict"),
    Column("kills", "Kills"), Column("with_loss", "Kills with a loss"),
    Column("at_most", "Probability of a loss, below"), Column("acked", "Acknowledged batches"),
    Column("in_flight", "In flight at the kill, median"), Column("unknown", "Unknown"),
    Column("done", "Unknown: was done"), Column("not_done", "Unknown: was not"),
    Column("lost", "Lost rows"), Column("doubled", "Doubled rows"), Column("partial", "Batches in part"),
    Column("lost_before", "Lost rows before any kill"), Column("orphans", "Orphans of the run"),
    Column("started", "Started again, median", "s"), Column("down", "Down, median", "s"),
    Column("down_most", "Down, worst", "s"),
)  # fmt: skip


def _row(killed: Killed, kills: Kills) -> list[Cell]:
    unread = next((kill.said for kill in kills.each if kill.said), "")
    why = f": cannot be read: {unread[:200]}" if unread else ""
    verdict = f"DOES NOT HOLD{why}" if kills.with_loss else "holds"
    return [
        killed.series.title,
        kills.title,
        killed.retry,
        verdict,
        len(kills.each),
        kills.with_loss,
        kills.at_most if killed.holds_undisturbed else MissingCell(WITHOUT),
        kills.total("acked"),
        median(kill.in_flight for kill in kills.each),
        *(kills.total(name) for name in ("unknown", "done", "not_done", "lost", "doubled", "partial")),
        killed.undisturbed.lost,
        killed.orphans,
        median(kill.started_s for kill in kills.each),
        median(kills.down_s),
        max(kills.down_s),
    ]


def durability(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-durability."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in series_with_kills(builder.run_set, (FAULTS,)):
        for run in series.runs:
            runs.append(run)
            found = run.record(DurabilityRecord).durability
            rows.append([series.title, *_durability_cells(found), run.manifest.system.durability])
        if not series.runs:
            rows.append([series.title, MissingCell(series.missing()), *[None] * (len(DURABILITY) - 2)])
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
    yield builder.table("ingest-durability", title, DURABILITY, rows, runs, notes)


DURABILITY = (
    SYSTEM, Column("level", "Class"), Column("commits", "Commits"), Column("data_files", "Data files"),
    Column("dirty_data", "Dirty data files", "%"), Column("other_files", "Other files"),
    Column("dirty_other", "Dirty other files", "%"), Column("dirty_log", "Commits with a dirty log", "%"),
    Column("seconds", "Until safe", "s"), Column("promised", "Declared durability"),
)  # fmt: skip


def _durability_cells(found: AtRisk | Excused) -> list[Cell]:
    if isinstance(found, Excused):
        return [MissingCell(f"not measurable here: {found.excused}"), *[None] * (len(DURABILITY) - 3)]
    seconds: Cell = found.seconds
    if seconds is None:
        watched = found.watched_seconds
        seconds = MissingCell(f"more than {watched:g} s" if watched else "not waited for")
    return [
        found.level,
        found.commits,
        found.data_files,
        _percent(found.dirty_data_files, found.data_files),
        found.other_files,
        _percent(found.dirty_other_files, found.other_files),
        _percent(found.log_dirty, found.commits),
        seconds,
    ]


def _percent(part: int | None, whole: int) -> Cell:
    """Return `part` in percent of `whole`; None if there is nothing that could be dirty."""
    return None if part is None or not whole else 100 * part / whole


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield both tables."""
    yield from faults(builder)
    yield from durability(builder)


RESULTS = PartResults(
    tables=build,
    figures="tidemark.studies.ingest.fault_injection.figures",
    sentences=lambda measures: {"ingest-killed": partial(kept_sentence, measures.run_set)},
    findings=lambda measures: (partial(kept_sentence, measures.run_set),),
)
