"""The quantities of the study: what loads, queries, merges and compaction take, and what tables weigh.

A run whose tables or answers are not what they must be has no speed: it is Absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import LOWER, Absent, Quantities, Quantity
from tidemark.analysis.statistics import Replicates, known
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.lhbench.files.answers import QUERIES as ASKED_OF_FILES
from tidemark.studies.lhbench.files.answers import SELECTIVE
from tidemark.studies.lhbench.load.settings import QUERIES
from tidemark.studies.lhbench.parts import part_of, size_of
from tidemark.studies.lhbench.window.samples import NOT_TOLD
from tidemark.studies.lhbench.window.script import AFTER, BEFORE, COMPACT, COMPACTED, LOAD, MERGE, QUERIED, QUERY

NO_JOB = "answered without a job of its own"
NOT_COMPARABLE = "not comparable: a table or an answer is not what it must be"
SECONDS = 1e-9  # of nanoseconds
CLOCK_S = 1e-3  # the least that the clock of an engine's log tells
AGAIN = 2  # the iteration from which on a query of the part `files` counts, as in the paper: the first is left out
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
    if not len(values):
        raise Absent(f"{subject} was asked once")
    if (values == NOT_TOLD).any():
        raise Absent(NO_JOB if column == "startup_ns" else "the engine does not tell")
    return float(np.median(values)) * SECONDS


def _load(run: Run, column: str = "elapsed_ns") -> Replicates:
    values = run.column(column)[_chosen(run, LOAD, LOAD)]
    if (values == NOT_TOLD).any():
        raise Absent("a cluster of the user's own: nobody here sees its processor time")
    return known(float(values.sum()) * SECONDS)


def _query(run: Run, subject: str, phase: str = BEFORE) -> Replicates:
    return known(query_s(run, phase, subject))


def _total(run: Run, phase: str = BEFORE, column: str = "elapsed_ns", first: int = 1) -> Replicates:
    """The sum over queries of their medians; Absent where one of them failed."""
    return known(sum(query_s(run, phase, each, column, first) for each in subjects(run, phase)))


def startup_s(run: Run, phase: str, subject: str, first: int = 1) -> float:
    """From submitting a query to the start of its first job, as the paper has it, to a millisecond."""
    return max(query_s(run, phase, subject, "startup_ns", first), CLOCK_S / 2)


def _startup(run: Run, phase: str, asked: Sequence[str] | None = None, first: int = 1) -> Replicates:
    return known(sum(startup_s(run, phase, each, first) for each in asked or subjects(run, phase)))


def _execution(run: Run, phase: str, asked: Sequence[str] | None = None, first: int = 1) -> Replicates:
    """What is left of the whole when startup is taken off."""
    names = asked or subjects(run, phase)
    left = [query_s(run, phase, each, first=first) - startup_s(run, phase, each, first) for each in names]
    return known(max(sum(left), CLOCK_S / 2))


def _answer(run: Run, asked: Sequence[str]) -> Replicates:
    return known(sum(query_s(run, QUERIED, each, first=AGAIN) for each in asked))


def _first(run: Run, asked: Sequence[str]) -> Replicates:
    """What the first time took that counts in no median: metadata are read, and what reads them is compiled."""
    masks = [_chosen(run, QUERY, QUERIED, each) & (run.column("iteration") == 1) for each in asked]
    return known(float(sum(run.column("elapsed_ns")[mask].sum() for mask in masks)) * SECONDS)


def _scanned(run: Run, column: str, subject: str | None = None, factor: float = 1.0) -> Replicates:
    """Of the stages of queries that read a table: sums over the queries of the first iteration, the files being new."""
    mask = _chosen(run, QUERY, BEFORE, subject) & (run.column("iteration") == 1)
    total = float(run.column(column)[mask].sum()) * factor
    if not total:
        raise Absent("the engine tells of no table that was read")
    return known(total)


def _is_refreshed(run: Run) -> bool:
    """Whether its merges go one after the other into tables that were loaded once; else each has a table of its own."""
    return LOAD in found(run)["footprints"]


def merges_s(run: Run) -> list[float]:
    """What each refresh took, all of its tables together, in the order of refreshes.

    Absent where merges are of several sizes, each into a table of its own.
    """
    mask = _chosen(run, MERGE)
    if not _is_refreshed(run):
        raise Absent("its merges are no refreshes of one table")
    numbers, times = run.column("iteration")[mask], run.column("elapsed_ns")[mask]
    return [float(times[numbers == number].sum()) * SECONDS for number in np.unique(numbers)]


def _merge(run: Run) -> Replicates:
    return known(float(np.median(merges_s(run))))


def _compact(run: Run) -> Replicates:
    return known(float(run.column("elapsed_ns")[_chosen(run, COMPACT)].sum()) * SECONDS)


def merge_s(run: Run, size: int) -> Replicates:
    """The merge of so many updates and as many new rows into the synthetic table; Absent of refreshes."""
    if _is_refreshed(run):
        raise Absent("its merges are refreshes")
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


def querying(phase: str, query: str) -> Quantity:
    """One query in a phase."""
    return _seconds(f"{query}, {phase}", query, partial(_query, subject=query, phase=phase), "Queries")


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
STARTUP = _seconds("startup", "Startup of queries", partial(_startup, phase=BEFORE), "Startups")
EXECUTION = _seconds("execution", "Execution of queries", partial(_execution, phase=BEFORE), "Queries")
SCAN_TIME = _seconds("scans", "Reading tables, all tasks", partial(_scanned, column="scan_ns", factor=SECONDS), "Scans")
SCANNED = Quantity("scanned", "B", "Bytes read by queries", partial(_scanned, column="scan_bytes"), LOWER)
SCANS_OF = {  # of the query that the paper looks into: its reading, and the bytes that are read
    "scan_ns": _seconds(
        "scans of q90", "Reading tables in query 90",
        partial(_scanned, column="scan_ns", subject="q90", factor=SECONDS), "Scans",
    ),
    "scan_bytes": Quantity(
        "scanned by q90", "B", "Bytes read by query 90", partial(_scanned, column="scan_bytes", subject="q90"), LOWER
    ),
}  # fmt: skip


def _of_files(name: str, asked: Sequence[str], title: str) -> tuple[Quantity, Quantity, Quantity, Quantity]:
    """Of queries of a table with many files: startup, execution, both together, and both the first time."""
    told: dict[str, Any] = {"phase": QUERIED, "asked": asked, "first": AGAIN}
    return (
        _seconds(f"startup of {name}", f"Startup, {title}", partial(_startup, **told), "Startups"),
        _seconds(f"execution of {name}", f"Execution, {title}", partial(_execution, **told), "Queries"),
        _seconds(f"answer to {name}", f"Whole, {title}", partial(_answer, asked=asked), "Queries"),
        _seconds(f"first answer to {name}", f"First time, {title}", partial(_first, asked=asked), "Queries"),
    )


OF_FILES = {
    query: _of_files(query, (query,), "all rows counted" if query == "count" else f"filter: {query}")
    for query in ASKED_OF_FILES
}
OF_SELECTIVE = _of_files("selective", SELECTIVE, "the three selective queries together")
BYTES = Quantity("bytes", "B", "Bytes loaded", partial(_weight, what="bytes", phase=LOAD), LOWER)
FILES = Quantity("files", "files", "Files loaded", partial(_weight, what="files", phase=LOAD), LOWER)
GROWTH = Quantity("growth", "x", "Bytes after merges over before", _growth, LOWER)


def _all() -> Iterator[Quantity]:
    yield from (LOADING, LOADING_CPU, TOTAL, LATER, PLANNING, QUERIES_AFTER, QUERIES_COMPACTED, MERGING, COMPACTING)
    yield from (BYTES, FILES, GROWTH, *QUERYING.values())
    yield from (STARTUP, EXECUTION, SCAN_TIME, SCANNED, *SCANS_OF.values(), *OF_SELECTIVE)
    for told in OF_FILES.values():
        yield from told
    for size in SIZES:
        yield merging(size)
        yield slowdown(size)


QUANTITIES = Quantities(
    all=tuple(_all()),
    headline=(LOADING, TOTAL, MERGING),
    code=(
        "studies/lhbench/quantities.py",
        "studies/lhbench/files/answers.py",
        "studies/lhbench/window/samples.py",
    ),
)


def of(measures: Measures, quantity: Quantity, series: Series) -> Replicates:
    """`quantity` of `series`: its hot runs, or run 0 where a session has one window."""
    return measures.hot(quantity, series) if series.hot_runs else measures.cold(quantity, series)


def in_part(run_set: RunSet, part: str, stack: str | None = None) -> list[Series]:
    """The series of a part, by their sizes, and in the order of tables."""
    chosen = [each for each in run_set.select(stack=stack) if part_of(each.mode) == part]
    return sorted(chosen, key=lambda each: size_of(each.mode))
