"""MetricSet of the study: commits and rows per second, commit latency, refusals, fairness, files.

A run whose table does not hold what was acknowledged has counts of what is wrong; its speeds raise NotAvailable.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample, block_length, draw_cells
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, MetricSet, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, generator, known, quantile, ratio_of_sums, share
from tidemark.runs.run import Run
from tidemark.studies.ingest.load.records import ACKED, FAILED, GIVEN_UP, NOT_TOLD, REFUSED, UNKNOWN
from tidemark.studies.ingest.parts import CUT, FAULTS, FRONT
from tidemark.studies.ingest.record import CommitRecord, RequestRecord
from tidemark.studies.ingest.settings import GROUP, TAIL

SERVERLESS = ("harness", "writers", "clients")  # process groups that are not servers
NOT_COMPARABLE = "not comparable: the table does not hold what was acknowledged"
UNSOUND = {
    FAULTS: "writers and servers were killed in it",
    FRONT: "its front was killed in it",
    CUT: "the power was cut in it",
    TAIL: "its requests came by a schedule",
}
CELLS = 64  # equal parts of a window, which are resampled for fairness


def _sound(run: Run) -> Run:
    part = dict(run.manifest.config).get("part")
    if part in UNSOUND:
        raise NotAvailable(UNSOUND[part])
    if not run.manifest.oracle.verdict:
        raise NotAvailable(NOT_COMPARABLE)
    return run


def outcomes(run: Run) -> NDArray[np.str_]:
    if not run.has("outcome"):
        raise NotAvailable("nothing is committed in the window")
    return run.words("outcome")


def acked_inside(run: Run) -> NDArray[np.bool_]:
    """Return bool[attempts]: True if acknowledged before the window's end; raise NotAvailable if none was."""
    ends = run.column("start_ns") + run.column("elapsed_ns")
    found: NDArray[np.bool_] = (outcomes(run) == ACKED) & (ends <= run.manifest.elapsed_ns)
    if not found.any():
        raise NotAvailable("no commit was acknowledged inside the window")
    return found


def is_group(run: Run) -> bool:
    """Return True if a front gathered client requests into commits, so that each record is a request."""
    return dict(run.manifest.config).get("part") == GROUP


def _requests(run: Run) -> BootstrapEstimate:
    """Return acknowledged batches per second of the window; each batch is a commit, except behind a front."""
    chosen = acked_inside(_sound(run))
    return _rate(run, (run.column("start_ns") + run.column("elapsed_ns"))[chosen], "requests")


def _commits(run: Run) -> BootstrapEstimate:
    """Return acknowledged commits per second of the window."""
    chosen = acked_inside(_sound(run))
    ends = (run.column("start_ns") + run.column("elapsed_ns"))[chosen]
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
    chosen = acked_inside(_sound(run))
    times = np.maximum(run.column("response_ns")[chosen], 1)
    least = round(1 / (1 - probability))
    if len(times) < least:
        raise NotAvailable(f"needs {least:,} commits, the run has {len(times):,}")
    sample = BlockSample.prepare(times, generator(run.label, "latency"))
    return quantile(sample, probability).scaled(1e-6)


def refusals(run: Run) -> tuple[int, int, str]:
    """Return the number of commits refused, the number tried, and the counter: "catalog", "client" or "caller"."""
    found, outcome, told = run.record(CommitRecord), outcomes(run), run.column("commits")
    if found.refused is not None:
        return found.refused, found.refused + (found.commits or 0), "catalog"
    acked = int((outcome == ACKED).sum())
    if (told != NOT_TOLD).all():
        tried = int(told.sum())
        return tried - acked - int(np.isin(outcome, (FAILED, UNKNOWN)).sum()), tried, "client"
    return int(np.isin(outcome, REFUSED).sum()), len(outcome), "caller"


def _share(run: Run, part: int, whole: int, name: str) -> BootstrapEstimate:
    """Return a share with a Jeffreys interval; raise NotAvailable if `whole` is 0."""
    if whole == 0:
        raise NotAvailable("there was none")
    return share(part, whole, generator(run.label, name))


def _conflicts(run: Run) -> BootstrapEstimate:
    refused, tried, _ = refusals(run)
    return _share(run, refused, tried, "conflicts")


def _conflicts_a_commit(run: Run) -> BootstrapEstimate:
    """Return refused commits per acknowledged commit: the odds of the refused share."""
    found = _conflicts(run)
    assert found.draws is not None
    if found.value >= 1:
        raise NotAvailable("no commit was acknowledged")
    draws = np.minimum(found.draws, 1 - 1e-12)
    odds = draws / (1 - draws)
    return BootstrapEstimate(found.value / (1 - found.value), odds, found.n, log=False, bounds=(0.0, np.inf))


def _ended(run: Run, ends: tuple[str, ...]) -> BootstrapEstimate:
    """Return the share of completed batches whose outcome is one of `ends`."""
    outcome = outcomes(run)
    ended = int(np.isin(outcome, (ACKED, GIVEN_UP, FAILED, UNKNOWN)).sum())
    return _share(run, int(np.isin(outcome, ends).sum()), ended, " ".join(ends))


def _wrong_rows(run: Run, name: str) -> BootstrapEstimate:
    """Return the share of acknowledged rows that are `lost` or `doubled`."""
    oracle = run.manifest.oracle
    if not oracle.applicable:
        raise NotAvailable("nothing is stored")
    return _share(run, oracle.missing if name == "lost" else oracle.duplicated, oracle.expected, name)


def _fairness(run: Run) -> BootstrapEstimate:
    """Return Jain's index of the writers' acknowledged commits: 1 if all have equally many, 1/N if one has all."""
    chosen = acked_inside(_sound(run))
    given = dict(run.manifest.config)
    writers = int(given["clients" if is_group(run) else "writers"])
    if writers == 1:
        raise NotAvailable("there is one writer")
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
    if run.footprint.data_files == 0:
        raise NotAvailable("no data file is kept")
    return known(run.footprint.data_files / max(commits, 1))


def _of_the_table(run: Run, by: str) -> BootstrapEstimate:
    """Return acknowledged requests, including those before the window, per commit or per data file (`by`)."""
    found = _sound(run).record(CommitRecord)
    if not is_group(run):
        raise NotAvailable("there is no front")
    count = found.commits if by == "commits" else found.referenced_files - 1  # less that of the first commit
    requests = run.record(RequestRecord).requests
    if not count or count < 1 or requests is None:
        raise NotAvailable("no data file is kept")
    return known(requests / count)


def _cpu(run: Run, groups: Callable[[str], bool]) -> BootstrapEstimate:
    """Return CPU milliseconds per 1,000 acknowledged rows, over the full seconds of the window."""
    _sound(run)
    seconds = run.seconds()
    spent = [float(np.nansum(percent * seconds.length)) / 100 for name, percent in seconds.groups if groups(name)]
    inside = run.column("rows")[acked_inside(run)].sum()
    if not spent:
        raise NotAvailable("there is no such process")
    if sum(spent) <= 0 or not len(seconds.length):
        raise NotAvailable("none was seen in a whole second")
    whole = float(seconds.length.sum()) * 1e9 / run.manifest.elapsed_ns
    return known(1e6 * sum(spent) / (float(inside) * whole))


def is_server(group: str) -> bool:
    return group not in SERVERLESS


def is_writers(group: str) -> bool:
    return group == "writers"


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
LOST = Metric(
    "lost", "", "Share of acknowledged rows that are not there", partial(_wrong_rows, name="lost"), LOWER, signed=True
)
DOUBLED = Metric(
    "doubled",
    "",
    "Share of acknowledged rows that are there twice",
    partial(_wrong_rows, name="doubled"),
    LOWER,
    signed=True,
)
FAIRNESS = Metric("fairness", "", "Fairness between writers (Jain)", _fairness, HIGHER, signed=True)
FILES = Metric("files a commit", "files", "Data files for each commit", _files, LOWER)
REQUESTS = Metric("requests", "requests/s", "Requests", _requests, HIGHER, "requests", "Requests", ("more", "fewer"))
REQUESTS_A_FILE, REQUESTS_A_COMMIT = (
    Metric(f"requests a {one}", "requests", f"Requests for each {title}", partial(_of_the_table, by=by), HIGHER)
    for one, title, by in (("file", "data file", "files"), ("commit", "commit", "commits"))
)
SERVER_CPU = Metric("CPU of servers", "ms", "CPU of servers, 1,000 rows", partial(_cpu, groups=is_server), LOWER)
WRITER_CPU = Metric("CPU of writers", "ms", "CPU of writers, 1,000 rows", partial(_cpu, groups=is_writers), LOWER)

QUANTITIES = MetricSet(
    all=(
        COMMITS, ROWS, P50, P99, P999, CONFLICTS, CONFLICTS_A_COMMIT, ABANDONED, ERRORS, LOST, DOUBLED, FAIRNESS,
        FILES, REQUESTS, REQUESTS_A_FILE, REQUESTS_A_COMMIT, SERVER_CPU, WRITER_CPU,
    ),
    headline=(COMMITS, P50, P99, CONFLICTS, LOST),
    code=("studies/ingest/metrics.py", "studies/ingest/load/records.py"),
)  # fmt: skip
