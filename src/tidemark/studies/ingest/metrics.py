"""MetricSet of the study: commits and rows per second, latencies, refusals, fairness, files, requests by a schedule.

A run whose table does not hold what was acknowledged has counts of what is wrong; its speeds raise NotAvailable.

In an overloaded window of the part `tail`, requests that never began are not among the times, and those that did began
before them: the values are lower bounds, and tables mark them as such.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.aggregation import measured_once
from tidemark.analysis.blocks import BlockSample, block_length, draw_cells
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, MetricSet, NotAvailable, require
from tidemark.analysis.statistics import (
    BootstrapEstimate,
    counted,
    counted_share,
    generator,
    known,
    quantile,
    ratio_of_sums,
    share,
)
from tidemark.runs.run import Run
from tidemark.studies.ingest.load.records import ACKED, FAILED, GIVEN_UP, NOT_TOLD, REFUSED, UNKNOWN
from tidemark.studies.ingest.parts import AMBIGUITY, CUT, FAULTS, FRONT
from tidemark.studies.ingest.record import ClosedLoop, CommitRecord, PruningRecord, RequestRecord, Schedule
from tidemark.studies.ingest.settings import EVOLUTION, GROUP, PACED, PRUNING, TAIL
from tidemark.systems.pruning_dataset import BY_NAME, PREDICATES

SERVERLESS = ("harness", "writers", "clients")  # process groups that are not servers
NOT_COMPARABLE = "not comparable: the table does not hold what was acknowledged"
UNSOUND = {
    FAULTS: "writers and servers were killed in it",
    FRONT: "its front was killed in it",
    CUT: "the power was cut in it",
    AMBIGUITY: "its commits were lost on purpose, or the answers to them",
    TAIL: "its requests came by a schedule",
    PACED: "its commits came at a set interval",
}
type Times = NDArray[np.int64]
CELLS = 64  # equal parts of a window, which are resampled for fairness


def _sound(run: Run) -> Run:
    part = dict(run.manifest.config).get("part")
    if part in UNSOUND:
        raise NotAvailable(UNSOUND[part])
    require(run.manifest.oracle.verdict, NOT_COMPARABLE)
    return run


def _of(run: Run, part: str, otherwise: str) -> Run:
    """Return a run of `part` whose table holds what was acknowledged; raise NotAvailable for others."""
    require(dict(run.manifest.config).get("part") == part, otherwise)
    require(run.manifest.oracle.verdict, NOT_COMPARABLE)
    return run


def outcomes(run: Run) -> NDArray[np.str_]:
    require(run.has("outcome"), "nothing is committed in the window")
    return run.words("outcome")


def ends_ns(run: Run) -> NDArray[np.int64]:
    """Return int64[attempts]: the end of each, in nanoseconds of the window."""
    return run.column("start_ns") + run.column("elapsed_ns")


def acked_inside(run: Run) -> NDArray[np.bool_]:
    """Return bool[attempts]: True if acknowledged before the window's end.

    Raise NotAvailable if none was, or if the run's speeds are no results.
    """
    acked = outcomes(_sound(run)) == ACKED
    found: NDArray[np.bool_] = acked & (ends_ns(run) <= run.manifest.elapsed_ns)
    require(found.any(), "no commit was acknowledged inside the window")
    return found


def is_group(run: Run) -> bool:
    """Return True if a front gathered client requests into commits, so that each record is a request."""
    return dict(run.manifest.config).get("part") == GROUP


def _requests(run: Run) -> BootstrapEstimate:
    """Return acknowledged batches per second of the window; each batch is a commit, except behind a front."""
    return _rate(run, ends_ns(run)[acked_inside(run)], "requests")


def _commits(run: Run) -> BootstrapEstimate:
    """Return acknowledged commits per second of the window."""
    chosen = acked_inside(run)
    ends = ends_ns(run)[chosen]
    if is_group(run):  # for clients, a commit ends when the first of its requests is answered
        order = np.argsort(ends, kind="stable")
        ends = ends[order][np.unique(run.column("commit")[chosen][order], return_index=True)[1]]
    return _rate(run, ends, "commits")


def _rate(run: Run, ends: NDArray[np.int64], name: str) -> BootstrapEstimate:
    """Return the rate per second of operations that ended at `ends` (ns) inside the window."""
    ends = np.sort(ends)
    between = np.maximum(np.diff(ends, prepend=0), 1)
    between[-1] += max(run.manifest.elapsed_ns - int(ends[-1]), 0)  # the parts add up to the window
    return ratio_of_sums(np.ones(len(ends)), between, generator(run.label, name)).scaled(1e9)


def _rows(run: Run) -> BootstrapEstimate:
    return _requests(run).scaled(float(run.column("rows").max()))


def _latency(run: Run, probability: float) -> BootstrapEstimate:
    """Return a quantile of commit latency (ms), from the first try to the acknowledgement, by samples in time order."""
    chosen = acked_inside(run)  # raises NotAvailable for windows without commits
    times = run.column("response_ns")[chosen]
    return _quantile_ms(run, times, probability, round(1 / (1 - probability)), "commits", "latency")


def _quantile_ms(run: Run, times: Times, probability: float, least: int, what: str, name: str) -> BootstrapEstimate:
    """Return a quantile of `times` (ns) in ms, with draws by `name`; raise NotAvailable for fewer than `least`."""
    require(len(times) >= least, f"needs {least:,} {what}, the run has {len(times):,}")
    sample = BlockSample.prepare(np.maximum(times, 1), generator(run.label, name))
    return quantile(sample, probability).scaled(1e-6)


def refusals(run: Run) -> tuple[int, int, str]:
    """Return the number of commits refused, the number tried, and the counter: "catalog", "client" or "caller"."""
    found, outcome, tries = run.record(CommitRecord), outcomes(run), run.column("commits")
    if found.refused is not None:
        return found.refused, found.refused + (found.commits or 0), "catalog"
    acked = int((outcome == ACKED).sum())
    if (tries != NOT_TOLD).all():
        tried = int(tries.sum())
        return tried - acked - int(np.isin(outcome, (FAILED, UNKNOWN)).sum()), tried, "client"
    return int(np.isin(outcome, REFUSED).sum()), len(outcome), "caller"


def _share(run: Run, part: int, whole: int, name: str) -> BootstrapEstimate:
    """Return a share with a Jeffreys interval; raise NotAvailable if `whole` is 0."""
    return share(part, require(whole, "there was none"), generator(run.label, name))


def _conflicts(run: Run) -> BootstrapEstimate:
    refused, tried, _ = refusals(run)
    return _share(run, refused, tried, "conflicts")


def _conflicts_a_commit(run: Run) -> BootstrapEstimate:
    """Return refused commits per acknowledged commit: the odds of the refused share."""
    found = _conflicts(run)
    assert found.draws is not None
    require(found.value < 1, "no commit was acknowledged")
    draws = np.minimum(found.draws, 1 - 1e-12)
    odds = draws / (1 - draws)
    return BootstrapEstimate(found.value / (1 - found.value), odds, found.n, log=False, bounds=(0.0, np.inf))


def _ended(run: Run, ends: tuple[str, ...]) -> BootstrapEstimate:
    """Return the share of completed batches whose outcome is one of `ends`."""
    outcome = outcomes(run)
    ended = int(np.isin(outcome, (ACKED, GIVEN_UP, FAILED, UNKNOWN)).sum())
    return _share(run, int(np.isin(outcome, ends).sum()), ended, " ".join(ends))


def _wrong_rows(run: Run, name: str) -> BootstrapEstimate:
    """Return the share of acknowledged rows that are `lost` or `doubled`, as counted in this run."""
    oracle = run.manifest.oracle
    require(oracle.applicable, "nothing is stored")
    whole = require(oracle.expected, "no row was acknowledged")
    return counted_share(oracle.missing if name == "lost" else oracle.duplicated, whole)


def _fairness(run: Run) -> BootstrapEstimate:
    """Return Jain's index of the writers' acknowledged commits: 1 if all have equally many, 1/N if one has all."""
    chosen = acked_inside(run)
    given = dict(run.manifest.config)
    writers = int(given["clients" if is_group(run) else "writers"])
    require(writers != 1, "there is one writer")
    cells = np.minimum(run.column("start_ns")[chosen] * CELLS // run.manifest.elapsed_ns, CELLS - 1)
    flat = cells * writers + run.column("writer")[chosen] - 1
    counts = np.bincount(flat, minlength=CELLS * writers).reshape(CELLS, writers).astype(np.float64)
    weights = draw_cells(CELLS, block_length(counts.sum(axis=1)), generator(run.label, "fairness"))
    draws = _jain(weights.astype(np.float64) @ counts)
    centre = float(_jain(counts.sum(axis=0, keepdims=True))[0])
    return BootstrapEstimate(centre, draws, int(chosen.sum()), log=False, bounds=(1 / writers, 1.0))


def _jain(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    squares = counts.shape[1] * (counts**2).sum(axis=1)
    found: NDArray[np.float64] = counts.sum(axis=1) ** 2 / np.maximum(squares, 1)
    return np.where(squares > 0, found, 1.0)  # without any commits, all writers are equal


def _files(run: Run) -> BootstrapEstimate:
    """Return data files on disk per acknowledged commit; files of refused commits are included."""
    commits = run.record(CommitRecord).commits
    if commits is None:
        raise NotAvailable("nothing is committed in the window")
    return known(require(run.footprint.data_files, "no data file is kept") / max(commits, 1))


def _of_the_table(run: Run, by: str) -> BootstrapEstimate:
    """Return acknowledged requests, including those before the window, per commit or per data file (`by`)."""
    found = _sound(run).record(CommitRecord)
    require(is_group(run), "there is no front")
    count = found.commits if by == "commits" else found.referenced_files - 1  # less that of the first commit
    requests = run.record(RequestRecord).requests
    if not count or count < 1 or requests is None:
        raise NotAvailable("no data file is kept")
    return known(requests / count)


def _cpu(run: Run, of_writers: bool) -> BootstrapEstimate:
    """Return CPU milliseconds of writers or servers per 1,000 acknowledged rows, over the full seconds of a window."""
    _sound(run)
    seconds = run.seconds()
    spent = [
        float(np.nansum(percent * seconds.length)) / 100
        for name, percent in seconds.groups
        if (name == "writers" if of_writers else name not in SERVERLESS)
    ]
    inside = run.column("rows")[acked_inside(run)].sum()
    require(spent, "there is no such process")
    require(sum(spent) > 0 and len(seconds.length), "none was seen in a whole second")
    whole = float(seconds.length.sum()) * 1e9 / run.manifest.elapsed_ns
    return known(1e6 * sum(spent) / (float(inside) * whole))


COMMITS = Metric("commits", "commits/s", "Commits", _commits, HIGHER, "commits", "Commits", ("more", "fewer"))
ROWS = Metric("rows", "rows/s", "Rows", _rows, HIGHER)
P50, P99, P999 = (
    Metric(f"commit {name}", "ms", f"Commit: {title}", partial(_latency, probability=probability), LOWER)
    for name, title, probability in (("p50", "median", 0.5), ("p99", "p99", 0.99), ("p99.9", "p99.9", 0.999))
)
CONFLICTS = Metric("conflicts", "", "Share of commits tried that are refused", _conflicts, LOWER, signed=True)
CONFLICTS_A_COMMIT = Metric(
    "conflicts a commit", "", "Commits refused for each acknowledged", _conflicts_a_commit, LOWER, signed=True
)
ABANDONED = Metric("given up", "", "Share of batches given up", partial(_ended, ends=(GIVEN_UP,)), LOWER, signed=True)
ERRORS = Metric(
    "errors", "", "Share of batches that ended in an error", partial(_ended, ends=(GIVEN_UP, FAILED, UNKNOWN)),
    LOWER, signed=True,
)  # fmt: skip
LOST, DOUBLED = (
    Metric(name, "", f"Share of acknowledged rows that are {what}", partial(_wrong_rows, name=name), LOWER, signed=True)
    for name, what in (("lost", "not there"), ("doubled", "there twice"))
)
FAIRNESS = Metric("fairness", "", "Fairness between writers (Jain)", _fairness, HIGHER, signed=True)
FILES = Metric("files a commit", "files", "Data files for each commit", _files, LOWER)
REQUESTS = Metric("requests", "requests/s", "Requests", _requests, HIGHER, "requests", "Requests", ("more", "fewer"))
REQUESTS_A_FILE, REQUESTS_A_COMMIT = (
    Metric(f"requests a {one}", "requests", f"Requests for each {title}", partial(_of_the_table, by=by), HIGHER)
    for one, title, by in (("file", "data file", "files"), ("commit", "commit", "commits"))
)
SERVER_CPU = Metric("CPU of servers", "ms", "CPU of servers, 1,000 rows", partial(_cpu, of_writers=False), LOWER)
WRITER_CPU = Metric("CPU of writers", "ms", "CPU of writers, 1,000 rows", partial(_cpu, of_writers=True), LOWER)


def _flushes_failed(run: Run) -> BootstrapEstimate:
    """Return the share of batches whose first call of the client was not acknowledged."""
    first = outcomes(run)[run.column("attempt") == 1]
    return _share(run, int((first != ACKED).sum()), len(first), "flushes failed")


def commit_times(run: Run) -> Times:
    """Return the times (ns) of acknowledged commits that came at a set interval, from the first try on."""
    return _acked(_of(run, PACED, "commits came at no set interval"), "response_ns")


def _acked(run: Run, column: str) -> Times:
    found: Times = run.column(column)[outcomes(run) == ACKED]
    return found


SPARSE = 0.99  # a quantile above it needs ten longer samples, one up to it needs one


def _on_schedule(run: Run) -> Run:
    return _of(run, TAIL, "requests came when those before were answered, and by no schedule")


def responses(run: Run) -> Times:
    """Return the times (ns) from intended start to acknowledgement, of all acknowledged requests due in the window."""
    return _acked(_on_schedule(run), "response_ns")


def waits(run: Run) -> Times:
    """Return the times (ns) from intended start to first try, of the same requests."""
    return _acked(_on_schedule(run), "wait_ns")


def services(run: Run) -> Times:
    """Return the times (ns) from first try to acknowledgement, of the same requests."""
    return responses(run) - waits(run)


def closed(run: Run) -> Times:
    """Return the raw times (ns) of the closed loop before the window."""
    return np.array(_on_schedule(run).record(ClosedLoop).response_ns, np.int64)


def corrected(run: Run) -> Times:
    """Return the same with HdrHistogram's correction, for an expected interval of the median cycle."""
    return with_omitted(closed(run), run.record(ClosedLoop).cycle_ns)


def with_omitted(times: Times, expected: int) -> Times:
    """Return `times` in order, each above `expected` followed by itself less 1, 2, ... times `expected`, down to it.

    This is HdrHistogram's correction for coordinated omission (recordValueWithExpectedInterval).
    """
    each = np.maximum(times // expected, 1)
    steps = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
    found: Times = np.repeat(times, each) - steps * expected
    return found


def _quantile(run: Run, times: Callable[[Run], Times], probability: float) -> BootstrapEstimate:
    least = round((10 if probability > SPARSE else 1) / (1 - probability))
    return _quantile_ms(run, times(run), probability, least, "requests", times.__name__)


MOST_LOAD = 0.99  # of the closed loop's rate: at 1 a queue has no typical length


def _queued(run: Run, times: Callable[[Run], Times], probability: float) -> BootstrapEstimate:
    """Return a quantile of times that contain a wait, with the variance that another window is assumed to have.

    The wait of a queue grows as 1 / (1 - load): a rate that differs by 1 % changes it by 1 % / (1 - load).
    """
    found = _quantile(run, times, probability)
    load = min(int(dict(run.manifest.config)["percent"]) / 100, MOST_LOAD)
    return measured_once(found, 1 / (1 - load) ** 2)


def _longest(run: Run) -> BootstrapEstimate:
    found = responses(run)
    require(len(found), "no request was acknowledged")
    return known(float(found.max()) * 1e-6)


def _utilisation(run: Run) -> BootstrapEstimate:
    """Return the offered rate times the mean service time, in percent, of one writer that serves serially."""
    rate = _on_schedule(run).record(Schedule).requests_per_s
    require(len(set(run.column("writer").tolist())) <= 1, "the requests of many clients share a commit")
    times = services(run)
    require(len(times), "no request was acknowledged")
    mean = ratio_of_sums(times, np.ones(len(times)), generator(run.label, "utilisation"))
    return mean.scaled(1e-9 * 100 * rate)


def _requests_per_s[T: (ClosedLoop, Schedule)](run: Run, kind: type[T]) -> BootstrapEstimate:
    return known(_on_schedule(run).record(kind).requests_per_s)


def _time(
    name: str, title: str, times: Callable[[Run], Times], probability: float, how: Callable[..., BootstrapEstimate]
) -> Metric:
    return Metric(name, "ms", title, partial(how, times=times, probability=probability), LOWER)


CAPACITY = Metric("closed rate", "requests/s", "Closed loop: requests", partial(_requests_per_s, kind=ClosedLoop))
OFFERED = Metric("offered rate", "requests/s", "Offered", partial(_requests_per_s, kind=Schedule))
UTILISATION = Metric("utilisation", "%", "Offered, of what the service allows", _utilisation, LOWER)
RESPONSE_P50, RESPONSE_P90, RESPONSE_P99, RESPONSE_P999, RESPONSE_P9999 = (
    _time(f"response {name}", f"Response: {title}", responses, probability, _queued)
    for name, title, probability in (
        ("p50", "median", 0.5), ("p90", "p90", 0.9), ("p99", "p99", 0.99), ("p99.9", "p99.9", 0.999),
        ("p99.99", "p99.99", 0.9999),
    )
)  # fmt: skip
RESPONSE_MAX = Metric("response max", "ms", "Response: longest", _longest, LOWER)
SERVICE_P99 = _time("service p99", "Service: p99", services, 0.99, _quantile)
WAIT_P99 = _time("wait p99", "Wait: p99", waits, 0.99, _queued)
CLOSED_P99 = _time("closed p99", "Closed loop: p99", closed, 0.99, _quantile)
CORRECTED_P99 = _time("corrected p99", "Closed loop, corrected: p99", corrected, 0.99, _quantile)

FLUSHES_FAILED = Metric(
    "flushes failed", "", "Share of flushes whose first call failed", _flushes_failed, LOWER, signed=True
)
PACED_P50 = _time("paced p50", "Commit: median", commit_times, 0.5, _quantile)
PACED_P99 = _time("paced p99", "Commit: p99", commit_times, 0.99, _quantile)

OF_PACE = (CONFLICTS, FLUSHES_FAILED, ABANDONED, PACED_P50, PACED_P99)
OF_SCHEDULES = (
    CAPACITY, OFFERED, UTILISATION, RESPONSE_P50, RESPONSE_P90, RESPONSE_P99, RESPONSE_P999, RESPONSE_P9999,
    RESPONSE_MAX, SERVICE_P99, WAIT_P99, CLOSED_P99, CORRECTED_P99,
)  # fmt: skip


def files_read(run: Run, predicate: str) -> int:
    """Return the most files that a query with `predicate` was left to read.

    Raise NotAvailable for runs of another part.
    """
    require(dict(run.manifest.config).get("part") == PRUNING, "no query is asked")
    return int(run.column("files")[run.words("predicate") == predicate].max())


def _files_read(run: Run, predicate: str) -> BootstrapEstimate:
    return counted(files_read(run, predicate))


def _query_ms(run: Run, predicate: str) -> BootstrapEstimate:
    """Return the median time of a query with `predicate`, in ms; NotAvailable if the table is wrong."""
    files_read(run, predicate)
    require(run.record(PruningRecord).plan_apart, "timed with a second query, for the plan, as runs before 2026-12 are")
    took = _sound(run).column("elapsed_ns")[run.words("predicate") == predicate]
    return quantile(BlockSample.prepare(took, generator(run.label, predicate)), 0.5).scaled(1e-6)


ALL_ROWS, ONE_REGION = PREDICATES[:2]
QUERY_ALL, QUERY_ONE = (
    Metric(f"query: {each.name}", "ms", f"Median query: {each.name}", partial(_query_ms, predicate=each.name), LOWER)
    for each in (ALL_ROWS, ONE_REGION)
)
FILES_READ = [
    Metric(f"files read: {name}", "files", f"Files read: {name}", partial(_files_read, predicate=name), LOWER)
    for name in BY_NAME
]


def _added(run: Run, name: str) -> NDArray[np.int64]:
    """Return a column of a window of added columns; raise NotAvailable for runs of another part, or a wrong table."""
    return _of(run, EVOLUTION, "no column is added").column(name)


def _change_ms(run: Run) -> BootstrapEstimate:
    took = BlockSample.prepare(_added(run, "elapsed_ns"), generator(run.label, "added"))
    return quantile(took, 0.5).scaled(1e-6)


def _rewritten(run: Run) -> BootstrapEstimate:
    return counted(int(_added(run, "rewritten").sum()))


ADD_COLUMN = Metric("add a column", "ms", "Add a column: median", _change_ms, LOWER)
REWRITTEN = Metric("files rewritten for a column", "files", "Files rewritten", _rewritten, LOWER)

QUANTITIES = MetricSet(
    all=(
        COMMITS, ROWS, P50, P99, P999, CONFLICTS, CONFLICTS_A_COMMIT, ABANDONED, ERRORS, LOST, DOUBLED, FAIRNESS,
        FILES, REQUESTS, REQUESTS_A_FILE, REQUESTS_A_COMMIT, SERVER_CPU, WRITER_CPU, FLUSHES_FAILED, PACED_P50,
        PACED_P99, *OF_SCHEDULES, QUERY_ALL, QUERY_ONE, *FILES_READ, ADD_COLUMN, REWRITTEN,
    ),
    headline=(COMMITS, P50, P99, CONFLICTS, LOST),
    code=("studies/ingest/metrics.py", "studies/ingest/load/records.py", "systems/pruning_dataset.py"),
)  # fmt: skip
