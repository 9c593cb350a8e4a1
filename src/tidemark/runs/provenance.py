"""Caveats of a set of runs: repeats still to be measured, and runs by different code or on different machines.

Code and machine are named wherever runs of one result set, or of two, differ in them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.runs.circumstances import Harness, Machine
from tidemark.runs.runset import RunSet

UNNAMED = "one that did not name itself (run files of version 1)"


def harness_words(harness: Harness | None) -> str:
    """Describe a harness for people: the digest of its code, and its versions."""
    return UNNAMED if harness is None else harness.label


def machine_words(machine: Machine) -> str:
    """Describe a machine for people, with the identity that distinguishes it from others of the same kind."""
    named = f"identity {machine.identity}" if machine.identity else "of unknown identity"
    return f"{machine.cpu_model}, {machine.cores} cores, {machine.os} ({named})"


def unfinished(run_set: RunSet) -> tuple[str, ...]:
    """Return a sentence on the round if repeats of the series are still to be measured; else an empty tuple."""
    if run_set.round is None:
        return ()
    number, of = run_set.round.number, run_set.round.of
    times = {1: "once", 2: "twice"}.get(number, f"{number} times")
    if any(len(series.repeats) < number for series in run_set.series):
        times = f"up to {times}"
    # From round 2 on: with one repeat, intervals cover only the variance of runs, which is less than that of repeats.
    how = "shrink" if number > 1 else "still change, as how repeats differ is not in them"
    return (f"Round {number} of {of}: each system was measured {times} so far; intervals will {how}.",)


def mixture(run_set: RunSet) -> tuple[str, ...]:
    """Return a warning for each way in which the runs of a set do not belong together; empty if they do."""
    return (*_harnesses(run_set), *_machines(run_set))


def _harnesses(run_set: RunSet) -> Iterator[str]:
    if len(run_set.harnesses) > 1:
        spelt = "; ".join(
            f"{sum(_digest(run.manifest.harness) == _digest(each) for run in run_set.runs):,} runs by "
            + harness_words(each)
            for each in run_set.harnesses
        )
        yield f"WARNING: these runs were measured by different versions of the measuring code: {spelt}."


def _machines(run_set: RunSet) -> Iterator[str]:
    if len(run_set.machines) > 1:
        spelt = "; ".join(
            f"{sum(run.manifest.machine == each for run in run_set.runs):,} runs on {machine_words(each)}"
            for each in run_set.machines
        )
        yield f"WARNING: these runs were measured on different machines, or on one that was changed: {spelt}."


def _digest(harness: Harness | None) -> str | None:
    return harness.digest if harness else None
