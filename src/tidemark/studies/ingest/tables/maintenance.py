"""Results of maintenance: calls, concurrent commits, reads and files; the table ingest-maintenance, and the finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import median

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.aggregation import measured_once
from tidemark.analysis.blocks import REPLICATES, BlockSample
from tidemark.analysis.formatting import Cell, MissingCell, attempt, listed
from tidemark.analysis.metrics import LOWER, Metric, require
from tidemark.analysis.statistics import BootstrapEstimate, counted_share, generator, quantile
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder, notes_of
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.load.maintenance import DONE
from tidemark.studies.ingest.load.records import ACKED
from tidemark.studies.ingest.metrics import NOT_COMPARABLE, outcomes, refusals
from tidemark.studies.ingest.parts import MAINTAINED, MAINTENANCE, of_part
from tidemark.studies.ingest.record import Maintenance, MaintenanceCall, OracleRecord
from tidemark.systems.writers import CommitStatus

NOTES = notes_of(__file__)

Floats = NDArray[np.float64]
FEWEST_ROUNDS = 3  # needed for an interval


@dataclass(frozen=True)
class Kept:
    """One run of the part; moments and durations are seconds of the window."""

    series: Series
    run: Run

    @cached_property
    def found(self) -> Maintenance:
        return self.run.record(Maintenance)

    @property
    def oracle(self) -> OracleRecord:
        return self.run.record(OracleRecord)

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

    @cached_property
    def reads(self) -> Reads:
        reads = self.found.reads
        begins, took = (np.array(each, np.float64) for each in (reads.moment_s, reads.seconds))
        counted = np.array([count is not None for count in reads.rows], bool)
        rows = np.array([count for count in reads.rows if count is not None], np.int64)
        beside = self.beside(begins, begins + took)
        highest = np.maximum.accumulate(rows) if len(rows) else rows
        return Reads(
            count=len(begins),
            failed=int((~counted).sum()),
            backwards=int((rows < highest).sum()),
            during_ms=1000 * took[counted & beside],
            between_ms=1000 * took[counted & ~beside],
            said=reads.said,
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


def commit_ms(
    kept: Sequence[Kept], probability: float, during: bool, operation: str | None = None
) -> BootstrapEstimate:
    """Return a quantile of commit latency (ms); windows vary as `measured_once` assumes.

    Raise NotAvailable if there is no run, if a table does not hold what was acknowledged, or for too few commits.
    """
    require(kept, "not measured")
    require(all(each.is_exact for each in kept), NOT_COMPARABLE)
    times = np.concatenate([each.times_ms(during, operation) for each in kept])
    least = round(1 / (1 - probability))
    require(len(times) >= least, f"needs {least:,} commits, there are {len(times):,}")
    names = ("maintained", kept[0].series.id, during, operation)
    found = quantile(BlockSample.prepare(np.maximum(times, 1e-3), generator(*names)), probability)
    return measured_once(found, 1 / len(kept))


def slowed(kept: Sequence[Kept], probability: float, operation: str | None = None) -> BootstrapEstimate:
    """Return the quantile of commits during a call over that of commits outside all calls."""
    during, between = (commit_ms(kept, probability, *which) for which in ((True, operation), (False, None)))
    return during.ratio(between)


def rounds_s(run: Run) -> Floats:
    """Return the total duration of the calls of each round of maintenance; rounds with a failed call are left out."""
    rounds: dict[int, list[MaintenanceCall]] = {}
    for call in run.record(Maintenance).calls:
        rounds.setdefault(call.round, []).append(call)
    whole = [each for each in rounds.values() if all(call.outcome == DONE for call in each)]
    return np.array([sum(call.seconds for call in each) for each in whole], np.float64)


def _round_s(run: Run) -> BootstrapEstimate:
    """Return the median duration (s) of a round of maintenance in a run, with a bootstrap over its rounds."""
    require(run.manifest.oracle.verdict, NOT_COMPARABLE)
    found = rounds_s(run)
    require(len(found), "no round of maintenance ended without an error")
    centre = float(np.log(np.median(found)))
    if len(found) < FEWEST_ROUNDS:
        return BootstrapEstimate(centre, None, len(found))
    draws = np.median(generator("rounds", run.label).choice(found, (REPLICATES, len(found))), axis=1)
    return BootstrapEstimate(centre, np.log(draws), len(found), degrees=len(found) - 1)


ROUND = Metric("maintenance round", "s", "Round of maintenance: median", _round_s, LOWER)


def wrong(kept: Sequence[Kept]) -> BootstrapEstimate:
    """Return the share of acknowledged rows that are missing or present more than once, as counted."""
    oracles = [each.run.manifest.oracle for each in kept]
    bad, rows = sum(each.missing + each.duplicated for each in oracles), sum(each.expected for each in oracles)
    return counted_share(bad, rows)


def failed_calls(kept: Sequence[Kept], operation: str | None = None) -> tuple[int, int]:
    """Return the number of calls refused because a commit came first, and of those that ended in another error."""
    ended = [call.outcome for each in kept for call in each.calls(operation)]
    refused = ended.count(str(CommitStatus.CONFLICT))
    return refused, len(ended) - ended.count(DONE) - refused


def words_of(kept: Sequence[Kept]) -> str:
    """Return the oracle's verdicts on the tables, without repetitions."""
    return "; ".join(dict.fromkeys(each.oracle.words for each in kept))


MEGABYTE = 1e6
WHOLE, NOTHING = "all of it", "none"  # shown in place of an operation
COLUMNS = (
    SYSTEM, Column("operation", "Maintenance"), Column("verdict", "Oracle"), Column("calls", "Calls"),
    Column("conflicts", "Calls refused"), Column("errors", "Calls failed"), Column("median", "Call, median", "s"),
    Column("longest", "Call, longest", "s"), Column("share", "Of the window", "%"),
    Column("peak", "Peak memory of its process", "MB"),
    Column("p50_during", "Commit p50 during it", "ms", interval=True),
    Column("p50_between", "Commit p50 without", "ms", interval=True),
    Column("p50_ratio", "Ratio of p50", "x", interval=True),
    Column("p99_during", "Commit p99 during it", "ms", interval=True),
    Column("p99_between", "Commit p99 without", "ms", interval=True),
    Column("p99_ratio", "Ratio of p99", "x", interval=True),
    Column("rate", "Commits", "commits/s"), Column("pause_during", "Longest pause during it", "s"),
    Column("pause_between", "Longest pause without", "s"), Column("refused", "Commits refused", "%"),
    Column("lost", "Lost rows"), Column("doubled", "Doubled rows"),
    Column("files_first", "Data files, first"), Column("files_most", "Most"), Column("files_last", "Last"),
    Column("data_bytes", "Data, last", "B"), Column("metadata_files", "Metadata files, last"),
    Column("metadata_bytes", "Metadata, last", "B"), Column("reads", "Reads"), Column("reads_failed", "Reads failed"),
    Column("backwards", "Reads that saw fewer rows than before"),
    Column("read_during", "Read, median during it", "ms"), Column("read_between", "Read, median without", "ms"),
    Column("said", "First errors"),
)  # fmt: skip
QUANTILES = (0.5, 0.99)


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-maintenance."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series, control in pairs(builder.run_set):
        rows += _of_series(series)
        rows += [_whole(control, NOTHING, kept_of(control))] if control and control.runs else []
        runs += [*series.runs, *(control.runs if control else ())]
    notes = NOTES("ingest-maintenance")
    yield builder.table("ingest-maintenance", "Maintenance while writers write", COLUMNS, rows, runs, notes)


def _of_series(series: Series) -> Iterator[list[Cell]]:
    kept = kept_of(series)
    if not kept:
        yield [series.title, WHOLE, MissingCell(series.missing())]
        return
    yield _whole(series, WHOLE, kept)
    found = operations(kept)
    for operation in found if len(found) > 1 else ():
        yield [series.title, operation, None, *_calls(kept, operation), *_commits(kept, operation)]
    left_undone = kept[0].found.left_undone
    if left_undone:
        yield [series.title, "what is left undone", MissingCell(left_undone)]


def _whole(series: Series, operation: str, kept: Sequence[Kept]) -> list[Cell]:
    """Return the row of all operations together, or of a control."""
    exact = all(each.is_exact for each in kept)
    elapsed = sum(each.run.elapsed_s for each in kept)
    within = sum(int((each.commits[1] <= each.run.elapsed_s).sum()) for each in kept)
    refused, tried = map(sum, zip(*(refusals(each.run)[:2] for each in kept), strict=True))
    sizes = [size.data_files for each in kept for size in each.found.sizes]
    footprint = kept[-1].run.footprint
    reads = [each.reads for each in kept]
    lines = [call.said for each in kept for call in each.found.calls if call.said]
    lines += [words for each in reads for words in each.said]
    return [
        series.title,
        operation,
        words_of(kept),
        *_calls(kept, None),
        *_commits(kept, None),
        within / elapsed if exact else MissingCell(NOT_COMPARABLE),
        *(_longest([each.pause_s(during) for each in kept]) for during in (True, False)),
        100 * refused / max(tried, 1),
        sum(each.oracle.lost for each in kept),
        sum(each.oracle.doubled for each in kept),
        sizes[0] if sizes else None,
        max(sizes, default=None),
        footprint.data_files,
        footprint.data_bytes,
        footprint.metadata_files,
        footprint.metadata_bytes,
        *(sum(getattr(each, name) for each in reads) for name in ("count", "failed", "backwards")),
        *(
            float(np.median(times)) if len(times := np.concatenate([getattr(each, name) for each in reads])) else None
            for name in ("during_ms", "between_ms")
        ),
        "; ".join(dict.fromkeys(lines))[:300] or None,
    ]


def _calls(kept: Sequence[Kept], operation: str | None) -> list[Cell]:
    """Return the cells of calls: number, refused, failed; median and longest; share of the window; peak memory."""
    calls = [call for each in kept for call in each.calls(operation)]
    if not calls:
        return [0, *[None] * 6]
    seconds = [call.seconds for call in calls]
    return [
        len(calls),
        *failed_calls(kept, operation),
        median(seconds),
        max(seconds),
        100 * sum(seconds) / sum(each.run.elapsed_s for each in kept),
        max(call.peak_bytes for call in calls) / MEGABYTE,
    ]


def _commits(kept: Sequence[Kept], operation: str | None) -> list[Cell]:
    cells: list[Cell] = []
    has_calls = any(each.found.calls for each in kept)
    for probability in QUANTILES:
        during = partial(commit_ms, kept, probability, True, operation)
        between = attempt("ms", partial(commit_ms, kept, probability, False))
        ratio = partial(slowed, kept, probability, operation)
        cells += [attempt("ms", during), between, attempt("x", ratio)] if has_calls else [None, between, None]
    return cells


def _longest(pauses: Sequence[float | None]) -> Cell:
    return max((pause for pause in pauses if pause is not None), default=None)


def held_sentence(run_set: RunSet) -> str:
    """Return the sentences on the oracle's verdict on each table; raise NotAvailable if none was maintained."""
    found = [(kept_of(own), kept_of(other) if other else []) for own, other in pairs(run_set) if own.runs]
    require(found, "no table was maintained while it was written to")
    held, broken = [], []
    for kept, control in found:
        title = kept[0].series.title
        if all(each.is_exact for each in kept):
            held.append(title)
        else:
            alone = f" (without maintenance: {words_of(control)})" if control else ""
            broken.append(f"{title}: {words_of(kept)}{alone}")
    lines = [f"With maintenance, every acknowledged row is there once in {listed(held)}."] if held else []
    lines += [f"Maintenance during writes breaks what was acknowledged: {'; '.join(broken)}."] if broken else []
    return " ".join(lines)


def values(run_set: RunSet) -> dict[str, str]:
    """Return the maintenance settings shown in the chapter; "-" in run sets that are older than the part."""
    given = run_set.config.values.get(MAINTENANCE, {})
    names = {"writers": "writers", "rows": "rows", "every": "every_seconds"}
    return {f"ingest-maintenance-{name}": str(given.get(key, "-")) for name, key in names.items()}
