"""Recorded runs of the part `maintenance`: calls, commits during and between them, reads, files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import REPLICATES, BlockSample
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, generator, quantile
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.maintenance.compactor import DONE
from tidemark.studies.ingest.maintenance.settings import MAINTAINED, MAINTENANCE
from tidemark.studies.ingest.metrics import NOT_COMPARABLE, outcomes
from tidemark.studies.ingest.outcomes import ACKED
from tidemark.studies.ingest.part import of_part
from tidemark.studies.ingest.record import CheckRecord, Maintenance, MaintenanceCall, MaintenanceRecord, OracleRecord
from tidemark.systems.writers import CommitStatus

Floats = NDArray[np.float64]
FEWEST_ROUNDS = 3  # needed for an interval


@dataclass(frozen=True)
class Kept:
    """One run of the part; moments and durations are seconds of the window."""

    series: Series
    run: Run

    @cached_property
    def found(self) -> Maintenance:
        return self.run.record(MaintenanceRecord).maintenance

    @property
    def oracle(self) -> OracleRecord:
        return self.run.record(CheckRecord).oracle

    @property
    def is_exact(self) -> bool:
        return bool(self.run.manifest.oracle.verdict)

    def calls(self, operation: str | None = None) -> list[MaintenanceCall]:
        """Return the calls of one operation, or all calls if it is None."""
        return [call for call in self.found.calls if operation in (None, call.operation)]

    @cached_property
    def commits(self) -> tuple[Floats, Floats]:
        """First try and end of each acknowledged commit, in seconds and by end: float64[commits] twice."""
        acked = outcomes(self.run) == ACKED
        ends = (self.run.column("start_ns") + self.run.column("elapsed_ns"))[acked]
        begins = ends - self.run.column("response_ns")[acked]
        order = np.argsort(ends, kind="stable")
        return begins[order] / 1e9, ends[order] / 1e9

    def beside(self, begins: Floats, ends: Floats, operation: str | None = None) -> NDArray[np.bool_]:
        """Return bool[intervals]: True if a call of `operation`, or any call if None, overlaps the interval."""
        found = np.zeros(len(begins), bool)
        for call in self.calls(operation):
            found |= (begins < call.moment_s + call.seconds) & (ends > call.moment_s)
        return found

    def times_ms(self, during: bool, operation: str | None = None) -> Floats:
        """Return the latencies (ms) of commits that overlap a call of `operation`, or of those that overlap no call."""
        begins, ends = self.commits
        beside = self.beside(begins, ends, operation if during else None)
        found: Floats = 1000 * (ends - begins)[beside if during else ~beside]
        return found

    def pause_s(self, during: bool) -> float | None:
        """Return the longest time (s) without any acknowledgement, among those that overlap a call, or that do not."""
        ends = self.commits[1]
        gaps, beside = np.diff(ends), self.beside(ends[:-1], ends[1:])
        chosen = gaps[beside if during else ~beside]
        return float(chosen.max()) if len(chosen) else None

    def rounds_s(self) -> Floats:
        """Return the total duration of the calls of each round; rounds with a failed call are left out."""
        rounds: dict[int, list[MaintenanceCall]] = {}
        for call in self.found.calls:
            rounds.setdefault(call.round, []).append(call)
        whole = [each for each in rounds.values() if all(call.outcome == DONE for call in each)]
        return np.array([sum(call.seconds for call in each) for each in whole], np.float64)

    @cached_property
    def reads(self) -> Reads:
        told = self.found.reads
        begins, took = (np.array(each, np.float64) for each in (told.moment_s, told.seconds))
        counted = np.array([count is not None for count in told.rows], bool)
        rows = np.array([count for count in told.rows if count is not None], np.int64)
        beside = self.beside(begins, begins + took)
        highest = np.maximum.accumulate(rows) if len(rows) else rows
        return Reads(
            count=len(begins),
            failed=int((~counted).sum()),
            backwards=int((rows < highest).sum()),
            during_ms=1000 * took[counted & beside],
            between_ms=1000 * took[counted & ~beside],
            said=told.said,
        )


@dataclass(frozen=True, slots=True)
class Reads:
    """Counts of all rows by a client during writes; `backwards` are those with fewer rows than an earlier one."""

    count: int
    failed: int
    backwards: int
    during_ms: Floats
    between_ms: Floats
    said: tuple[str, ...]


def kept_of(series: Series) -> list[Kept]:
    return [Kept(series, run) for run in series.runs]


def is_maintained(series: Series) -> bool:
    """Return True for a series with maintenance, not for a control or a series of another part."""
    return series.mode.partition("-")[0] == MAINTAINED


def pairs(run_set: RunSet, stack: str | None = None) -> list[tuple[Series, Series | None]]:
    """Return each series with maintenance and its control without it, or None if there is no control."""
    found = of_part(run_set, MAINTENANCE).select(stack=stack, harness=False)
    own = [each for each in found if is_maintained(each)]
    controls = {each.system: each for each in found if each not in own}
    return [(each, controls.get(each.system)) for each in own]


def operations(kept: Sequence[Kept]) -> list[str]:
    """Return the names of the operations performed, in their order."""
    return list(dict.fromkeys(call.operation for each in kept for call in each.found.calls))


def sound(kept: Sequence[Kept]) -> None:
    """Raise NotAvailable if there is no run, or a run's table does not hold what was acknowledged."""
    if not kept:
        raise NotAvailable("not measured")
    if not all(each.is_exact for each in kept):
        raise NotAvailable(NOT_COMPARABLE)


def commit_ms(
    kept: Sequence[Kept], probability: float, during: bool, operation: str | None = None
) -> BootstrapEstimate:
    """Return a quantile of commit latency (ms), with a block bootstrap.

    Raise NotAvailable if there are too few commits.
    """
    sound(kept)
    times = np.concatenate([each.times_ms(during, operation) for each in kept])
    least = round(1 / (1 - probability))
    if len(times) < least:
        raise NotAvailable(f"needs {least:,} commits, there are {len(times):,}")
    names = ("maintained", kept[0].series.id, during, operation)
    return quantile(BlockSample.prepare(np.maximum(times, 1e-3), generator(*names)), probability)


def slowed(kept: Sequence[Kept], probability: float, operation: str | None = None) -> BootstrapEstimate:
    """Return the quantile of commits during a call over that of commits outside all calls."""
    during, between = (commit_ms(kept, probability, *which) for which in ((True, operation), (False, None)))
    return during.ratio(between)


def round_s(kept: Sequence[Kept]) -> BootstrapEstimate:
    """Return the median duration (s) of a maintenance round, with a bootstrap over rounds."""
    sound(kept)
    found = np.concatenate([each.rounds_s() for each in kept])
    if not len(found):
        raise NotAvailable("no round of maintenance ended without an error")
    centre = float(np.log(np.median(found)))
    if len(found) < FEWEST_ROUNDS:
        return BootstrapEstimate(centre, None, len(found))
    rng = generator("rounds", kept[0].series.id)
    draws = np.median(rng.choice(found, (REPLICATES, len(found))), axis=1)
    return BootstrapEstimate(centre, np.log(draws), len(found), degrees=len(found) - 1)


def wrong(kept: Sequence[Kept]) -> BootstrapEstimate:
    """Return the share of acknowledged rows that are missing or present more than once, with a Jeffreys interval."""
    oracles = [each.run.manifest.oracle for each in kept]
    bad, rows = sum(each.missing + each.duplicated for each in oracles), sum(each.expected for each in oracles)
    draws = generator("wrong", kept[0].series.id).beta(bad + 0.5, max(rows - bad, 0) + 0.5, REPLICATES)
    return BootstrapEstimate(bad / rows, draws, rows, log=False, bounds=(0.0, 1.0))


def failed_calls(kept: Sequence[Kept], operation: str | None = None) -> tuple[int, int]:
    """Return the number of calls refused because a commit came first, and of those that ended in another error."""
    ended = [call.outcome for each in kept for call in each.calls(operation)]
    refused = ended.count(str(CommitStatus.CONFLICT))
    return refused, len(ended) - ended.count(DONE) - refused


def words_of(kept: Sequence[Kept]) -> str:
    """Return the oracle's verdicts on the tables, without repetitions."""
    return "; ".join(dict.fromkeys(each.oracle.words for each in kept))
