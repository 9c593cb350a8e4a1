"""Results of kills and power cuts: the tables ingest-faults, ingest-durability and ingest-power-cut, and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tidemark.analysis.formatting import Cell, MissingCell, listed, number
from tidemark.analysis.metrics import NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, at_most, generator, share
from tidemark.results.report.summary_table import with_runs
from tidemark.results.tables import table
from tidemark.results.tables.table import Column, ComputedColumn, Row, Table, TableBuilder, part_column
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.views import all_runs
from tidemark.studies.ingest import record
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER
from tidemark.studies.ingest.parts import CUT, FAULTS, FRONT, FaultSettings, of_part, part_name
from tidemark.studies.ingest.tables.writers import NOTES, UNEQUAL

LONGEST = 200  # characters shown of a reader's error
WITHOUT = "rows are lost without any kill, see ingest-outcomes"


@dataclass(frozen=True, slots=True)
class Trials[T: (record.Loss, record.PowerCut)]:
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
class Kills(Trials[record.Loss]):
    """All kills of one victim in one run. Counts are batches, except `lost` and `doubled`, which are rows."""

    title: str  # of the victim

    @property
    def verdict(self) -> str:
        why = f": cannot be read: {self.unread[:LONGEST]}" if self.unread else ""
        return f"DOES NOT HOLD{why}" if self.with_loss else "holds"

    def median(self, name: str) -> float:
        found: float = median(getattr(kill, name) for kill in self.each)
        return found


@dataclass(frozen=True, slots=True)
class Killed:
    """One run with kills; `orphans` are data files on disk after it that are not part of the table."""

    series: Series
    run: Run
    kills: tuple[Kills, ...]  # by victim
    undisturbed: record.Undisturbed  # unless it holds, a kill may not be the cause of a later loss
    orphans: int

    @property
    def named(self) -> str:
        """The system's title, and whether its writers resend batches."""
        also = {NEVER: "", CHECK: ", sent again after a look", BLIND: ", sent again blindly"}
        return f"{self.series.title}{also[retry_of(self.series)]}"

    @property
    def each(self) -> list[record.Loss]:
        """All kills, in time order."""
        return sorted((kill for kills in self.kills for kill in kills.each), key=lambda kill: kill.moment_s)

    @property
    def with_loss(self) -> int:
        return sum(kills.with_loss for kills in self.kills)


def retry_of(series: Series) -> str:
    """Return the key `retry` of a series with kills; a front's clients send no batch again."""
    return FaultSettings.of(series).retry if part_name(series) == FAULTS else NEVER


def series_with_kills(
    run_set: RunSet, parts: Sequence[str] = (FAULTS, FRONT), stack: str | None = None
) -> tuple[Series, ...]:
    """Return the series of these parts under a stack, by default the first, including those without runs."""
    return tuple(series for part in parts for series in of_part(run_set, part).select(stack=stack, harness=False))


def killed_of(series: Series) -> Iterator[Killed]:
    """Yield each run of a series with kills."""
    for run in series.runs:
        faults = run.record(record.Losses)
        titles = dict.fromkeys(kill.title for kill in faults.kills)
        yield Killed(
            series=series,
            run=run,
            kills=tuple(
                Kills(series, tuple(kill for kill in faults.kills if kill.title == title), title) for title in titles
            ),
            undisturbed=faults.undisturbed,
            orphans=max(0, run.footprint.data_files - run.record(record.CommitRecord).referenced_files),
        )


def all_killed(run_set: RunSet) -> list[Killed]:
    """Return the runs with kills of all series; raise NotAvailable if nothing was killed."""
    found = [killed for series in series_with_kills(run_set) for killed in killed_of(series)]
    return require(found, "nothing was killed")


def costly(series: Series) -> BootstrapEstimate:
    """Return the share of kills after which an acknowledged row was not present once, with a Jeffreys interval.

    Raise NotAvailable if nothing was killed, or if rows are lost without any kill.
    """
    found = require(list(killed_of(series)), series.missing())
    require(all(killed.undisturbed.holds for killed in found), f"{series.title} loses rows without any kill")
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


def _faults(builder: TableBuilder) -> Table:
    def bound(found: tuple[Killed, Kills]) -> Cell:
        killed, kills = found
        return kills.at_most if killed.undisturbed.holds else MissingCell(WITHOUT)

    columns: list[ComputedColumn[Row[tuple[Killed, Kills]]]] = [
        *table.series_columns(table.SYSTEM_OF_SERIES),
        table.with_reason(part_column("victim", "Killed", lambda found: found[1].title)),
        part_column("retry", "Unknown is sent again", lambda found: retry_of(found[0].series)),
        part_column("verdict", "Verdict", lambda found: found[1].verdict),
        part_column("kills", "Kills", lambda found: len(found[1].each)),
        part_column("with_loss", "Kills with a loss", lambda found: found[1].with_loss),
        part_column("at_most", "Probability of a loss, below", bound),
        part_column("acked", "Acknowledged batches", lambda found: found[1].total("acked")),
        part_column("in_flight", "In flight at the kill, median", lambda found: found[1].median("in_flight")),
        part_column("unknown", "Unknown", lambda found: found[1].total("unknown")),
        part_column("done", "Unknown: was done", lambda found: found[1].total("done")),
        part_column("not_done", "Unknown: was not", lambda found: found[1].total("not_done")),
        part_column("lost", "Lost rows", lambda found: found[1].total("lost")),
        part_column("doubled", "Doubled rows", lambda found: found[1].total("doubled")),
        part_column("partial", "Batches in part", lambda found: found[1].total("partial")),
        part_column("lost_before", "Lost rows before any kill", lambda found: found[0].undisturbed.lost),
        part_column("orphans", "Orphans of the run", lambda found: found[0].orphans),
        part_column("started", "Started again, median", lambda found: found[1].median("started_s"), "s"),
        part_column("down", "Down, median", lambda found: found[1].median("down_s"), "s"),
        part_column("down_most", "Down, worst", lambda found: max(kill.down_s for kill in found[1].each), "s"),
    ]
    chosen, rows = series_with_kills(builder.run_set), list[Row[tuple[Killed, Kills]]]()
    for series in chosen:
        found = [(killed, kills) for killed in killed_of(series) for kills in killed.kills]
        rows += [Row(series, each) for each in found] if series.runs else [Row(series, None)]
    notes = [*NOTES("ingest-faults"), UNEQUAL]
    title = "What is there after a writer, a server or a buffer's process was killed"
    return builder.computed_table("ingest-faults", title, columns, rows, all_runs(chosen), notes)


def _durability(builder: TableBuilder) -> Table:
    rows: list[list[Cell]] = []
    chosen = series_with_kills(builder.run_set, (FAULTS,))
    for series in chosen:
        for run in series.runs:
            found = run.record(record.DurabilityRecord).durability
            rows.append([series.title, *_durability_cells(found), run.manifest.system.durability])
        rows += [] if series.runs else [[series.title, MissingCell(series.missing())]]
    title = "What of a commit is on the disk when it is acknowledged"
    return builder.table("ingest-durability", title, DURABILITY, rows, all_runs(chosen), NOTES("ingest-durability"))


DURABILITY = (
    table.SYSTEM, Column("level", "Class"), Column("commits", "Commits"), Column("data_files", "Data files"),
    Column("dirty_data", "Dirty data files", "%"), Column("other_files", "Other files"),
    Column("dirty_other", "Dirty other files", "%"), Column("dirty_log", "Commits with a dirty log", "%"),
    Column("seconds", "Until safe", "s"), Column("promised", "Declared durability"),
)  # fmt: skip


def _durability_cells(found: record.AtRisk | record.Excused) -> list[Cell]:
    if isinstance(found, record.Excused):
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
                also = "" if killed.undisturbed.holds else ", as it does without any kill"
                gone = f"{kills.total('lost'):,} acknowledged rows are lost and {kills.total('doubled'):,} doubled"
                what = "no client can read the table any more" if kills.each[-1].said else gone
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


@dataclass(frozen=True, slots=True)
class Cuts(Trials[record.PowerCut]):
    """Power cuts of one series; those before which the disk was flushed are left out if there are others."""

    @classmethod
    def of(cls, series: Series) -> Cuts:
        counted = [run for run in series.runs if record.FLUSHED not in run.manifest.marks] or series.runs
        return cls(series, tuple(run.record(record.PowerCutRecord).cut for run in counted))

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
        return _durability_cells(self.each[0].at_acknowledgement)[0]


def series_with_cuts(run_set: RunSet) -> tuple[Series, ...]:
    """Return the series of the part, including those without runs."""
    return of_part(run_set, CUT).select(harness=False)


def costly_cuts(series: Series) -> BootstrapEstimate:
    """Return the share of cuts that did not keep all acknowledged rows, with a Jeffreys interval.

    Or raise NotAvailable.
    """
    require(series.runs, series.missing())
    cuts = Cuts.of(series)
    return share(cuts.with_loss, len(cuts.each), generator("cuts", series.id))


def _power_cut(builder: TableBuilder) -> Table:
    def total(key: str, title: str, name: str = "") -> ComputedColumn[Row[Cuts]]:
        return part_column(key, title, lambda cuts: cuts.total(name or key))

    columns: list[ComputedColumn[Row[Cuts]]] = [
        *table.series_columns(table.SYSTEM_OF_SERIES),
        part_column("asked", "Durability asked for", lambda cuts: cuts.series.runs[0].manifest.system.durability_level),
        table.with_reason(part_column("verdict", "Verdict", lambda cuts: cuts.verdict)),
        part_column("level", "Class", lambda cuts: cuts.level),
        part_column("cuts", "Cuts", lambda cuts: len(cuts.each)),
        part_column("with_loss", "Cuts with a loss", lambda cuts: cuts.with_loss),
        part_column("at_most", "Probability of a loss, below", lambda cuts: cuts.at_most),
        total("acked", "Acknowledged rows"),
        total("lost", "Lost rows"),
        part_column("lost_share", "Lost", lambda cuts: 100 * cuts.total("lost") / cuts.total("acked"), "%"),
        part_column("oldest", "Oldest lost", lambda cuts: cuts.oldest_lost_s, "s"),
        total("synced", "Rows before the window"),
        total("synced_lost", "Lost of those"),
        total("doubled", "Doubled rows"),
        total("partial", "Batches in part"),
        total("unknown", "Batches under way"),
        total("done", "Of those there"),
        total("files", "Data files", "data_files"),
        total("unreadable", "Unreadable files", "unreadable_files"),
        total("left", "Lost rows left in files", "left_in_files"),
        part_column("promised", "Declared durability", lambda cuts: cuts.series.runs[0].manifest.system.durability),
    ]
    chosen = series_with_cuts(builder.run_set)
    rows = [Row(series, Cuts.of(series) if series.runs else None) for series in chosen]
    notes = [*NOTES("ingest-power-cut"), UNEQUAL]
    title = "What is there after the power was cut"
    return builder.computed_table("ingest-power-cut", title, columns, rows, all_runs(chosen), notes)


def cut_sentence(run_set: RunSet) -> str:
    """Return the sentence on what power cuts leave of acknowledged rows; raise NotAvailable if no power was cut."""
    found = [Cuts.of(each) for each in with_runs(series_with_cuts(run_set), "no power was cut")]
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


build = table.tables_by(_faults, _durability, _power_cut)
