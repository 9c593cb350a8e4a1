"""Claim measures of the study, and the condition under which its runs are comparable with the thesis's.

The measures compare hot runs with hot runs, except for the sweep of threads, whose series have one run each.
"""

from __future__ import annotations

from tidemark.analysis.aggregation import BetweenRunVariance, pooled_mean
from tidemark.analysis.metrics import Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, counted, generator
from tidemark.results.claims.claim_data import ClaimData, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, Measure, Measured, measure, spread
from tidemark.runs.runset import Series
from tidemark.runs.spec import BATCH, MAIN, MODES, SINGLE
from tidemark.studies.streams import metrics, published

THREADS = "threads"
FIRST_HOT = 1  # run that the thesis shows
READS = "reads"  # sweep that reads one event at a time
CHUNKS = "chunks"  # setting of how a batch is handed over
# Quantities of batches that depend on it.
OF_BATCHES = (
    metrics.WRITE_MEDIAN, metrics.WRITE_IQR, metrics.HARNESS_RATE, metrics.CPU_MEDIAN, metrics.CPU_IQR,
    metrics.DISK_MEDIAN, metrics.DISK_IQR,
)  # fmt: skip
# Read quantities of single events: comparable with the thesis, which read one event at a time, only in such runs.
OF_READS = (metrics.READ_MEDIAN, metrics.READ_IQR, metrics.READ_P99, metrics.READ_PER_EVENT, metrics.POLLING)


class StreamClaimData(ClaimData):
    """Evidence from runs like the thesis's: batches of the same size, and single events read one at a time."""

    def series(
        self, system: str, mode: str, sweep: str = MAIN, threads: int | None = None, read_ahead: int | None = None
    ) -> Series:
        found = [
            series
            for series in self.of_sweep(system, mode, sweep)
            if threads in (None, series.threads) and read_ahead in (None, series.read_ahead)
        ]
        if mode == BATCH and found and found[0].runs and found[0].batch_size != published.OF_A_BATCH:
            raise NotAvailable(f"batches had {found[0].batch_size:,} events, the thesis's had {published.OF_A_BATCH:,}")
        return self.require_runs(found, f"{system} in {mode} mode" + (f" with {threads} threads" if threads else ""))

    def comparable_series(self, quantity: Metric, system: str, mode: str) -> Series:
        """Return the series for `quantity`: a sweep's, if only that did as the thesis did.

        For reads of single events, it is one that reads one at a time. For times of batches, it is one whose batches
        have a chunk for each event, or else that of the main configuration.
        """
        if mode == BATCH and quantity in OF_BATCHES:
            for sweep in dict.fromkeys(series.sweep for series in self.measures.run_set.series):
                if self.measures.run_set.axis_of(sweep) == CHUNKS and self.of_sweep(system, BATCH, sweep):
                    return self.series(system, BATCH, sweep)
        if quantity not in OF_READS or mode != SINGLE:
            return self.series(system, mode)
        sweeps = dict.fromkeys((MAIN, READS, *(series.sweep for series in self.measures.run_set.series)))
        for sweep in sweeps:
            varies_reads = sweep == READS or self.measures.run_set.axis_of(sweep) == "read_ahead"
            for series in self.of_sweep(system, SINGLE, sweep):
                if (sweep == MAIN or varies_reads) and series.read_ahead == 1 and series.runs:
                    return self.series(system, SINGLE, sweep, read_ahead=1)
        main = self.series(system, SINGLE)
        raise NotAvailable(
            f"not comparable: one read returns up to {main.read_ahead:,} events, so read times are means over read "
            "batches, but the thesis read one event at a time; measure with 'streams.sweeps=[main, reads]'"
        )

    def one_run(self, quantity: Metric, system: str, threads: int) -> BootstrapEstimate:
        """Estimate `quantity` of a thread-sweep series, which has one run a repeat."""
        series = self.series(system, SINGLE, THREADS, threads)
        return self.cold_only_estimate(quantity, series, "one run")

    def merge(self, system: str, mode: str, like: str) -> BootstrapEstimate:
        """Estimate a series' merge time in µs per row, with the between-run variance of flushes, which `like` has."""
        series = self.series(system, mode)
        of_run = self.measures.of_run
        last = [repeat.runs[-1] for repeat in series.repeats if repeat.runs]
        timed = [run for run in last if run.manifest.merge is not None]  # rounds leave it to the series after them
        merges = [of_run(metrics.MERGE_PER_ROW, run) for run in timed or last]
        self.series(like, mode)
        flushes = [
            [
                of_run(metrics.FLUSH_PER_ROW, run)
                for run in other.hot_runs
                if run.manifest.flush and run.manifest.flush.rows
            ]
            for one in MODES
            for other in self.measures.run_set.select(mode=one, stack=self.stack, harness=False)
        ]
        return pooled_mean(merges, generator("merge", series.id), BetweenRunVariance.pooled([merges, *flushes]))


OWN: dict[str, Measure] = {}


@measure(OWN, modes=MODES)
def mode_ratio(claim_data: StreamClaimData, quantity: Metric, system: str, inverse: bool = False) -> Measured:
    """Return the quantity in batches divided by that for single events, or the inverse."""
    single, batch = (positive(claim_data.hot(quantity, system, mode)) for mode in MODES)
    return (single.ratio(batch) if inverse else batch.ratio(single)), TIMES


@measure(OWN, modes=MODES)
def largest_mode_ratio(claim_data: StreamClaimData, quantity: Metric, systems: list[str]) -> Measured:
    """Return the largest of the systems' ratios of batches to single events."""
    return extreme([mode_ratio(claim_data, quantity, name)[0] for name in systems], largest=True), TIMES


@measure(OWN, modes=MODES)
def smallest_mode_ratio(claim_data: StreamClaimData, quantity: Metric, systems: list[str]) -> Measured:
    """Return the smallest of the systems' ratios of batches to single events."""
    return extreme([mode_ratio(claim_data, quantity, name)[0] for name in systems], largest=False), TIMES


@measure(OWN, modes=MODES)
def mode_ratio_to_largest(claim_data: StreamClaimData, quantity: Metric, system: str, vs: list[str]) -> Measured:
    """Return a system's ratio of batches to single events divided by the largest such ratio of other systems."""
    one = mode_ratio(claim_data, quantity, system)[0]
    return extreme([one.ratio(mode_ratio(claim_data, quantity, name)[0]) for name in vs], largest=False), TIMES


@measure(OWN, modes=MODES)
def mode_spread_ratio(claim_data: StreamClaimData, quantity: Metric, systems: list[str]) -> Measured:
    """Return the largest over the smallest value among `systems` in batches, divided by the same for single events."""
    single, batch = (spread(claim_data, quantity, systems, mode)[0] for mode in MODES)
    return batch.ratio(single), TIMES


@measure(OWN)
def largest_to_smallest(
    claim_data: StreamClaimData, quantity: Metric, systems: list[str], vs: list[str], mode: str
) -> Measured:
    """Return the largest value among `systems` over the smallest among `vs`."""
    first, others = ([positive(claim_data.hot(quantity, name, mode)) for name in names] for names in (systems, vs))
    return extreme([one.ratio(other) for one in first for other in others], largest=True), TIMES


@measure(OWN, modes=(SINGLE,))
def threads_ratio(claim_data: StreamClaimData, quantity: Metric, system: str, threads: list[int]) -> Measured:
    """Return the quantity with the first number of threads divided by that with the second; one run each."""
    many, few = (positive(claim_data.one_run(quantity, system, count)) for count in threads)
    return many.ratio(few), TIMES


@measure(OWN, modes=(SINGLE,))
def largest_threads_ratio(
    claim_data: StreamClaimData, quantity: Metric, systems: list[str], threads: list[int]
) -> Measured:
    """Return the largest of the systems' ratios of many threads to few."""
    return extreme([threads_ratio(claim_data, quantity, name, threads)[0] for name in systems], largest=True), TIMES


@measure(OWN)
def merge_over_flush(claim_data: StreamClaimData, system: str, vs: str, mode: str) -> Measured:
    """Return the time per row to merge one system's small files, divided by that to flush another's inlined rows."""
    return claim_data.merge(system, mode, vs).ratio(positive(claim_data.hot(metrics.FLUSH_PER_ROW, vs, mode))), TIMES


@measure(OWN)
def printed_write_share(_evidence: ClaimData, system: str) -> Measured:
    """Return the share of the thesis's first hot batch window inside write, in percent: batches x median write."""
    batches = published.EVENTS[BATCH][system][FIRST_HOT] / published.OF_A_BATCH
    return counted(batches * published.PRINTED.write_ms[BATCH][system].median / published.WINDOW_S / 10), "%"


@measure(OWN)
def printed_batch_gain(_evidence: ClaimData, system: str, vs: list[str], added: bool = False) -> Measured:
    """Return what batches brought the thesis's system over the most that they brought others, as a factor or `added`
    events, in the first hot run."""

    def gain(name: str) -> float:
        single, batch = (published.EVENTS[mode][name][FIRST_HOT] for mode in MODES)
        return float(batch - single) if added else batch / single

    return counted(gain(system) / max(map(gain, vs))), TIMES


@measure(OWN)
def printed_cold_effect(_evidence: ClaimData, mode: str) -> Measured:
    """Return the thesis's events of run 0 over those of the better hot run, of the system with the smallest ratio."""
    return counted(min(cold / max(hot) for cold, *hot in published.EVENTS[mode].values())), TIMES


@measure(OWN)
def printed_ratio(_evidence: ClaimData, system: str, vs: str, mode: str) -> Measured:
    """Return the thesis's events of one system over those of another, in the first hot run."""
    events = published.EVENTS[mode]
    return counted(events[system][FIRST_HOT] / events[vs][FIRST_HOT]), TIMES


@measure(OWN)
def printed_threads(_evidence: ClaimData, system: str) -> Measured:
    """Return the thesis's events with 16 threads over those with one."""
    return counted(published.OF_THREADS[system][16] / published.OF_THREADS[system][1]), TIMES


@measure(OWN)
def printed_files(_evidence: ClaimData, mode: str) -> Measured:
    """Return the thesis's data files of Iceberg with DuckDB over the writes of its three runs."""
    writes = sum(published.EVENTS[mode]["iceberg-duckdb"]) / (published.OF_A_BATCH if mode == BATCH else 1)
    return counted(published.PRINTED.files[mode]["iceberg-duckdb"].data_files / writes), TIMES


MEASURES = GENERAL | OWN
