"""Metrics of the study, times of complete tables and closes that HDFS refuses, and its selections of series.

A series has one run, all of whose repetitions count.
A run whose tables differ from their source has counts of the errors, but no times: they are NotAvailable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import REPLICATES, BlockSample
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, MetricSet, require
from tidemark.analysis.statistics import FEWEST, BootstrapEstimate, generator, known, literal, quantile
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.deltars.samples import DATA, READ, WRITE, DeltarsSettings

NOT_THE_SOURCE = "a table does not hold what was written"
SECONDS = 1e-9  # seconds per nanosecond
MEGABYTE = 1e6
FEWEST_OF_ALL = 3  # samples; fewer give no interval
# Parts of a write that goes through servers: columns of its operations, and their titles.
STEPS = {
    "upload": "Upload: rows into the topic",
    "application": "Application of Spark: started, ended",
    "kafka": "Topic read, decoded",
    "tasks": "Tasks of the table's format",
    "driver": "Spark's driver",
    "hdfs": "Calls of HDFS",
}
MATERIALISE = ("application", "kafka", "tasks", "driver", "hdfs")  # parts that the thesis calls materialising


def of_operation(run: Run, operation: str, column: str) -> NDArray[np.int64]:
    """Return a column of the writes or of the reads in order, as int64[repetitions].

    Raise NotAvailable if tables are wrong.
    """
    require(run.manifest.oracle.verdict, NOT_THE_SOURCE)
    values: NDArray[np.int64] = run.column(column)[run.words("call") == operation]
    require(len(values), f"the run has no {operation}")
    return values


def times(run: Run, operation: str) -> NDArray[np.float64]:
    """Return the seconds of each operation, as float64[repetitions]."""
    return np.asarray(of_operation(run, operation, "elapsed_ns") * SECONDS, np.float64)


def _median(run: Run, operation: str) -> BootstrapEstimate:
    return quantile(BlockSample.prepare(times(run, operation), generator(run.label, operation)), 0.5)


def mean_of(values: NDArray[np.float64], *names: object) -> BootstrapEstimate:
    """Return the mean with a bootstrap interval as in the thesis: a thousand resamples of all samples.

    For few samples, where that would be too narrow, the interval is Student's on logarithms.
    """
    n, rng = len(values), generator(*names)
    centre = math.log(float(values.mean()))
    if n < FEWEST_OF_ALL:
        return BootstrapEstimate(centre, None, n)
    if n < FEWEST:
        error = float(np.std(np.log(values), ddof=1)) / math.sqrt(n)
        return BootstrapEstimate(centre, centre + error * rng.standard_normal(REPLICATES), n, degrees=n - 1)
    return BootstrapEstimate(centre, np.log(rng.choice(values, size=(REPLICATES, n)).mean(axis=1)), n)


def _mean(run: Run, operation: str) -> BootstrapEstimate:
    return mean_of(times(run, operation), run.label, operation, "mean")


def _rate(run: Run, operation: str) -> BootstrapEstimate:
    rows = of_operation(run, operation, "rows")
    require(rows.all(), "there were no rows")
    return literal(1e-3).ratio(mean_of(times(run, operation) / rows, run.label, operation, "mean"))


def _with_source(run: Run) -> BootstrapEstimate:
    """Return the mean write time including the reading of the source's file, as the thesis timed its writes."""
    return mean_of(times(run, WRITE) + of_operation(run, WRITE, "source_ns") * SECONDS, run.label, "with source")


def _slowest(run: Run, operation: str) -> BootstrapEstimate:
    return known(float(times(run, operation).max()))


def _first(run: Run) -> BootstrapEstimate:
    """Return the process's first write over the median of the others: it connects, and runs code for the first time."""
    first, *others = times(run, WRITE)
    require(len(others) >= 2, "there are no others to hold the first against")
    return known(float(first / np.median(others)))


def _refused(run: Run) -> BootstrapEstimate:
    """Return the mean number of closes per write that the NameNode refused.

    Raise NotAvailable if no file was closed there.
    """
    closed = of_operation(run, WRITE, "closed")
    require(closed.sum(), "no file is closed by asking a NameNode")
    refused = of_operation(run, WRITE, "refused").astype(np.float64)
    n, draws = len(refused), None
    if n >= FEWEST:
        draws = generator(run.label, "refused").choice(refused, size=(REPLICATES, n)).mean(axis=1)
    return BootstrapEstimate(float(refused.mean()), draws, n, log=False, bounds=(0.0, math.inf))


def _cpu(run: Run) -> BootstrapEstimate:
    return mean_of(np.maximum(of_operation(run, WRITE, "cpu_ns"), 1) * SECONDS, run.label, "cpu")


def parts(run: Run) -> dict[str, NDArray[np.float64]]:
    """Return float64[writes] in seconds for each of STEPS; NotAvailable if the client reports no parts."""
    found = {step: np.asarray(of_operation(run, WRITE, f"{step}_ns") * SECONDS, np.float64) for step in STEPS}
    require(any(each.any() for each in found.values()), "a write of it is one call, which has no parts")
    return found


def mean_parts(runs: Sequence[Run]) -> dict[str, float]:
    """Return the mean seconds of each of STEPS over all writes, and the `rest`, which is the client's own time.

    Raise NotAvailable if the client reports no parts.
    """
    require(runs, "there is no run")
    by_step = [parts(run) for run in runs]
    sums = {step: sum(float(each[step].mean()) for each in by_step) for step in STEPS}
    sums["rest"] = sum(float(times(run, WRITE).mean()) for run in runs) - sum(sums.values())
    return {step: total / len(runs) for step, total in sums.items()}


def _part(run: Run, steps: tuple[str, ...], what: str, *, as_share: bool = False) -> BootstrapEstimate:
    by_step = parts(run)
    whole = np.asarray(sum(by_step[step] for step in steps), np.float64)
    require(whole.all(), f"{what} is no part of its writes")
    if as_share:
        return mean_of(100 * whole / times(run, WRITE), run.label, what, "share")
    return mean_of(whole, run.label, what)


def _peak(run: Run) -> BootstrapEstimate:
    most = max(int(of_operation(run, each, "peak_bytes").max()) for each in (WRITE, READ))
    require(most, "the kernel keeps no peak of memory")
    return known(most / MEGABYTE)


def _bytes(run: Run) -> BootstrapEstimate:
    footprint, rows = run.footprint, int(of_operation(run, WRITE, "rows")[-1])
    require(footprint.data_files, "no file is kept")
    return known(footprint.bytes / rows)


WRITE_MEDIAN = Metric(
    "write", "s", "Write: median", partial(_median, operation=WRITE), LOWER, "write", "Writes", ("slower", "faster")
)
READ_MEDIAN = Metric(
    "read", "s", "Read: median", partial(_median, operation=READ), LOWER, "read", "Reads", ("slower", "faster")
)
WRITE_MEAN = Metric("write mean", "s", "Write: mean", partial(_mean, operation=WRITE), LOWER)
READ_MEAN = Metric("read mean", "s", "Read: mean", partial(_mean, operation=READ), LOWER)
WITH_SOURCE = Metric("write with source", "s", "Write, its source read meanwhile: mean", _with_source, LOWER)
WRITE_RATE = Metric("rows written", "k rows/s", "Rows written", partial(_rate, operation=WRITE), HIGHER)
READ_RATE = Metric("rows read", "k rows/s", "Rows read", partial(_rate, operation=READ), HIGHER)
WRITE_SLOWEST = Metric("slowest write", "s", "Write: slowest", partial(_slowest, operation=WRITE), LOWER)
FIRST = Metric("first write", "x", "First write by the median of the others", _first, LOWER)
REFUSED = Metric("refused closes", "", "Closes refused, a write", _refused, LOWER, signed=True)
CPU = Metric("client CPU", "CPU-s", "CPU-seconds of the client, a write", _cpu, LOWER)
PEAK = Metric("client memory", "MB", "Most memory of the client", _peak, LOWER)
BYTES = Metric("bytes a row", "B", "Bytes a row", _bytes, LOWER)

UPLOAD = Metric("upload", "s", "Upload: mean", partial(_part, steps=("upload",), what="upload"), LOWER)
MATERIALISED = Metric(
    "materialise", "s", "Materialised: mean", partial(_part, steps=MATERIALISE, what="materialise"), LOWER
)
UPLOAD_SHARE = Metric(
    "upload share", "%", "Upload, of a write", partial(_part, steps=("upload",), what="upload", as_share=True), LOWER
)
START_SHARE = Metric(
    "application share", "%", "Starting and ending the application, of a write",
    partial(_part, steps=("application",), what="application", as_share=True), LOWER,
)  # fmt: skip
MEANS = {WRITE: WRITE_MEAN, READ: READ_MEAN}
MEDIANS = {WRITE: WRITE_MEDIAN, READ: READ_MEDIAN}
RATES = {WRITE: WRITE_RATE, READ: READ_RATE}
COSTS = {"cpu": CPU, "memory": PEAK, "bytes": BYTES, "first": FIRST, "slowest": WRITE_SLOWEST}  # other than time
QUANTITIES = MetricSet(
    all=(
        WRITE_MEDIAN, READ_MEDIAN, WRITE_MEAN, READ_MEAN, WITH_SOURCE, WRITE_RATE, READ_RATE, WRITE_SLOWEST, FIRST,
        REFUSED, CPU, PEAK, BYTES, UPLOAD, MATERIALISED, UPLOAD_SHARE, START_SHARE,
    ),
    headline=(WRITE_MEDIAN, READ_MEDIAN, WRITE_RATE),
    code=("studies/deltars/metrics.py", "studies/deltars/samples.py"),
)  # fmt: skip


def size_of(data: str) -> tuple[bool, float]:
    """Return the sort key of a table: tables of suppliers first, then by scale."""
    found = DATA.fullmatch(data)
    assert found is not None, data
    return found["table"] == "lineitem", float(found["scale"])


def in_order(
    run_set: RunSet, *, system: str | None = None, data: str | None = None, cores: int | None = None
) -> list[Series]:
    """Return the series of a system, of a table and with a number of processors, or of all; sorted by these."""

    def is_meant(series: Series) -> bool:
        settings = DeltarsSettings.of(series)
        return system in (None, series.system) and data in (None, settings.data) and cores in (None, settings.cores)

    def place(series: Series) -> tuple[bool, float, int, str]:
        settings = DeltarsSettings.of(series)
        return *size_of(settings.data), settings.cores, series.system

    return sorted(filter(is_meant, run_set.select()), key=place)


def tables_of(run_set: RunSet) -> list[str]:
    """Return the planned tables, in order."""
    return sorted({DeltarsSettings.of(each).data for each in run_set.select()}, key=size_of)


def fewest_cores(run_set: RunSet) -> int:
    """Return the fewest processors measured, to report one number as the thesis's figures do.

    Raise NotAvailable without a run.
    """
    found = {DeltarsSettings.of(each).cores for each in run_set.select() if each.runs}
    require(found, "no system was measured")
    return min(found)


def most_common(run_set: RunSet, stack: str) -> tuple[str, int]:
    """Return the table and processors that most systems were measured with under `stack`. Ties go to the largest table,
    then to the fewest processors. Raise NotAvailable if there is no run.
    """
    systems: dict[tuple[str, int], set[str]] = {}
    for each in run_set.select(stack=stack, harness=False):
        if each.runs:
            systems.setdefault(DeltarsSettings.of(each).cell, set()).add(each.system)
    require(systems, "no system was measured")
    return max(systems, key=lambda shape: (len(systems[shape]), size_of(shape[0]), -shape[1]))


def find(run_set: RunSet, system: str, data: str, cores: int) -> Series | None:
    """Return the series of a system with one table and `cores` processors; None if it is not planned."""
    return next(iter(in_order(run_set, system=system, data=data, cores=cores)), None)


def by_refusals(series: Series) -> list[tuple[int, list[float]]]:
    """Return the seconds of the writes by the number of closes that the NameNode refused, also if tables are wrong."""
    found: dict[int, list[float]] = {}
    for run in series.runs:
        writes = run.words("call") == WRITE
        for refused, elapsed_ns in zip(run.column("refused")[writes], run.column("elapsed_ns")[writes], strict=True):
            found.setdefault(int(refused), []).append(float(elapsed_ns) / 1e9)
    return sorted(found.items())


def limit_of(run: Run) -> int | None:
    """Return the most messages that a run's application takes, 0 for all; None for a system without such a limit."""
    found = dict(run.manifest.system.options).get("limit")
    return None if found is None else int(found)


def sent_and_there(run: Run) -> tuple[int, int]:
    """Return the number of rows written and the number read back by the client, as means over repetitions."""
    calls, rows = run.words("call"), run.column("rows")
    return int(rows[calls == WRITE].mean()), int(rows[calls == READ].mean())
