"""MetricSet of the study: response times by kind of request, rates, shares that succeeded, and losses after kills."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, MetricSet, NotAvailable, require, sum_of_groups
from tidemark.analysis.statistics import (
    BootstrapEstimate,
    at_most,
    counted,
    generator,
    known,
    quantile,
    ratio_of_sums,
    share,
)
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.services.proxies import DelayProxy
from tidemark.studies.catalogs.record import ACKED, CASCADED, CatalogRecord, Differences, Kill
from tidemark.studies.catalogs.requests import CREATIONS, READS, UPDATES

NOT_SERVERS = ("harness", "load generator", DelayProxy.name)  # prefixes of process groups that are not servers
READING, WRITING = tuple(kind.name for kind in READS), tuple(kind.name for kind in UPDATES)


@dataclass(frozen=True, slots=True)
class Sort:
    """Group of requests, with its quantities: of some parts of a window, and of some kinds; `title` begins a heading.

    Times are from when a request was due, of those that succeeded.
    """

    name: str
    title: str
    parts: tuple[str, ...]
    kinds: tuple[str, ...] = ()  # empty: all kinds

    def of(self, run: Run) -> NDArray[np.bool_]:
        """Return a mask of the run's requests that belong to it. Raises NotAvailable if there is none."""
        found: NDArray[np.bool_] = np.isin(run.words("part"), self.parts)
        if self.kinds:
            found &= np.isin(run.words("kind"), self.kinds)
        require(found.any(), f"the window had no such part: {', '.join(self.parts)}")
        return found

    def succeeded(self, run: Run) -> NDArray[np.bool_]:
        """Return a mask of its requests that succeeded. Raises NotAvailable if there is none."""
        found: NDArray[np.bool_] = self.of(run) & (run.words("outcome") == ACKED)
        require(found.any(), "no such request succeeded")
        return found

    @property
    def median(self) -> Metric:
        plain = self._quantity("median", "ms", "median", partial(_quantile, probability=0.5), LOWER)
        key = self.name.replace(" ", "_").replace("-", "_")
        return replace(plain, key=key, subjects="Requests", words=("slower", "faster"))

    @property
    def mean(self) -> Metric:
        return self._quantity("mean", "ms", "mean", _mean, LOWER)

    @property
    def p99(self) -> Metric:
        return self._quantity("p99", "ms", "p99", partial(_quantile, probability=0.99), LOWER)

    @property
    def minimum(self) -> Metric:
        return self._quantity("minimum", "ms", "minimum", partial(_end, end=np.min), LOWER)

    @property
    def maximum(self) -> Metric:
        return self._quantity("maximum", "ms", "maximum", partial(_end, end=np.max), LOWER)

    @property
    def rate(self) -> Metric:
        return self._quantity("rate", "requests/s", "rate", _rate, HIGHER)

    @property
    def tail(self) -> Metric:
        return self._quantity("tail", "", "p99 / median", _tail)

    @property
    def success(self) -> Metric:
        return replace(self._quantity("success", "", "share that succeeded", _success, HIGHER), signed=True)

    def _quantity(
        self, word: str, unit: str, title: str, how: Callable[..., BootstrapEstimate], better: str | None = None
    ) -> Metric:
        """Return the quantity that `how` computes from a run and a sort of requests."""
        return Metric(f"{self.name} {word}", unit, f"{self.title}: {title}", partial(how, sort=self), better)


CREATING = tuple(Sort(kind.name, f"{kind.name.capitalize()}", ("create",), (kind.name,)) for kind in CREATIONS)
CREATE_NAMESPACE, CREATE_TABLE, CREATE_VIEW = CREATING
READ = Sort("read", "Read", ("read",))
UPDATE = Sort("update", "Update", ("update",))
MIXES = tuple(
    Sort(f"{part} {act}", f"{words}, {act}s", (part,), kinds)
    for part, words in (
        ("open-50", "50/50 open loop"),
        ("open-99", "99/1 open loop"),
        ("mixed-50", "50/50 closed loop"),
        ("mixed-99", "99/1 closed loop"),
    )
    for act, kinds in (("read", READING), ("write", WRITING))
)
HOT = Sort("hot update", "Update of one table by all", ("hot",))
APPENDED = Sort("append", "Snapshot appended to one table by all", ("append",))
TRANSACTED = Sort("append by transaction", "Snapshot appended by a transaction", ("append-transaction",))
RACE = Sort("race", "Creation of one name by all", ("race",))
RAMPED = Sort("ramp", "Create namespace, a user more each second", ("create-ramp",))
CHURNING = tuple(
    Sort(f"churn {act}", f"{act.capitalize()} tables that come and go", ("churn",), (f"{act} {what}",))
    for act, what in (("rename", "table"), ("drop", "table"), ("list", "tables"))
)
CHURN = Sort("churn", "Requests about tables that come and go", ("churn",))
SORTS = (*CREATING, READ, UPDATE, *MIXES, HOT, APPENDED, TRANSACTED, RAMPED, *CHURNING, CHURN)
CREATION = Sort("creation", "Creation", ("create",))


def _times(run: Run, sort: Sort) -> NDArray[Any]:
    """Return nanoseconds of the requests that succeeded, from their due times, in the order of time."""
    times: NDArray[Any] = np.maximum(run.column("response_ns")[sort.succeeded(run)], 1)
    return times


def response_ms(run: Run, sort: Sort) -> NDArray[np.float64]:
    """Return milliseconds of the requests that succeeded, from their due times. Raises NotAvailable if none did."""
    times: NDArray[np.float64] = _times(run, sort) * 1e-6
    return times


def _sample(run: Run, sort: Sort) -> BlockSample:
    return BlockSample.prepare(_times(run, sort), generator(run.label, sort.name))


def _quantile(run: Run, sort: Sort, probability: float) -> BootstrapEstimate:
    sample = _sample(run, sort)
    least = round(1 / (1 - probability))
    require(sample.n >= least, f"needs {least:,} requests, the run has {sample.n:,}")
    return quantile(sample, probability).scaled(1e-6)


def _mean(run: Run, sort: Sort) -> BootstrapEstimate:
    times = _times(run, sort)
    return ratio_of_sums(times, np.ones(len(times)), generator(run.label, f"{sort.name} mean")).scaled(1e-6)


def _end(run: Run, sort: Sort, end: Callable[[NDArray[Any]], Any]) -> BootstrapEstimate:
    """Return one end of the times: their minimum or maximum."""
    return known(float(end(_times(run, sort))) * 1e-6)


def _rate(run: Run, sort: Sort) -> BootstrapEstimate:
    """Return requests that succeeded per second, from the first one's start to the end of the last that did."""
    starts, acked = run.column("start_ns"), sort.succeeded(run)
    done = np.sort((starts + run.column("elapsed_ns"))[acked])
    between = np.maximum(np.diff(done, prepend=int(starts[sort.of(run)].min())), 1)
    return ratio_of_sums(np.ones(len(done)), between, generator(run.label, f"{sort.name} rate")).scaled(1e9)


def _success(run: Run, sort: Sort) -> BootstrapEstimate:
    """Return the share of requests that succeeded, without cascaded ones, with a Jeffreys interval."""
    outcome = run.words("outcome")[sort.of(run)]
    done, whole = int((outcome == ACKED).sum()), int((outcome != CASCADED).sum())
    require(whole != 0, "all of them were consequences of other failures")
    return share(done, whole, generator(run.label, f"{sort.name} success"))


def _tail(run: Run, sort: Sort) -> BootstrapEstimate:
    """Return the 99th percentile divided by the median."""
    sample = _sample(run, sort)
    require(sample.n >= 100, f"needs 100 requests, the run has {sample.n:,}")
    return quantile(sample, 0.99).ratio(quantile(sample, 0.5))


def _attempts(run: Run, sort: Sort) -> BootstrapEstimate:
    """Return requests per success: those since the previous success, and itself."""
    places = np.flatnonzero(sort.succeeded(run)[sort.of(run)])
    return ratio_of_sums(np.diff(places, prepend=-1), np.ones(len(places)), generator(run.label, f"{sort.name} tries"))


def _tries(run: Run, sort: Sort) -> BootstrapEstimate:
    """Return attempts per success, as the client counts them."""
    tries = run.column("attempts")[sort.succeeded(run)]
    return ratio_of_sums(tries, np.ones(len(tries)), generator(run.label, f"{sort.name} tries"))


def _in_flight(run: Run) -> BootstrapEstimate:
    return counted(float(run.record(CatalogRecord).in_flight))


def _statements(run: Run, step: str) -> BootstrapEstimate:
    """Return SQL statements per request of a step, counted in this run or after it."""
    record = run.record(CatalogRecord)
    counts = record.statements
    found = [(each.name, each.statements, each.requests) for each in counts.steps]
    if counts.excused is not None:
        steps = [(each.name, dict(each.counted), each.requests) for each in record.steps]
        found = [(name, values["statements"], asked) for name, values, asked in steps if "statements" in values]
    for name, statements, asked in found:
        if name == step:
            return counted(statements / asked)
    raise NotAvailable(counts.excused or "counted after the last run of a series")


def is_asked(group: str) -> bool:
    """Return True if a process group, by its name, is a server or its database."""
    return not group.startswith(NOT_SERVERS)


def _server_cpu(run: Run) -> BootstrapEstimate:
    """Return CPU milliseconds per request, of the server and its database, over all parts of the window."""
    spent = [value for step in run.record(CatalogRecord).steps for name, value in step.cpu_s if is_asked(name)]
    if sum(spent) <= 0:
        raise NotAvailable("less than the processor's clock can tell")
    return known(1000 * sum(spent) / run.manifest.operations)


def _server_memory(run: Run) -> BootstrapEstimate:
    """Return the peak memory in MB of the server and its database together, over the window's seconds."""
    memory = run.seconds().memory
    most = float(sum_of_groups(memory, {name for name, _ in memory if is_asked(name)}).max())
    if most <= 0:
        raise NotAvailable("a server that was not started here is not watched")
    return known(most / 1e6)


ATTEMPTS = Metric("hot update attempts", "", "Requests an update of one table", partial(_attempts, sort=HOT), LOWER)
TRIES = Metric("append attempts", "", "Attempts at an append that succeeded", partial(_tries, sort=APPENDED), LOWER)
SERVER_CPU = Metric("server CPU", "ms", "CPU a request, server and database", _server_cpu, LOWER)
SERVER_MEMORY = Metric("server memory", "MB", "Peak memory, server and database", _server_memory, LOWER)
IN_FLIGHT = Metric("requests in flight", "requests", "Requests under way at once, at most", _in_flight)
STATEMENTS = {
    step: Metric(f"{step} statements", "statements", f"{step.capitalize()}: SQL statements", how, LOWER)
    for step in (*(sort.name for sort in CREATING), "read", *WRITING, "hot", "append")
    for how in (partial(_statements, step=step),)
}

QUANTITIES = MetricSet(
    all=(
        *(sort.median for sort in SORTS), *(sort.mean for sort in SORTS), *(sort.p99 for sort in SORTS),
        *(sort.minimum for sort in SORTS), *(sort.maximum for sort in SORTS), *(sort.rate for sort in SORTS),
        *(sort.tail for sort in SORTS), *(sort.success for sort in (*SORTS, CREATION)), ATTEMPTS, TRIES, SERVER_CPU,
        SERVER_MEMORY, IN_FLIGHT,
        *STATEMENTS.values(),
    ),
    headline=tuple(sort.median for sort in (CREATE_TABLE, CREATE_NAMESPACE, CREATE_VIEW, READ, UPDATE)),
    code=("studies/catalogs/metrics.py", "studies/catalogs/record.py", "studies/catalogs/requests.py"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kills:
    """All kills of one server or database in one series. Counts are of requests; `lost` is of entities and updates."""

    series: Series
    run: Run  # the one that the kills followed
    title: str  # of the killed server
    each: tuple[Kill, ...]
    window: Differences | None  # finding on the run's own entities after all kills; None if they could not be read

    @property
    def lost_of_window(self) -> int | None:
        """Lost entities and updates of the run itself; None if they could not be read."""
        return None if self.window is None else self.window.losses

    def total(self, name: str) -> int:
        return sum(int(getattr(kill, name)) for kill in self.each)

    @property
    def answered_s(self) -> list[float]:
        """Seconds from each restart until a table was read, without restarts after which none was."""
        return [kill.answered_s for kill in self.each if kill.answered_s is not None]

    @property
    def with_loss(self) -> int:
        """Number of kills after which something was lost or wrong, or nothing could be read any more."""
        return sum(not kill.holds for kill in self.each)

    @property
    def holds(self) -> bool:
        return not self.with_loss and self.window is not None and self.window.holds

    @property
    def telling(self) -> int:
        """Number of kills of a server that took writes: one that answers most with errors has little to lose."""
        return sum(kill.acknowledged > kill.errors for kill in self.each)

    @property
    def at_most(self) -> float:
        """Upper end of a one-sided 95 % interval for the probability that a kill loses something.

        From the kills that could show a loss, and those with a loss.
        """
        return at_most(self.with_loss, max(self.telling, self.with_loss))

    @property
    def is_stuck(self) -> bool:
        """True if it answered again, but refused most of the concurrent writes that followed."""
        return 2 * self.total("again_acked") < self.total("again")

    @property
    def command(self) -> str:
        """Command that repeats the kills."""
        system, series = self.run.manifest.system, self.run.manifest.series
        entry = {} if system.name == system.base else {"like": system.base, **dict(system.options)}
        words = ["studies=[catalogs]", f"protocol={series.protocol}"]
        words.append(f"catalogs.systems={json.dumps({system.name: entry})}")
        return f"./tidemark all --config {' '.join(shlex.quote(word) for word in words)}"


def crashes(run_set: RunSet) -> Iterator[Kills | tuple[Series, str]]:
    """Yield the kills of each series by killed server; for a series without a possible kill, yield the reason."""
    for series in run_set.select(harness=False):
        for run in series.runs:
            crash = run.record(CatalogRecord).crash
            if crash.excused is not None:
                yield series, crash.excused
            for title in dict.fromkeys(kill.title for kill in crash.kills):
                each = tuple(kill for kill in crash.kills if kill.title == title)
                yield Kills(series, run, title, each, crash.window)
