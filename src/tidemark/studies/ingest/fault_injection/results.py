"""Results of kills of writers, servers and fronts: the tables ingest-faults and ingest-durability, and the finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tidemark.analysis.formatting import Cell, MissingCell, listed, number
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, at_most, generator, share
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.columns import UNEQUAL
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.parts import FAULTS, FRONT, FaultSettings, of_part, part_name
from tidemark.studies.ingest.record import (
    AtRisk,
    CommitRecord,
    DurabilityRecord,
    Excused,
    FaultsRecord,
    Loss,
    PowerCut,
    Undisturbed,
)

WITHOUT = "rows are lost without any kill, see ingest-outcomes"


@dataclass(frozen=True, slots=True)
class Trials[T: (Loss, PowerCut)]:
    """Kills, or power cuts, of one series, in time order."""

    series: Series
    each: tuple[T, ...]

    @property
    def unread(self) -> str:
        """The reason why the table could not be read after one of them; empty if it could after all."""
        return next((trial.said for trial in self.each if trial.said), "")

    def total(self, name: str) -> int:
        return sum(getattr(trial, name) for trial in self.each)

    @property
    def with_loss(self) -> int:
        """Number after which a row was lost or doubled, a batch was partial, or the table was unreadable."""
        return sum(not trial.holds for trial in self.each)

    @property
    def at_most(self) -> float:
        """Upper bound (95 %) on the probability that one costs something, by this number of them."""
        return at_most(self.with_loss, len(self.each))


@dataclass(frozen=True, slots=True)
class Kills(Trials[Loss]):
    """All kills of one victim in one run. Counts are batches, except `lost` and `doubled`, which are rows."""

    title: str  # of the victim

    @property
    def is_unread(self) -> bool:
        """True if the table could not be read after the last kill."""
        return bool(self.each[-1].said)

    @property
    def down_s(self) -> list[float]:
        """Seconds from each kill until all affected writers had a commit acknowledged again."""
        return [kill.down_s for kill in self.each]


@dataclass(frozen=True, slots=True)
class Killed:
    """One run with kills; `orphans` are data files on disk after it that are not part of the table."""

    series: Series
    run: Run
    kills: tuple[Kills, ...]  # by victim
    undisturbed: Undisturbed  # findings before the first kill
    orphans: int

    @property
    def retry(self) -> str:
        """The writers' handling of a batch of unknown outcome."""
        return retry_of(self.series)

    @property
    def named(self) -> str:
        """The system's title, and whether its writers resend batches."""
        also = {NEVER: "", CHECK: ", sent again after a look", BLIND: ", sent again blindly"}
        return f"{self.series.title}{also[self.retry]}"

    @property
    def holds_undisturbed(self) -> bool:
        """True if nothing was wrong before the first kill; otherwise a kill may not be the cause of a later loss."""
        return self.undisturbed.holds

    @property
    def each(self) -> list[Loss]:
        """All kills, in time order."""
        return sorted((kill for kills in self.kills for kill in kills.each), key=lambda kill: kill.moment_s)

    @property
    def with_loss(self) -> int:
        return sum(kills.with_loss for kills in self.kills)


def retry_of(series: Series) -> str:
    """Return the key `retry` of a series with kills; a front's clients send no batch again."""
    return FaultSettings.of(series).retry if part_name(series) == FAULTS else NEVER


def series_with_kills(run_set: RunSet, parts: Sequence[str] = (FAULTS, FRONT)) -> tuple[Series, ...]:
    """Return the series of these parts, including those without runs."""
    return tuple(series for part in parts for series in of_part(run_set, part).select(harness=False))


def killed_of(series: Series) -> Iterator[Killed]:
    """Yield each run of a series with kills."""
    for run in series.runs:
        faults = run.record(FaultsRecord).faults
        titles = dict.fromkeys(kill.title for kill in faults.kills)
        yield Killed(
            series=series,
            run=run,
            kills=tuple(
                Kills(series, tuple(kill for kill in faults.kills if kill.title == title), title) for title in titles
            ),
            undisturbed=faults.undisturbed,
            orphans=max(0, run.footprint.data_files - run.record(CommitRecord).referenced_files),
        )


def all_killed(run_set: RunSet) -> list[Killed]:
    """Return the runs with kills of all series; raise NotAvailable if nothing was killed."""
    found = [killed for series in series_with_kills(run_set) for killed in killed_of(series)]
    if not found:
        raise NotAvailable("nothing was killed")
    return found


def costly(series: Series) -> BootstrapEstimate:
    """Return the share of kills after which an acknowledged row was not present once, with a Jeffreys interval.

    Raise NotAvailable if nothing was killed, or if rows are lost without any kill.
    """
    found = list(killed_of(series))
    if not found:
        raise NotAvailable(series.missing())
    if not all(killed.holds_undisturbed for killed in found):
        raise NotAvailable(f"{series.title} loses rows without any kill")
    bad, tried = sum(killed.with_loss for killed in found), sum(len(killed.each) for killed in found)
    return share(bad, tried, generator("kills", series.id))


def twice(found: Sequence[Series]) -> BootstrapEstimate:
    """Return the share of kills after which a row is doubled in a table of these series, with a Jeffreys interval."""
    each = [kill for series in found for killed in killed_of(series) for kill in killed.each]
    if not each:
        raise NotAvailable(
            "no writer sent a batch of an unknown outcome again: the key ingest.retry sets whether one does"
        )
    bad = sum(kill.doubled > 0 for kill in each)
    return share(bad, len(each), generator("twice", *(series.id for series in found)))


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the tables ingest-faults and ingest-durability."""
    yield _faults(builder)
    yield _durability(builder)


def _faults(builder: TableBuilder) -> Table:
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
    return builder.table("ingest-faults", title, COLUMNS, rows, runs, notes)


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
    why = f": cannot be read: {kills.unread[:200]}" if kills.unread else ""
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


def _durability(builder: TableBuilder) -> Table:
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
    return builder.table("ingest-durability", title, DURABILITY, rows, runs, notes)


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


def kept_sentence(run_set: RunSet) -> str:
    """Return the sentence on the tables after kills, and on the bound that they set for the next one."""
    found = all_killed(run_set)
    each = [kill for killed in found for kill in killed.each]
    said = f"While rows are appended to a table, a process that writes them or a server is killed {len(each):,} times."
    for killed in found:
        for kills in killed.kills:
            if kills.with_loss:
                also = "" if killed.holds_undisturbed else ", as it does without any kill"
                gone = f"{kills.total('lost'):,} acknowledged rows are lost and {kills.total('doubled'):,} doubled"
                what = "no client can read the table any more" if kills.is_unread else gone
                said += (
                    f" {killed.named} does not hold: after {kills.with_loss:,} of {len(kills.each):,} kills of "
                    f"{kills.title}, {what}{also}."
                )
    kept = [
        f"{killed.named} ({', '.join(f'{kills.title} {number(kills.at_most, 2)}' for kills in killed.kills)})"
        for killed in found
        if not killed.with_loss
    ]
    if kept:
        said += (
            f" All that was acknowledged is there once in {listed(kept)}; in brackets, what was killed, and the "
            "upper bound of the probability of a loss after that many kills without one (95 %)."
        )
    return said
