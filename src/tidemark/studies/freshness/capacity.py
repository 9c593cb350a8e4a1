"""Results of a climb, a series whose rate doubles step by step: the highest rate at which the lag does not grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.formatting import listed
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, Estimate, generator, known, quantile, theil_sen
from tidemark.runs.run import Run
from tidemark.studies.freshness.record import End, FreshnessRecord, RampStep, is_unfinished

NOT_ONCE = "the table does not hold each event once"
ONE_RATE = "its rate was not raised"
FEWEST_COMMITS = 4  # within a step, required to judge a slope
TOLERATED = 0.05  # growth of the lag in seconds per second: the table takes 95 % of the events that are due
MILLION = 1e6
SECONDS = 1e-9  # per nanosecond
HOLDS, GROWS, LATE, UNKNOWN = "does not grow", "grows", "the producer was late", "too few commits to tell"


@dataclass(frozen=True, slots=True)
class Step(RampStep):
    """Recorded step with the growth of its lag. `slope` is None if the step has too few commits."""

    slope: BootstrapEstimate | None
    end: str | None  # why it was the last step

    @property
    def growth(self) -> Estimate | None:
        return None if self.slope is None else self.slope.estimate("s/s")

    @property
    def verdict(self) -> str:
        """Growth of the lag: by the lag at the end of the step, otherwise by the interval of its slope."""
        if self.end == End.LAG:
            return GROWS
        if self.end == End.PRODUCER:
            return LATE
        growth = self.growth
        if growth is None or growth.low is None:
            return UNKNOWN
        return GROWS if growth.is_above(TOLERATED) else HOLDS


def slope(run: Run, begin_s: float, seconds: float) -> BootstrapEstimate | None:
    """Return the seconds per second by which a commit's youngest event gets older, from the commits of a step.

    These commits have their first event due in the step and were made before its end. None if there are too few.
    """
    begin_ns, end_ns = begin_s / SECONDS, (begin_s + seconds) / SECONDS
    commit, start, age = run.column("commit"), run.column("start_ns"), run.column("elapsed_ns")
    last = np.flatnonzero(np.diff(commit, append=commit[-1] + 1))
    first = np.concatenate([[0], last[:-1] + 1])
    at = start[last] + age[last]
    inside = (start[first] >= begin_ns) & (at <= end_ns)
    if inside.sum() < FEWEST_COMMITS:
        return None
    return growth_of_age(at[inside], age[last][inside], run.label, "climb", begin_s)


def growth_of_age(at: NDArray[np.int64], ages: NDArray[np.int64], *names: object) -> BootstrapEstimate:
    """Return the seconds per second by which `ages` of commits made `at` grow; `names` seed the resampling."""
    apart = float(at[-1] - at[0]) / (len(at) - 1)
    return theil_sen(ages, generator(*names)).scaled(1 / (1000 * apart))


def steps(run: Run) -> Iterator[Step]:
    """Yield the steps of `run`, from the lowest rate on. Raises NotAvailable if it had one rate or lost events."""
    return (replace(each, slope=slope(run, each.begin_s, each.seconds)) for each in _unjudged(run))


def _unjudged(run: Run) -> Iterator[Step]:
    """Yield the same steps without slopes, which require reading and resampling the commits."""
    record, oracle = run.record(FreshnessRecord), run.manifest.oracle
    ramp = require(record.ramp, ONE_RATE)
    require(oracle.verdict or is_unfinished(oracle, record.gave_up), NOT_ONCE)
    for number, step in enumerate(ramp.steps, 1):
        end = ramp.end if number == len(ramp.steps) and ramp.end != End.STEPS else None
        yield Step(**asdict(step), slope=None, end=end)


def held(run: Run) -> tuple[Step, Step | None]:
    """Return the highest step whose lag does not grow, and the next step, if any.

    A table that keeps up with a rate keeps up with those below it, whatever the slopes of these. Raises NotAvailable if
    no step holds.
    """
    climbed = list(steps(run))
    highest = max((place for place, step in enumerate(climbed) if step.verdict == HOLDS), default=None)
    if highest is None:
        require(climbed, "the climb has no step")
        raise NotAvailable(f"at {climbed[0].rate:,} events/s, the lowest rate of the climb: the lag {said(climbed[0])}")
    return climbed[highest], next(iter(climbed[highest + 1 :]), None)


def said(step: Step) -> str:
    """Return the step's verdict, worded to follow `the lag`."""
    return step.verdict if step.verdict in (HOLDS, GROWS) else f"was not judged: {step.verdict}"


@dataclass(frozen=True, slots=True)
class Capacity:
    """Rate that a table keeps up with in every measurement: the lowest of its repeats, in events/s.

    `following` is the next step of that repeat, if any.
    """

    rate: int
    repeats: int
    following: Step | None

    @property
    def is_least(self) -> bool:
        """True if the system may sustain more: it did not itself end the climb."""
        return self.following is None or self.following.verdict != GROWS

    @property
    def replicates(self) -> BootstrapEstimate:
        """Rate without an interval: the next rate is twice as high, and the lowest of a few is not their mean."""
        return replace(known(float(self.rate)), runs=self.repeats)


def capacity(runs: Sequence[Run]) -> Capacity:
    """Return the capacity of a climbing series from its `runs`.

    Raises NotAvailable if one of them has no step that holds.
    """
    require(runs, "not measured")
    found = (Capacity(step.rate, len(runs), following) for step, following in map(held, runs))
    return min(found, key=lambda each: (each.rate, each.is_least))


@dataclass(frozen=True, slots=True)
class OfStep:
    """Metric of one step's own events: `how` computes it from a run and its step, which has no slope here."""

    name: str
    unit: str
    title: str
    how: Callable[[Run, Step], BootstrapEstimate]

    def at(self, rate: int) -> Metric:
        """Return the metric as a quantity of runs with a step of `rate` events/s; it is NotAvailable for other runs."""
        return Metric(f"{self.name} at {rate:,} events/s", self.unit, self.title, partial(self._of, rate), LOWER)

    def _of(self, rate: int, run: Run) -> BootstrapEstimate:
        found = next((step for step in _unjudged(run) if step.rate == rate), None)
        return self.how(run, require(found, f"its climb has no step of {rate:,} events/s"))


def _age(run: Run, step: Step, probability: float) -> BootstrapEstimate:
    """Return a quantile of the ages of the events due in the step, in seconds."""
    start = run.column("start_ns")
    due = (start >= step.begin_s / SECONDS) & (start < (step.begin_s + step.seconds) / SECONDS)
    ages: NDArray[np.int64] = run.column("seen_ns")[due]
    return quantile(BlockSample.prepare(ages, generator(run.label, "climb")), probability).scaled(SECONDS)


def why_no_cpu(run: Run) -> str | None:
    """Return why the table's CPU time is incomplete: a part of it runs elsewhere. None if all of it was observed."""
    unseen = run.record(FreshnessRecord).unseen
    return f"the user's own {listed(unseen)}: its processor time is not visible here" if unseen else None


def _cpu(run: Run, step: Step) -> BootstrapEstimate:
    why_not = why_no_cpu(run)
    if why_not or step.cpu_s <= 0:
        raise NotAvailable(why_not or "none was seen")
    return known(step.cpu_s * MILLION / step.events)


def _files(_run: Run, step: Step) -> BootstrapEstimate:
    if step.files <= 0:
        raise NotAvailable("no file was counted")
    return known(step.files * MILLION / step.events)


def _capacity(run: Run) -> BootstrapEstimate:
    return capacity([run]).replicates


AGE_P50 = OfStep("p50", "s", "Age when seen: median", partial(_age, probability=0.5))
AGE_P95 = OfStep("p95", "s", "Age when seen: p95", partial(_age, probability=0.95))
STEP_CPU = OfStep("CPU", "CPU-s", "CPU-seconds, a million events", _cpu)
STEP_FILES = OfStep("files", "files", "Files, a million events", _files)
CAPACITY = Metric("capacity", "events/s", "Capacity", _capacity, HIGHER, "capacity", "Events", ("more", "fewer"))
