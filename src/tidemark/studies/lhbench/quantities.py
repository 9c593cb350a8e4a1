"""The quantities of the study: what loads, queries, merges and compaction take, and what tables weigh.

A run whose tables or answers are not what they must be has no speed: it is Absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import LOWER, Absent, Quantities, Quantity
from tidemark.analysis.statistics import Replicates, known
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.lhbench.load.settings import QUERIES
from tidemark.studies.lhbench.parts import part_of, size_of
from tidemark.studies.lhbench.window.samples import NOT_TOLD
from tidemark.studies.lhbench.window.script import AFTER, BEFORE, COMPACT, COMPACTED, LOAD, MERGE, QUERY

NOT_COMPARABLE = "not comparable: a table or an answer is not what it must be"
SECONDS = 1e-9  # of nanoseconds
# Of the protocols that are shipped; others are had by `merging` and `slowdown` all the same.
SIZES = (4, 35, 350, 3_500, 35_000, 200_000, 350_000, 7_000_000)


def sound(run: Run) -> Run:
    if not run.manifest.oracle.verdict:
        raise Absent(NOT_COMPARABLE)
    return run


def found(run: Run) -> dict[str, Any]:
    return dict(run.manifest.found)


def _chosen(run: Run, kind: str, phase: str | None = None, subject: str | None = None) -> NDArray[np.bool_]:
    """Which steps are of a kind, and of a phase and a subject where they are named; Absent where none is."""
    mask = sound(run).words("kind") == kind
    if phase is not None:
        mask &= run.words("phase") == phase
    if subject is not None:
        mask &= run.words("subject") == subject
    if not mask.any():
        raise Absent(f"its windows have no {kind}" + (f" in the phase '{phase}'" if phase else ""))
    result: NDArray[np.bool_] = mask
    return result


def subjects(run: Run, phase: str) -> list[str]:
    """What the queries of a phase are called, in the order in which they were asked."""
    return list(dict.fromkeys(run.words("subject")[_chosen(run, QUERY, phase)].tolist()))


def query_s(run: Run, phase: str, subject: str, column: str = "elapsed_ns", first: int = 1) -> float:
    """The median over the iterations, from `first` on, of one query; Absent where it failed."""
    mask = _chosen(run, QUERY, phase, subject)
    failed = [str(each) for each in run.words("error")[mask] if each]
    if failed:
        raise Absent(f"{subject} failed: {failed[0]}")
    mask &= run.column("iteration") >= first
    values = run.column(column)[mask]
    if not len(values) or (values == NOT_TOLD).any():
        raise Absent(f"{subject} was asked once" if first > 1 else "the engine does not tell")
    return float(np.median(values)) * SECONDS


def _load(run: Run, column: str = "elapsed_ns") -> Replicates:
    return known(float(run.column(column)[_chosen(run, LOAD, LOAD)].sum()) * SECONDS)


def _query(run: Run, subject: str) -> Replicates:
    return known(query_s(run, BEFORE, subject))


def _total(run: Run, phase: str = BEFORE, column: str = "elapsed_ns", first: int = 1) -> Replicates:
    """The sum over queries of their medians; Absent where one of them failed."""
    return known(sum(query_s(run, phase, each, column, first) for each in subjects(run, phase)))


def merges_s(run: Run) -> list[float]:
    """What each refresh took, all of its tables together, in the order of refreshes."""
    mask = _chosen(run, MERGE)
    numbers, times = run.column("iteration")[mask], run.column("elapsed_ns")[mask]
    return [float(times[numbers == number].sum()) * SECONDS for number in np.unique(numbers)]


def _merge(run: Run) -> Replicates:
    return known(float(np.median(merges_s(run))))


def _compact(run: Run) -> Replicates:
    return known(float(run.column("elapsed_ns")[_chosen(run, COMPACT)].sum()) * SECONDS)


def merge_s(run: Run, size: int) -> Replicates:
    """The merge of so many updates and as many new rows into the synthetic table."""
    return known(float(run.column("elapsed_ns")[_chosen(run, MERGE, f"{MERGE} {size}")].sum()) * SECONDS)


def slowdown_of(run: Run, size: int) -> Replicates:
    """What the three queries take after that merge, over what they took before it."""
    return _total(run, f"{AFTER} {size}").ratio(_total(run, f"{BEFORE} {size}"))


def _weight(run: Run, what: str, phase: str) -> Replicates:
    """Of all tables that were judged after a phase, data and metadata."""
    tables = found(sound(run))["footprints"].get(phase)
    if not tables:
        raise Absent(f"no table was weighed after the phase '{phase}'")
    return known(float(sum(each[f"data_{what}"] + each[f"metadata_{what}"] for each in tables.values())))


def _last_merge(run: Run) -> str:
    return f"{MERGE} {len(merges_s(run))}"


def _growth(run: Run) -> Replicates:
    """Bytes of the merged tables after all refreshes, over those of the same tables when they were loaded."""
    stages = found(sound(run))["footprints"]
    after = stages[_last_merge(run)]
    sums = [
        sum(tables[name]["data_bytes"] + tables[name]["metadata_bytes"] for name in after)
        for tables in (after, stages[LOAD])
    ]
    return known(sums[0] / sums[1])


def _seconds(name: str, title: str, how: Callable[[Run], Replicates], subject: str) -> Quantity:
    return Quantity(name, "s", title, how, LOWER, name.replace(" ", "_"), subject, ("slower", "faster"))


def merging(size: int) -> Quantity:
    return _seconds(f"merge of {size}", f"Merge of {size:,} updates", partial(merge_s, size=size), "Merges")


def slowdown(size: int) -> Quantity:
    title = f"Queries after over before {size:,} updates"
    return Quantity(f"slowdown of {size}", "x", title, partial(slowdown_of, size=size), LOWER)


LOADING = _seconds("load", "Load", _load, "Loads")
LOADING_CPU = _seconds("load CPU", "Processor time of the load", partial(_load, column="cpu_ns"), "Loads")
QUERYING = {
    f"q{number}": _seconds(f"q{number}", f"Query {number}", partial(_query, subject=f"q{number}"), "Queries")
    for number in range(1, QUERIES + 1)
}
TOTAL = _seconds("queries", "Queries, sum of medians", _total, "Queries")
LATER = _seconds("queries later", "Queries, from the second time on", partial(_total, first=2), "Queries")
PLANNING = _seconds("planning", "Planning of queries", partial(_total, column="planned_ns"), "Plans")
QUERIES_AFTER = _seconds("queries after", "Queries after the merges", partial(_total, phase=AFTER), "Queries")
QUERIES_COMPACTED = _seconds(
    "queries compacted", "Queries after compaction", partial(_total, phase=COMPACTED), "Queries"
)
MERGING = _seconds("merge", "A refresh, median", _merge, "Merges")
COMPACTING = _seconds("compaction", "Compaction", _compact, "Compactions")
BYTES = Quantity("bytes", "B", "Bytes loaded", partial(_weight, what="bytes", phase=LOAD), LOWER)
FILES = Quantity("files", "files", "Files loaded", partial(_weight, what="files", phase=LOAD), LOWER)
GROWTH = Quantity("growth", "x", "Bytes after merges over before", _growth, LOWER)


def _all() -> Iterator[Quantity]:
    yield from (LOADING, LOADING_CPU, TOTAL, LATER, PLANNING, QUERIES_AFTER, QUERIES_COMPACTED, MERGING, COMPACTING)
    yield from (BYTES, FILES, GROWTH, *QUERYING.values())
    for size in SIZES:
        yield merging(size)
        yield slowdown(size)


QUANTITIES = Quantities(
    all=tuple(_all()),
    headline=(LOADING, TOTAL, MERGING),
    code=("studies/lhbench/quantities.py", "studies/lhbench/window/samples.py"),
)


def of(measures: Measures, quantity: Quantity, series: Series) -> Replicates:
    """`quantity` of `series`: its hot runs, or run 0 where a session has one window."""
    return measures.hot(quantity, series) if series.hot_runs else measures.cold(quantity, series)


def in_part(run_set: RunSet, part: str, stack: str | None = None) -> list[Series]:
    """The series of a part, by their sizes, and in the order of tables."""
    chosen = [each for each in run_set.select(stack=stack) if part_of(each.mode) == part]
    return sorted(chosen, key=lambda each: size_of(each.mode))
