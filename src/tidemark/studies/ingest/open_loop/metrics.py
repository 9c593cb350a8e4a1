"""MetricSet of the part `tail`: times from the intended start, and those that a closed loop would report instead.

In an overloaded window, requests that never began are not among the times, and those that did began before them:
the values are lower bounds, and tables mark them as such.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.metrics import LOWER, Metric, NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate, generator, known, quantile, ratio_of_sums
from tidemark.runs.run import Run
from tidemark.studies.ingest.load.records import ACKED
from tidemark.studies.ingest.metrics import NOT_COMPARABLE, outcomes
from tidemark.studies.ingest.record import ClosedLoop, ClosedLoopRecord, Schedule, ScheduleRecord
from tidemark.studies.ingest.settings import TAIL

type Times = NDArray[np.int64]

SPARSE = 0.99  # a quantile above it needs ten longer samples, one up to it needs one


def _sound(run: Run) -> Run:
    """Return the run; raise NotAvailable for a run of another part, or whose table lacks what was acknowledged."""
    if dict(run.manifest.config).get("part") != TAIL:
        raise NotAvailable("requests came when those before were answered, and by no schedule")
    if not run.manifest.oracle.verdict:
        raise NotAvailable(NOT_COMPARABLE)
    return run


def _closed_loop(run: Run) -> ClosedLoop:
    return _sound(run).record(ClosedLoopRecord).closed


def _schedule(run: Run) -> Schedule:
    return _sound(run).record(ScheduleRecord).schedule


def is_overloaded(run: Run) -> bool:
    return run.record(ScheduleRecord).schedule.overloaded


def responses(run: Run) -> Times:
    """Return the times (ns) from intended start to acknowledgement, of all acknowledged requests due in the window."""
    found: Times = _sound(run).column("response_ns")[outcomes(run) == ACKED]
    return found


def waits(run: Run) -> Times:
    """Return the times (ns) from intended start to first try, of the same requests."""
    found: Times = _sound(run).column("wait_ns")[outcomes(run) == ACKED]
    return found


def services(run: Run) -> Times:
    """Return the times (ns) from first try to acknowledgement, of the same requests."""
    return responses(run) - waits(run)


def closed(run: Run) -> Times:
    """Return the raw times (ns) of the closed loop before the window."""
    return np.array(_closed_loop(run).response_ns, np.int64)


def corrected(run: Run) -> Times:
    """Return the same with HdrHistogram's correction, for an expected interval of the median cycle."""
    return with_omitted(closed(run), _closed_loop(run).cycle_ns)


def with_omitted(times: Times, expected: int) -> Times:
    """Return `times` in order, each above `expected` followed by itself less 1, 2, ... times `expected`, down to it.

    This is HdrHistogram's correction for coordinated omission (recordValueWithExpectedInterval).
    """
    each = np.maximum(times // expected, 1)
    steps = np.arange(each.sum()) - np.repeat(np.cumsum(each) - each, each)
    found: Times = np.repeat(times, each) - steps * expected
    return found


def _quantile(run: Run, times: Callable[[Run], Times], probability: float) -> BootstrapEstimate:
    found = np.maximum(times(run), 1)
    least = round((10 if probability > SPARSE else 1) / (1 - probability))
    if len(found) < least:
        raise NotAvailable(f"needs {least:,} requests, the run has {len(found):,}")
    return quantile(BlockSample.prepare(found, generator(run.label, times.__name__)), probability).scaled(1e-6)


def _longest(run: Run) -> BootstrapEstimate:
    found = responses(run)
    if not len(found):
        raise NotAvailable("no request was acknowledged")
    return known(float(found.max()) * 1e-6)


def _utilisation(run: Run) -> BootstrapEstimate:
    """Return the offered rate times the mean service time, in percent, of one writer that serves serially."""
    rate = _schedule(run).requests_per_s
    if len(set(run.column("writer").tolist())) > 1:
        raise NotAvailable("the requests of many clients share a commit")
    times = services(run)
    if not len(times):
        raise NotAvailable("no request was acknowledged")
    mean = ratio_of_sums(times, np.ones(len(times)), generator(run.label, "utilisation"))
    return mean.scaled(1e-9 * 100 * rate)


def _capacity(run: Run) -> BootstrapEstimate:
    return known(_closed_loop(run).requests_per_s)


def _offered(run: Run) -> BootstrapEstimate:
    return known(_schedule(run).requests_per_s)


def _of(name: str, title: str, times: Callable[[Run], Times], probability: float) -> Metric:
    return Metric(name, "ms", title, partial(_quantile, times=times, probability=probability), LOWER)


CAPACITY = Metric("closed rate", "requests/s", "Closed loop: requests", _capacity)
OFFERED = Metric("offered rate", "requests/s", "Offered", _offered)
UTILISATION = Metric("utilisation", "%", "Offered, of what the service allows", _utilisation, LOWER)
RESPONSE_P50, RESPONSE_P90, RESPONSE_P99, RESPONSE_P999, RESPONSE_P9999 = (
    _of(f"response {name}", f"Response: {title}", responses, probability)
    for name, title, probability in (
        ("p50", "median", 0.5), ("p90", "p90", 0.9), ("p99", "p99", 0.99), ("p99.9", "p99.9", 0.999),
        ("p99.99", "p99.99", 0.9999),
    )
)  # fmt: skip
RESPONSE_MAX = Metric("response max", "ms", "Response: longest", _longest, LOWER)
SERVICE_P99 = _of("service p99", "Service: p99", services, 0.99)
WAIT_P99 = _of("wait p99", "Wait: p99", waits, 0.99)
CLOSED_P99 = _of("closed p99", "Closed loop: p99", closed, 0.99)
CORRECTED_P99 = _of("corrected p99", "Closed loop, corrected: p99", corrected, 0.99)

QUANTITIES = (
    CAPACITY, OFFERED, UTILISATION, RESPONSE_P50, RESPONSE_P90, RESPONSE_P99, RESPONSE_P999, RESPONSE_P9999,
    RESPONSE_MAX, SERVICE_P99, WAIT_P99, CLOSED_P99, CORRECTED_P99,
)  # fmt: skip
