"""The study's own measures of claims, and on what condition its runs compare with the thesis's.

They compare hot runs with hot runs, except for the sweep of threads, whose series have one run each.
"""

from __future__ import annotations

from tidemark.analysis.quantities import Absent, Quantity
from tidemark.analysis.statistics import Replicates, generator
from tidemark.analysis.units import Effects, typical
from tidemark.results.claims.evidence import Evidence, extreme, positive
from tidemark.results.claims.measures import GENERAL, TIMES, Measure, Measured, measure
from tidemark.runs.names import BATCH, MAIN, MODES, SINGLE
from tidemark.runs.runset import Series
from tidemark.studies.streams.quantities import (
    FLUSH_PER_ROW,
    MERGE_PER_ROW,
    POLLING,
    READ_IQR,
    READ_MEDIAN,
    READ_P99,
    READ_PER_EVENT,
)

THESIS_BATCH = 1_000
THREADS = "threads"
READS = "reads"  # the sweep that reads one event at a time
# Of single events: what a run that reads several in one go cannot say as the thesis, which read one, did.
OF_READS = (READ_MEDIAN, READ_IQR, READ_P99, READ_PER_EVENT, POLLING)


class StreamEvidence(Evidence):
    """Runs as the thesis's were: batches of as many events, and single events that were read one at a time."""

    def series(
        self,
        system: str,
        mode: str,
        sweep: str = MAIN,
        threads: int | None = None,
        read_ahead: int | None = None,
    ) -> Series:
        found = [
            series
            for series in self.of_sweep(system, mode, sweep)
            if threads in (None, series.threads) and read_ahead in (None, series.read_ahead)
        ]
        if mode == BATCH and found and found[0].runs and found[0].batch_size != THESIS_BATCH:
            raise Absent(f"batches had {found[0].batch_size:,} events, the thesis's had {THESIS_BATCH:,}")
        return self.noted(found, f"{system} in {mode} mode" + (f" with {threads} threads" if threads else ""))

    def speaking(self, quantity: Quantity, system: str, mode: str) -> Series:
        """Of single events that were read: the series that read one at a time, of whichever sweep."""
        if quantity not in OF_READS or mode != SINGLE:
            return self.series(system, mode)
        sweeps = dict.fromkeys((MAIN, READS, *(series.sweep for series in self.measures.run_set.series)))
        for sweep in sweeps:
            for series in self.of_sweep(system, SINGLE, sweep):
                if (sweep == MAIN or self._varies_reads(sweep)) and series.read_ahead == 1 and series.runs:
                    return self.series(system, SINGLE, sweep, read_ahead=1)
        main = self.series(system, SINGLE)
        raise Absent(
            f"not comparable: one read returns up to {main.read_ahead:,} events, so read times are means over read "
            "batches, but the thesis read one event at a time; measure with 'streams.sweeps=[main, reads]'"
        )

    def _varies_reads(self, sweep: str) -> bool:
        return sweep == READS or self.measures.run_set.axis_of(sweep) == "read_ahead"

    def one_run(self, quantity: Quantity, system: str, threads: int) -> Replicates:
        """`quantity` of the only run of a series of the sweep of threads, in doubt as far as main runs differ."""
        series = self.series(system, SINGLE, THREADS, threads)
        return self.alone(quantity, series, [self.measures.of_run(quantity, series.runs[0])], "one run")

    def merge(self, system: str, mode: str, like: str) -> Replicates:
        """µs a row of the merge of a series, in doubt as far as flushes (`like` has them) differ between runs."""
        series = self.series(system, mode)
        of_run = self.measures.of_run
        merges = [of_run(MERGE_PER_ROW, repeat.runs[-1]) for repeat in series.repeats if repeat.runs]
        self.series(like, mode)
        flushes = [
            [of_run(FLUSH_PER_ROW, run) for run in other.hot_runs if run.manifest.flush and run.manifest.flush.rows]
            for one in MODES
            for other in self.measures.run_set.select(mode=one, stack=self.stack, harness=False)
        ]
        return typical(merges, generator("merge", series.id), Effects.pooled([merges, *flushes]))


OWN: dict[str, Measure] = {}


@measure(OWN, modes=MODES)
def mode_ratio(evidence: StreamEvidence, quantity: Quantity, system: str, inverse: bool = False) -> Measured:
    """The quantity in batches over that event by event, or the other way round."""
    single, batch = (positive(evidence.hot(quantity, system, mode)) for mode in MODES)
    return (single.ratio(batch) if inverse else batch.ratio(single)), TIMES


@measure(OWN, modes=MODES)
def largest_mode_ratio(evidence: StreamEvidence, quantity: Quantity, systems: list[str]) -> Measured:
    """The largest of the systems' ratios of batches to single events."""
    return extreme([mode_ratio(evidence, quantity, name)[0] for name in systems], largest=True), TIMES


@measure(OWN, modes=MODES)
def smallest_mode_ratio(evidence: StreamEvidence, quantity: Quantity, systems: list[str]) -> Measured:
    """The smallest of the systems' ratios of batches to single events."""
    return extreme([mode_ratio(evidence, quantity, name)[0] for name in systems], largest=False), TIMES


@measure(OWN, modes=MODES)
def mode_ratio_to_largest(evidence: StreamEvidence, quantity: Quantity, system: str, vs: list[str]) -> Measured:
    """A system's ratio of batches to single events over the largest such ratio of others."""
    return mode_ratio(evidence, quantity, system)[0].ratio(largest_mode_ratio(evidence, quantity, vs)[0]), TIMES


@measure(OWN, modes=(SINGLE,))
def threads_ratio(evidence: StreamEvidence, quantity: Quantity, system: str, threads: list[int]) -> Measured:
    """The quantity with the first number of threads over that with the second, one run each."""
    many, few = (positive(evidence.one_run(quantity, system, count)) for count in threads)
    return many.ratio(few), TIMES


@measure(OWN, modes=(SINGLE,))
def largest_threads_ratio(
    evidence: StreamEvidence, quantity: Quantity, systems: list[str], threads: list[int]
) -> Measured:
    """The largest of the systems' ratios of many threads to few."""
    return extreme([threads_ratio(evidence, quantity, name, threads)[0] for name in systems], largest=True), TIMES


@measure(OWN)
def merge_over_flush(evidence: StreamEvidence, system: str, vs: str, mode: str) -> Measured:
    """Time a row to merge the small files of one system over that to flush the inlined rows of another."""
    return evidence.merge(system, mode, vs).ratio(positive(evidence.hot(FLUSH_PER_ROW, vs, mode))), TIMES


MEASURES = GENERAL | OWN
