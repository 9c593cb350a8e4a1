"""What a series says whose rate was doubled step by step: the highest rate at which the table does not fall behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.quantities import HIGHER, LOWER, Absent, Quantity
from tidemark.analysis.statistics import Estimate, Replicates, generator, known, quantile, theil_sen
from tidemark.analysis.words import listed
from tidemark.runs.run import Run
from tidemark.studies.freshness.window.samples import End, is_unfinished

NOT_ONCE = "the table does not hold each event once"
ONE_RATE = "its rate was not raised"
FEWEST_COMMITS = 4  # within a step, by which a slope is judged
MILLION = 1e6
SECONDS = 1e-9  # of nanoseconds
HOLDS, GROWS, LATE, UNKNOWN = "does not grow", "grows", "the producer was late", "too few commits to tell"


@dataclass(frozen=True, slots=True)
class Step:
    """One rate of a climb. `slope` is None where it has too few commits for one."""

    rate: int
    begin_s: float
    seconds: float
    events: int
    latest_s: float
    lag_s: float
    cpu_s: float
    files: int
    slope: Replicates | None
    end: str | None  # why it was the last one

    @property
    def growth(self) -> Estimate | None:
        return None if self.slope is None else self.slope.estimate("s/s")

    @property
    def verdict(self) -> str:
        """Whether the lag grows in it: by how far behind it is at its end, else by the interval of its slope."""
        if self.end == End.LAG:
            return GROWS
        if self.end == End.PRODUCER:
            return LATE
        growth = self.growth
        if growth is None or growth.low is None:
            return UNKNOWN
        return GROWS if growth.is_above(0) else HOLDS


def slope(run: Run, begin_s: float, seconds: float) -> Replicates | None:
    """Seconds by which the youngest event of a commit gets older with each second, of commits that lie in a step.

    Of those whose first event is due in it, and that were made before its end. None where they are too few.
    """
    begin_ns, end_ns = begin_s / SECONDS, (begin_s + seconds) / SECONDS
    commit, start, age = run.column("commit"), run.column("start_ns"), run.column("elapsed_ns")
    last = np.flatnonzero(np.diff(commit, append=commit[-1] + 1))
    first = np.concatenate([[0], last[:-1] + 1])
    at = start[last] + age[last]
    inside = (start[first] >= begin_ns) & (at <= end_ns)
    if inside.sum() < FEWEST_COMMITS:
        return None
    at, youngest = at[inside], age[last][inside]
    apart = float(at[-1] - at[0]) / (len(at) - 1)
    return theil_sen(youngest, generator(run.label, "climb", begin_s)).scaled(1 / (1000 * apart))


def steps(run: Run) -> Iterator[Step]:
    """The steps of `run`, from the lowest rate on; Absent where it had one rate, or lost events."""
    told: dict[str, Any] = dict(run.manifest.found)
    ramp = told.get("ramp")
    if ramp is None:
        raise Absent(ONE_RATE)
    oracle = run.manifest.oracle
    if not oracle.verdict and not is_unfinished(oracle, told["gave_up"]):
        raise Absent(NOT_ONCE)
    for number, step in enumerate(ramp["steps"], 1):
        end = ramp["end"] if number == len(ramp["steps"]) and ramp["end"] != End.STEPS else None
        yield Step(**step, slope=slope(run, step["begin_s"], step["seconds"]), end=end)


def held(run: Run) -> tuple[Step, Step | None]:
    """The highest step whose lag does not grow, before the first in which it does; and the next one, if any.

    A step of which nobody can tell ends nothing where the table keeps up with a higher rate. Absent where none holds.
    """
    climbed = list(steps(run))
    ended = next((place for place, step in enumerate(climbed) if step.verdict in (GROWS, LATE)), len(climbed))
    highest = max((place for place, step in enumerate(climbed[:ended]) if step.verdict == HOLDS), default=None)
    if highest is None:
        if not climbed:
            raise Absent("the climb has no step")
        raise Absent(f"at {climbed[0].rate:,} events/s, the lowest rate of the climb: the lag {said(climbed[0])}")
    return climbed[highest], next(iter(climbed[highest + 1 :]), None)


def said(step: Step) -> str:
    """Its verdict behind `the lag`."""
    return step.verdict if step.verdict in (HOLDS, GROWS) else f"was not judged: {step.verdict}"


def is_least(next_step: Step | None) -> bool:
    """Whether the system may well do more: nothing of its own ended the climb."""
    return next_step is None or next_step.verdict != GROWS


def _of(run: Run, compute: Callable[[Step], float], why_not: str) -> Replicates:
    found = compute(held(run)[0])
    if found <= 0:
        raise Absent(why_not)
    return known(found)


def _capacity(run: Run) -> Replicates:
    return known(float(held(run)[0].rate))


def _age(run: Run, probability: float) -> Replicates:
    """Of the events that were due in that step, in seconds."""
    step, start = held(run)[0], run.column("start_ns")
    due = (start >= step.begin_s / SECONDS) & (start < (step.begin_s + step.seconds) / SECONDS)
    ages: NDArray[np.int64] = run.column("seen_ns")[due]
    return quantile(BlockSample.prepare(ages, generator(run.label, "climb")), probability).scaled(SECONDS)


def why_no_cpu(run: Run) -> str | None:
    """Why nobody here saw what the table cost: somebody else runs a part of it. None where all of it was seen."""
    unseen = dict(run.manifest.found).get("unseen")
    return f"{listed(unseen)} of the user's own: nobody here sees its processor time" if unseen else None


def _cpu(run: Run) -> Replicates:
    why_not = why_no_cpu(run)
    if why_not:
        raise Absent(why_not)
    return _of(run, lambda step: step.cpu_s * MILLION / step.events, "none was seen")


def _files(run: Run) -> Replicates:
    return _of(run, lambda step: step.files * MILLION / step.events, "no file was counted")


CAPACITY = Quantity(
    "capacity", "events/s", "Capacity", _capacity, HIGHER, "capacity", "Events", ("more", "fewer")
)  # fmt: skip
AT_CAPACITY_P50 = Quantity("p50 at capacity", "s", "Age when seen: median", partial(_age, probability=0.5), LOWER)
AT_CAPACITY_P95 = Quantity("p95 at capacity", "s", "Age when seen: p95", partial(_age, probability=0.95), LOWER)
CPU_AT_CAPACITY = Quantity("CPU at capacity", "CPU-s", "CPU-seconds, a million events", _cpu, LOWER)
FILES_AT_CAPACITY = Quantity("files at capacity", "files", "Files, a million events", _files, LOWER)
ALL = (CAPACITY, AT_CAPACITY_P50, AT_CAPACITY_P95, CPU_AT_CAPACITY, FILES_AT_CAPACITY)
