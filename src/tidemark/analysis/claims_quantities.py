"""Quantities of one run that claims ask for and no table does, and the evidence that claims are judged by."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tidemark.analysis.blocks import REPLICATES
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import UNITS, Absent, Metric
from tidemark.analysis.run import COLD, Run
from tidemark.analysis.runs import MAIN, Series
from tidemark.analysis.statistics import Floats, Replicates, generator, known
from tidemark.analysis.units import Effects, typical

THESIS_BATCH = 1_000
THREADS = "threads"
READS = "reads"  # the study that reads one event at a time
# Of single events: what a run that reads several in one go cannot say as the thesis, which read one, did.
OF_READS = ("read median", "read IQR", "read p99", "read per event", "share of polling")


def _positive(value: float, what: str) -> float:
    if value <= 0:
        raise Absent(f"there are no {what}")
    return value


def _flush_per_row(run: Run) -> float:
    flush = run.manifest.flush
    if flush is None or flush.rows == 0:
        raise Absent("nothing is inlined, so there is nothing to flush")
    return flush.seconds / flush.rows * 1e6


def _merge_per_row(run: Run) -> float:
    merge = run.manifest.merge
    if merge is None:
        raise Absent("no merge of small files was timed in this run")
    return merge.seconds / run.manifest.events * 1e6


def _polling(run: Run) -> float:
    return 100 * _positive(dict(run.manifest.time_budget_ns).get("poll", 0), "polls") / run.manifest.elapsed_ns


def _files_per_commit(run: Run) -> float:
    footprint = run.manifest.footprint
    return _positive(footprint.data_files + footprint.metadata_files, "files") / run.manifest.operations


# Each with its unit; of the table as it is before inlined rows are flushed.
QUANTITIES: dict[str, tuple[str, Callable[[Run], float]]] = {
    "flush per row": ("µs", _flush_per_row),
    "merge per row": ("µs", _merge_per_row),
    "share of polling": ("%", _polling),
    "files per commit": ("files/commit", _files_per_commit),
    "data files": ("files", lambda run: _positive(run.manifest.footprint.data_files, "data files")),
    "data bytes": ("bytes", lambda run: _positive(run.manifest.footprint.data_bytes, "data files")),
    "metadata bytes": ("bytes", lambda run: _positive(run.manifest.footprint.metadata_bytes, "metadata files")),
}
METRICS = {str(metric): metric for metric in Metric}


def unit_of(quantity: str) -> str:
    """The unit of a quantity by its name, that of a metric or one of QUANTITIES."""
    return UNITS[METRICS[quantity]] if quantity in METRICS else QUANTITIES[quantity][0]


class Evidence:
    """What measures of claims are computed from: the runs of one stack; remembers which of them were looked at."""

    def __init__(self, measures: Measures, stack: str | None = None) -> None:
        self._measures = measures
        self.stack = stack or measures.run_set.stack
        self.runs: list[Run] = []

    def series(
        self,
        system: str,
        mode: str,
        study: str = MAIN,
        threads: int | None = None,
        read_ahead: int | None = None,
    ) -> Series:
        """The series of a system with runs to go by; Absent, saying why, when there is none as the thesis's was."""
        found = [
            series
            for series in self._measures.run_set.select(mode=mode, study=study, stack=self.stack)
            if series.system == system and threads in (None, series.threads) and read_ahead in (None, series.read_ahead)
        ]
        if not found:
            which = f"{system} in {mode} mode" + (f" with {threads} threads" if threads else "")
            raise Absent(f"{which} is not in this run set")
        series = found[0]
        if not series.runs:
            raise Absent(f"{series.title}: {series.missing()}")
        if mode == "batch" and series.batch_size != THESIS_BATCH:
            raise Absent(f"batches had {series.batch_size:,} events, the thesis's had {THESIS_BATCH:,}")
        self._note(series.runs)
        return series

    def hot(self, quantity: str, system: str, mode: str) -> Replicates:
        """`quantity` of the typical hot run; how far it may be off is learnt from all systems of the mode."""
        series = self._reading(system) if quantity in OF_READS and mode == "single" else self.series(system, mode)
        if not series.hot_runs and series.study != MAIN:
            return self._alone(quantity, series)
        if quantity in METRICS:
            return self._measures.hot(METRICS[quantity], series)
        return self._measures.typical(quantity, partial(self._once, quantity), series)

    def _reading(self, system: str) -> Series:
        """The series of single events that were read one at a time, as the thesis read them, of whichever study."""
        studies = dict.fromkeys((MAIN, READS, *(series.study for series in self._measures.run_set.series)))
        found = [
            series
            for study in studies
            for series in self._measures.run_set.select(mode="single", study=study, stack=self.stack)
            if series.system == system and (study == MAIN or self._varies_reads(study))
        ]
        for series in found:
            if series.read_ahead == 1 and series.runs:
                return self.series(system, "single", series.study, read_ahead=1)
        main = self.series(system, "single")
        raise Absent(
            f"not comparable: up to {main.read_ahead:,} events were read in one go, so that times of reading are means "
            "of goes, and the thesis read one event at a time; measure with 'studies=[main, reads]'"
        )

    def _varies_reads(self, study: str) -> bool:
        config = self._measures.run_set.config
        studies = config.part("study") if "study" in config.names() else None
        known = studies is not None and study in studies.names()
        return study == READS or bool(known and studies and studies.part(study).text("axis") == "read_ahead")

    def _alone(self, quantity: str, series: Series) -> Replicates:
        """`quantity` of run 0 of a study without hot runs, in doubt as far as the main series' hot runs differ."""

        def of_run(run: Run) -> Replicates:
            return self._measures.of_run(METRICS[quantity], run) if quantity in METRICS else self._once(quantity, run)

        groups = [
            [of_run(each) for each in other.hot_runs]
            for other in self._measures.run_set.select(mode=series.mode, stack=self.stack, harness=False)
        ]
        units = [of_run(run) for run in series.cold_runs]
        return typical(units, generator(quantity, series.id, "alone"), Effects.pooled(groups))

    def cold_effect(self, quantity: str, system: str, mode: str) -> Replicates:
        """Run 0 over the typical hot run; Absent unless run 0 was proved to be a cold start.

        The thesis restarted the machine, then started servers, filled topics and measured. Its cold run is therefore
        what we call a cold start, and it is not asked that files were still out of memory when the window opened.
        """
        series = self.series(system, mode)
        for run in series.cold_runs:
            if run.manifest.cold_proof.verdict != COLD:
                verdict = run.manifest.cold_proof.verdict
                raise Absent(f"{series.title}: run 0 was no cold start but {verdict} before the servers started")
        return self._measures.cold_effect(METRICS[quantity], series)

    def one_run(self, quantity: str, system: str, threads: int) -> Replicates:
        """`quantity` of the only run of a series of the study of threads, in doubt as far as main runs differ."""
        series = self.series(system, "single", THREADS, threads)
        run = self._measures.of_run(METRICS[quantity], series.runs[0])
        groups = [
            [self._measures.of_run(METRICS[quantity], each) for each in other.hot_runs]
            for other in self._measures.run_set.select(mode="single", stack=self.stack, harness=False)
        ]
        return typical([run], generator(quantity, series.id, "one run"), Effects.pooled(groups))

    def merge(self, system: str, mode: str, like: str) -> Replicates:
        """µs a row of the merge of a series, in doubt as far as flushes (`like` has them) differ between runs."""
        series = self.series(system, mode)
        merges = [self._once("merge per row", repeat.runs[-1]) for repeat in series.repeats if repeat.runs]
        self.series(like, mode)
        flushes = [
            [
                self._once("flush per row", run)
                for run in other.hot_runs
                if run.manifest.flush and run.manifest.flush.rows
            ]
            for one in ("single", "batch")
            for other in self._measures.run_set.select(mode=one, stack=self.stack, harness=False)
        ]
        return typical(merges, generator("merge", series.id), Effects.pooled([merges, *flushes]))

    @staticmethod
    def _once(quantity: str, run: Run) -> Replicates:
        return known(QUANTITIES[quantity][1](run))

    def _note(self, runs: Sequence[Run]) -> None:
        for run in runs:
            oracle = run.manifest.oracle
            if oracle.applicable and not oracle.verdict:
                raise Absent(f"{run.label}: the table does not hold what was acknowledged")
        self.runs += runs


def positive(replicates: Replicates) -> Replicates:
    """`replicates` on the logarithmic scale; Absent for a quantity that may be zero or less, which has no ratio."""
    if replicates.log:
        return replicates
    draws = replicates.draws
    if replicates.centre <= 0 or (draws is not None and bool((draws <= 0).any())):
        raise Absent("a quantity that may be zero has no ratio")
    logarithms = None if draws is None else np.log(draws)
    return Replicates(math.log(replicates.centre), logarithms, replicates.n, replicates.runs, replicates.degrees)


def extreme(parts: Sequence[Replicates], largest: bool) -> Replicates:
    """The largest, or the smallest, of several quantities that were resampled on their own."""
    pick = np.max if largest else np.min
    if len({part.log for part in parts}) > 1:
        parts = [part.linear() for part in parts]
    draws: Floats | None = None
    if any(part.draws is not None for part in parts):
        columns = [part.draws if part.draws is not None else np.full(REPLICATES, part.centre) for part in parts]
        draws = pick(np.stack(columns), axis=0)
    return _joined(float(pick([part.centre for part in parts])), draws, parts)


def mean(parts: Sequence[Replicates]) -> Replicates:
    """The geometric mean of positive quantities that were resampled on their own."""
    parts = [positive(part) for part in parts]
    draws: Floats | None = None
    if all(part.draws is not None for part in parts):
        draws = np.mean(np.stack([part.draws for part in parts if part.draws is not None]), axis=0)
    return _joined(float(np.mean([part.centre for part in parts])), draws, parts)


def _joined(centre: float, draws: Floats | None, parts: Sequence[Replicates]) -> Replicates:
    n, runs = sum(part.n for part in parts), min(part.runs for part in parts)
    return Replicates(centre, draws, n, runs, min(part.degrees for part in parts), parts[0].log)
