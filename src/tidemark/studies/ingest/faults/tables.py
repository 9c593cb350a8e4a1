"""Table ingest-faults: the contents of tables after kills of writers, servers and fronts."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tidemark.analysis.words import Cell, Missing
from tidemark.results.tables.table import SYSTEM, Column, Table, Workshop
from tidemark.runs.run import Run
from tidemark.studies.ingest.columns import UNEQUAL
from tidemark.studies.ingest.faults.kills import Killed, Kills, killed_of, series_with_kills

WITHOUT = "rows are lost without any kill, see ingest-outcomes"


def build(workshop: Workshop) -> Iterator[Table]:
    """Yield the table ingest-faults."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in series_with_kills(workshop.run_set):
        for killed in killed_of(series):
            runs.append(killed.run)
            rows += [_row(killed, kills) for kills in killed.kills]
        if not series.runs:
            rows.append([series.title, Missing(series.missing()), *[None] * (len(COLUMNS) - 2)])
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
    yield workshop.table("ingest-faults", title, COLUMNS, rows, runs, notes)


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
    unread = next((kill["said"] for kill in kills.each if kill["said"]), "")
    why = f": cannot be read: {unread[:200]}" if unread else ""
    verdict = f"DOES NOT HOLD{why}" if kills.with_loss else "holds"
    return [
        killed.series.title,
        kills.title,
        killed.retry,
        verdict,
        len(kills.each),
        kills.with_loss,
        kills.at_most if killed.holds_undisturbed else Missing(WITHOUT),
        kills.total("acked"),
        median(kill["in_flight"] for kill in kills.each),
        *(kills.total(name) for name in ("unknown", "done", "not_done", "lost", "doubled", "partial")),
        killed.undisturbed["lost"],
        killed.orphans,
        median(kill["started_s"] for kill in kills.each),
        median(kills.down_s),
        max(kills.down_s),
    ]
