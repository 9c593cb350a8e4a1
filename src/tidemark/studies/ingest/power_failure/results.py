"""Results of the power cuts: what runs record of them, the table of their losses, and their finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.analysis.formatting import Cell, MissingCell, listed, number
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, generator, share
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.columns import UNEQUAL
from tidemark.studies.ingest.fault_injection.results import Trials
from tidemark.studies.ingest.parts import CUT, of_part
from tidemark.studies.ingest.record import Excused, PowerCut, PowerCutRecord

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


def costly(series: Series) -> BootstrapEstimate:
    """Return the share of cuts that did not keep all acknowledged rows, with a Jeffreys interval.

    Or raise NotAvailable.
    """
    if not series.runs:
        raise NotAvailable(series.missing())
    cuts = Cuts.of(series)
    return share(cuts.with_loss, len(cuts.each), generator("cuts", series.id))


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-power-cut."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series in series_with_cuts(builder.run_set):
        runs += series.runs
        if series.runs:
            rows.append(_row(Cuts.of(series)))
        else:
            rows.append([series.title, None, MissingCell(series.missing()), *[None] * (len(COLUMNS) - 3)])
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
    yield builder.table("ingest-power-cut", title, COLUMNS, rows, runs, notes)


COLUMNS = (
    SYSTEM, Column("asked", "Durability asked for"), Column("verdict", "Verdict"), Column("level", "Class"),
    Column("cuts", "Cuts"), Column("with_loss", "Cuts with a loss"), Column("at_most", "Probability of a loss, below"),
    Column("acked", "Acknowledged rows"), Column("lost", "Lost rows"), Column("lost_share", "Lost", "%"),
    Column("oldest", "Oldest lost", "s"), Column("synced", "Rows before the window"),
    Column("synced_lost", "Lost of those"), Column("doubled", "Doubled rows"), Column("partial", "Batches in part"),
    Column("unknown", "Batches under way"), Column("done", "Of those there"), Column("files", "Data files"),
    Column("unreadable", "Unreadable files"), Column("left", "Lost rows left in files"),
    Column("promised", "Declared durability"),
)  # fmt: skip


def _row(cuts: Cuts) -> list[Cell]:
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
    said = f"The power is cut {count:,} time{'s' if count > 1 else ''} under two writers."
    for cuts in found:
        if cuts.with_loss:
            acked, lost = cuts.total("acked"), cuts.total("lost")
            readable = ", and no client can read the table any more" if cuts.unread else ""
            said += (
                f" {cuts.series.title} loses {lost:,} of {acked:,} acknowledged rows in {cuts.with_loss:,} of "
                f"{len(cuts.each):,}{readable}."
            )
    kept = [f"{cuts.series.title} ({number(cuts.at_most, 2)})" for cuts in found if not cuts.with_loss]
    if kept:
        said += (
            f" All that was acknowledged is there once in {listed(kept)}; in brackets, the upper bound of the "
            "probability of a loss after that many cuts without one (95 %)."
        )
    return said
