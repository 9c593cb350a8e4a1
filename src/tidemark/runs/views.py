"""Common queries of a run set: its dataset in words, its modes and stacks in order, and corresponding series.

Also its caveats: repeats still to be measured, and runs by different code or on different machines, which are named
wherever runs of one result set, or of two, differ in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import combinations
from pathlib import Path

from tidemark.errors import AnalysisError
from tidemark.integrity import sha256_of
from tidemark.paths import REPOSITORY
from tidemark.runs.circumstances import Harness, Machine
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.runs.spec import MODES


def dataset_label(run_set: RunSet) -> str:
    if run_set.runs and not run_set.datasets:
        return "no trips: these runs take none"
    return "; ".join(dataset.label for dataset in run_set.datasets) or "no run was measured"


def modes(run_set: RunSet) -> tuple[str, ...]:
    """Return the modes of all series, in the order of results."""
    found = dict.fromkeys(series.mode for series in run_set.series)
    return tuple(sorted(found, key=lambda mode: MODES.index(mode) if mode in MODES else len(MODES)))


def in_order(run_set: RunSet) -> tuple[str, ...]:
    """Return the stacks of the plan, first the default one of results."""
    return (run_set.stack, *(stack for stack in run_set.stacks if stack != run_set.stack))


def days(started: Iterable[str]) -> tuple[str, ...]:
    """Return the days of the first and the last of these times, once if it is the same; empty without times."""
    found = sorted(moment[:10] for moment in started)
    return tuple(dict.fromkeys((*found[:1], *found[-1:])))


def measured(run_set: RunSet) -> str:
    """Return the days on which the first and the last run began, in words; empty without runs."""
    return " to ".join(days(run.manifest.started_at for run in run_set.runs))


def newest(run_set: RunSet, purpose: str) -> datetime:
    """Return the start of the last run, the date of all outputs; raise AnalysisError, with `purpose`, without runs."""
    moments = [datetime.fromisoformat(run.manifest.started_at) for run in run_set.runs]
    if not moments:
        raise AnalysisError(f"{run_set.results}: no series has a run, so there is nothing to {purpose}")
    return max(moments)


def locked_file(run_set: RunSet, name: str, sha256: str) -> Path | None:
    """Return the lock file `name` with this SHA-256, next to the results or in the repository; None if changed."""
    for root in (run_set.results.parent, REPOSITORY):
        path = root / name
        if path.is_file() and sha256_of(path) == sha256:
            return path
    return None


def one_a_system(run_set: RunSet) -> list[Series]:
    """Return the first series of each system that has runs, in the order of tables."""
    found: dict[str, Series] = {}
    for series in run_set.select():
        if series.runs:
            found.setdefault(series.system, series)
    return list(found.values())


def by_system(series: Iterable[Series], key: Callable[[Series], int] = lambda _series: 0) -> list[list[Series]]:
    """Return the series of each system, sorted by `key`; systems and what has the same key keep their order."""
    found: dict[str, list[Series]] = {}
    for each in series:
        found.setdefault(each.system, []).append(each)
    return [sorted(same, key=key) for same in found.values()]


def all_runs(series: Iterable[Series]) -> list[Run]:
    """Return the runs of all `series`."""
    return [run for each in series for run in each.runs]


def all_hot_runs(series: Iterable[Series]) -> list[Run]:
    """Return the hot runs of all `series`."""
    return [run for each in series for run in each.hot_runs]


def counterparts(run_set: RunSet, mode: str | None = None) -> Iterator[tuple[Series, Series]]:
    """Yield each series of the first stack, paired with each series of another stack that differs in nothing else."""
    for then in run_set.select(mode=mode, harness=False):
        for stack in in_order(run_set)[1:]:
            for now in run_set.select(mode=then.mode, stack=stack, harness=False):
                if (now.system, now.batch_size) == (then.system, then.batch_size):
                    yield then, now


def twins(series: Iterable[Series]) -> list[tuple[Series, Series]]:
    """Return each pair of series that measured one system with the same options under two names."""
    found: dict[str, list[Series]] = {}
    for each in series:
        if each.counted_runs:
            system = each.counted_runs[0].manifest.system
            found.setdefault(f"{system.base} {system.options}", []).append(each)
    return [(a, b) for same in found.values() for a, b in combinations(same, 2) if a.system != b.system]


def last_hot(series: Series) -> Run | None:
    """Return the run whose footprint is shown: the last hot one, else the cold one; None if there is no run."""
    return series.runs[-1] if series.runs else None


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
    by_code = Counter(harness.digest if harness else None for run in run_set.runs for harness in [run.manifest.harness])
    by_machine = Counter(run.manifest.machine for run in run_set.runs)
    found = {
        "measured by different versions of the measuring code": [
            f"{by_code[each.digest if each else None]:,} runs by {harness_words(each)}" for each in run_set.harnesses
        ],
        "measured on different machines, or on one that was changed": [
            f"{number:,} runs on {machine_words(each)}" for each, number in by_machine.items()
        ],
    }
    return tuple(f"WARNING: these runs were {how}: {'; '.join(each)}." for how, each in found.items() if len(each) > 1)
