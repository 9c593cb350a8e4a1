"""Recorded kills of writers, servers and fronts: the cost of each, and the loss probability they leave possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.formatting import listed, number
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, at_most, generator
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.fault_injection.settings import BLIND, CHECK, FAULTS, NEVER, FaultSettings
from tidemark.studies.ingest.gateway_crash.settings import FRONT
from tidemark.studies.ingest.part import of_part
from tidemark.studies.ingest.parts import part_name
from tidemark.studies.ingest.record import CommitRecord, FaultsRecord, Loss, Undisturbed


@dataclass(frozen=True, slots=True)
class Kills:
    """All kills of one victim in one run. Counts are batches, except `lost` and `doubled`, which are rows."""

    series: Series
    run: Run
    title: str  # of the victim
    each: tuple[Loss, ...]

    @property
    def is_unread(self) -> bool:
        """True if the table could not be read after the last kill."""
        return bool(self.each[-1].said)

    def total(self, name: str) -> int:
        return sum(getattr(kill, name) for kill in self.each)

    @property
    def down_s(self) -> list[float]:
        """Seconds from each kill until all affected writers had a commit acknowledged again."""
        return [kill.down_s for kill in self.each]

    @property
    def with_loss(self) -> int:
        """Number of kills after which a row was lost or doubled, a batch was partial, or the table was unreadable."""
        return sum(not kill.holds for kill in self.each)

    @property
    def at_most(self) -> float:
        """Upper bound (95 %) on the probability that a kill costs something, by this number of kills."""
        return at_most(self.with_loss, len(self.each))


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
                Kills(series, run, title, tuple(kill for kill in faults.kills if kill.title == title))
                for title in titles
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
    draws = generator("kills", series.id).beta(bad + 0.5, tried - bad + 0.5, REPLICATES)
    return BootstrapEstimate(bad / tried, draws, tried, log=False, bounds=(0.0, 1.0))


def twice(found: Sequence[Series]) -> BootstrapEstimate:
    """Return the share of kills after which a row is doubled in a table of these series, with a Jeffreys interval."""
    each = [kill for series in found for killed in killed_of(series) for kill in killed.each]
    if not each:
        raise NotAvailable(
            "no writer sent a batch of an unknown outcome again: the key ingest.retry sets whether one does"
        )
    bad = sum(kill.doubled > 0 for kill in each)
    draws = generator("twice", *(series.id for series in found)).beta(bad + 0.5, len(each) - bad + 0.5, REPLICATES)
    return BootstrapEstimate(bad / len(each), draws, len(each), log=False, bounds=(0.0, 1.0))


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
