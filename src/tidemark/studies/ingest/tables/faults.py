"""Results of kills and power cuts: the tables ingest-faults, ingest-durability and ingest-power-cut, and findings."""

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
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.parts import CUT, FAULTS, FRONT, FaultSettings, of_part, part_name
from tidemark.studies.ingest.record import (
    AtRisk,
    CommitRecord,
    DurabilityRecord,
    Excused,
    FaultsRecord,
    Loss,
    PowerCut,
    PowerCutRecord,
    Undisturbed,
)
from tidemark.studies.ingest.tables.columns import UNEQUAL

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
    """Yield the tables ingest-faults, ingest-durability and ingest-power-cut."""
    yield _faults(builder)
    yield _durability(builder)
    yield _power_cut(builder)


def _faults(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in series_with_kills(builder.run_set):
        for killed in killed_of(series):
            runs.append(killed.run)
            rows += [_faults_row(killed, kills) for kills in killed.kills]
        if not series.runs:
            rows.append([series.title, MissingCell(series.missing()), *[None] * (len(FAULTS_COLUMNS) - 2)])
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
    return builder.table("ingest-faults", title, FAULTS_COLUMNS, rows, runs, notes)


FAULTS_COLUMNS = (
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


def _faults_row(killed: Killed, kills: Kills) -> list[Cell]:
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
    text = f"While rows are appended to a table, a process that writes them or a server is killed {len(each):,} times."
    for killed in found:
        for kills in killed.kills:
            if kills.with_loss:
                also = "" if killed.holds_undisturbed else ", as it does without any kill"
                gone = f"{kills.total('lost'):,} acknowledged rows are lost and {kills.total('doubled'):,} doubled"
                what = "no client can read the table any more" if kills.is_unread else gone
                text += (
                    f" {killed.named} does not hold: after {kills.with_loss:,} of {len(kills.each):,} kills of "
                    f"{kills.title}, {what}{also}."
                )
    kept = [
        f"{killed.named} ({', '.join(f'{kills.title} {number(kills.at_most, 2)}' for kills in killed.kills)})"
        for killed in found
        if not killed.with_loss
    ]
    if kept:
        text += (
            f" All that was acknowledged is there once in {listed(kept)}; in brackets, what was killed, and the "
            "upper bound of the probability of a loss after that many kills without one (95 %)."
        )
    return text


UNREAD = "CANNOT BE READ"
LONGEST = 200  # characters shown of a reader's error


@dataclass(frozen=True, slots=True)
class Cuts(Trials[PowerCut]):
    """All power cuts of one series."""

    @classmethod
    def of(cls, series: Series) -> Cuts:
        return cls(series, tuple(run.record(PowerCutRecord).cut for run in series.runs))

    @property
    def asked(self) -> str:
        """The durability level requested from the system."""
        return str(self.series.runs[0].manifest.system.durability_level)

    @property
    def oldest_lost_s(self) -> float | None:
        return max((cut.oldest_lost_s for cut in self.each if cut.oldest_lost_s is not None), default=None)

    @property
    def verdict(self) -> str:
        if self.unread:
            return f"{UNREAD}: {self.unread[:LONGEST]}"
        return "DOES NOT HOLD" if self.with_loss else "holds"

    @property
    def level(self) -> Cell:
        """The durability class by the kernel's page state after commits before the window, or MissingCell."""
        found = self.each[0].at_acknowledgement
        return MissingCell(f"not measurable here: {found.excused}") if isinstance(found, Excused) else found.level


def series_with_cuts(run_set: RunSet) -> tuple[Series, ...]:
    """Return the series of the part, including those without runs."""
    return of_part(run_set, CUT).select(harness=False)


def all_cuts(run_set: RunSet) -> list[Cuts]:
    """Return the cuts of each series with runs.

    Raise NotAvailable, with the reason if it is known, if there are none.
    """
    found = series_with_cuts(run_set)
    done = [Cuts.of(series) for series in found if series.runs]
    if not done:
        raise NotAvailable(found[0].missing() if found else "no power was cut")
    return done


def costly_cuts(series: Series) -> BootstrapEstimate:
    """Return the share of cuts that did not keep all acknowledged rows, with a Jeffreys interval.

    Or raise NotAvailable.
    """
    if not series.runs:
        raise NotAvailable(series.missing())
    cuts = Cuts.of(series)
    return share(cuts.with_loss, len(cuts.each), generator("cuts", series.id))


def _power_cut(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in series_with_cuts(builder.run_set):
        runs += series.runs
        if series.runs:
            rows.append(_cut_row(Cuts.of(series)))
        else:
            rows.append([series.title, None, MissingCell(series.missing()), *[None] * (len(CUT_COLUMNS) - 3)])
    notes = [
        "The table and its servers' data lie on an ext4 file system (mounted as the kernel does by default) in a file. "
        "Two writers append in a closed loop; at a random moment of the window's second half all their processes and "
        "those of the servers stand still, and the file is copied, until a copy and what is there after it are the "
        "same: no block was written between. The copy is mounted in place of the disk, the servers start on it, and "
        "another client reads the table. The writers' records lie elsewhere.",
        "What is in the copy is what a power failure at that moment leaves, with what the kernel alone has in memory "
        "lost. A disk's own volatile cache is not modelled: what was sent to the disk counts as written, so that a "
        "real failure can lose more.",
        "Acknowledged: by the writers in the window. Before it: the table's first commits, which were synced. Lost: "
        "not seen by that client; all of it, where it cannot read the table. Left in files: lost rows that are in a "
        "data file which can be read by itself. Unreadable files are empty or without their end. Oldest: how long "
        "before the cut the first lost row had been acknowledged. Class as in ingest-durability, by commits before the "
        "window. The bound is the upper end of a one-sided 95 % interval (Clopper and Pearson).",
        UNEQUAL,
    ]
    title = "What is there after the power was cut"
    return builder.table("ingest-power-cut", title, CUT_COLUMNS, rows, runs, notes)


CUT_COLUMNS = (
    SYSTEM, Column("asked", "Durability asked for"), Column("verdict", "Verdict"), Column("level", "Class"),
    Column("cuts", "Cuts"), Column("with_loss", "Cuts with a loss"), Column("at_most", "Probability of a loss, below"),
    Column("acked", "Acknowledged rows"), Column("lost", "Lost rows"), Column("lost_share", "Lost", "%"),
    Column("oldest", "Oldest lost", "s"), Column("synced", "Rows before the window"),
    Column("synced_lost", "Lost of those"), Column("doubled", "Doubled rows"), Column("partial", "Batches in part"),
    Column("unknown", "Batches under way"), Column("done", "Of those there"), Column("files", "Data files"),
    Column("unreadable", "Unreadable files"), Column("left", "Lost rows left in files"),
    Column("promised", "Declared durability"),
)  # fmt: skip


def _cut_row(cuts: Cuts) -> list[Cell]:
    acked, lost = cuts.total("acked"), cuts.total("lost")
    return [
        cuts.series.title,
        cuts.asked,
        cuts.verdict,
        cuts.level,
        len(cuts.each),
        cuts.with_loss,
        cuts.at_most,
        acked,
        lost,
        100 * lost / acked,
        cuts.oldest_lost_s,
        *(cuts.total(name) for name in ("synced", "synced_lost", "doubled", "partial", "unknown", "done")),
        cuts.total("data_files"),
        cuts.total("unreadable_files"),
        cuts.total("left_in_files"),
        cuts.series.runs[0].manifest.system.durability,
    ]


def cut_sentence(run_set: RunSet) -> str:
    """Return the sentence on what power cuts leave of acknowledged rows."""
    found = all_cuts(run_set)
    count = sum(len(cuts.each) for cuts in found)
    text = f"The power is cut {count:,} time{'s' if count > 1 else ''} under two writers."
    for cuts in found:
        if cuts.with_loss:
            acked, lost = cuts.total("acked"), cuts.total("lost")
            readable = ", and no client can read the table any more" if cuts.unread else ""
            text += (
                f" {cuts.series.title} loses {lost:,} of {acked:,} acknowledged rows in {cuts.with_loss:,} of "
                f"{len(cuts.each):,}{readable}."
            )
    kept = [f"{cuts.series.title} ({number(cuts.at_most, 2)})" for cuts in found if not cuts.with_loss]
    if kept:
        text += (
            f" All that was acknowledged is there once in {listed(kept)}; in brackets, the upper bound of the "
            "probability of a loss after that many cuts without one (95 %)."
        )
    return text
