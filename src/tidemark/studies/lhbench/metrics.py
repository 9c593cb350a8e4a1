"""Metrics of the study: times of loads, queries, merges and compaction, and sizes of tables.

A run with a wrong table or a wrong answer has no metrics: they are NotAvailable. So has a second engine without a
correct answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.metrics import LOWER, Metric, MetricSet, NotAvailable, require
from tidemark.analysis.statistics import BootstrapEstimate, known
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.lhbench import script
from tidemark.studies.lhbench.record import NOT_TOLD, LakeRecord, Second, SecondRecord, Way
from tidemark.studies.lhbench.settings import QUERIES, settings_of
from tidemark.studies.lhbench.verifier.readers import DUCKLAKE, NOT_ASKED

NO_JOB = "answered without its own job"
NOT_COMPARABLE = "not comparable: a table or an answer is not what it must be"
SECONDS = 1e-9  # seconds per nanosecond
CLOCK_S = 1e-3  # resolution of the clock of an engine's log
AGAIN = 2  # first iteration of a query of the part `files` that counts: as in the paper, the first run is left out
# Merge sizes of the shipped protocols; `merging` and `slowdown` accept any other size.
SIZES = (4, 35, 350, 3_500, 35_000, 200_000, 350_000, 7_000_000)


def sound(run: Run) -> Run:
    require(run.manifest.oracle.verdict, NOT_COMPARABLE)
    return run


def _chosen(run: Run, kind: str, phase: str | None = None, subject: str | None = None) -> NDArray[np.bool_]:
    """Return a mask of the steps of a kind, and of a phase and subject if given; NotAvailable if there are none."""
    mask: NDArray[np.bool_] = sound(run).words("kind") == kind
    if phase is not None:
        mask &= run.words("phase") == phase
    if subject is not None:
        mask &= run.words("subject") == subject
    require(mask.any(), f"its windows have no {kind}" + (f" in the phase '{phase}'" if phase else ""))
    return mask


def subjects(run: Run, phase: str) -> list[str]:
    """Return the names of a phase's queries, in the order in which they ran."""
    return list(dict.fromkeys(run.words("subject")[_chosen(run, script.QUERY, phase)].tolist()))


def query_s(run: Run, phase: str, subject: str, column: str = "elapsed_ns", first: int = 1) -> float:
    """Return the median of one query in seconds, over the iterations from `first` on; NotAvailable if it failed."""
    mask = _chosen(run, script.QUERY, phase, subject)
    failed = [str(each) for each in run.words("error")[mask] if each]
    if failed:
        raise NotAvailable(f"{subject} failed: {failed[0]}")
    mask &= run.column("iteration") >= first
    values = run.column(column)[mask]
    require(len(values), f"{subject} was asked once")
    require(NOT_TOLD not in values, NO_JOB if column == "startup_ns" else "the engine does not tell")
    return float(np.median(values)) * SECONDS


def _load(run: Run, column: str = "elapsed_ns") -> BootstrapEstimate:
    values = run.column(column)[_chosen(run, script.LOAD, script.LOAD)]
    require(NOT_TOLD not in values, "the user's own cluster: its processor time is not visible here")
    return known(float(values.sum()) * SECONDS)


def _total(
    run: Run, phase: str = script.BEFORE, asked: Sequence[str] = (), column: str = "elapsed_ns", first: int = 1
) -> BootstrapEstimate:
    """Return the sum of the medians of queries (all, if none is named); NotAvailable if one of them failed."""
    return known(sum(query_s(run, phase, each, column, first) for each in asked or subjects(run, phase)))


def startup_s(run: Run, phase: str, subject: str, first: int = 1) -> float:
    """Return the seconds from submitting a query to the start of its first job (the paper's definition), to 1 ms."""
    return max(query_s(run, phase, subject, "startup_ns", first), CLOCK_S / 2)


def _startup(run: Run, phase: str, asked: Sequence[str] = (), first: int = 1) -> BootstrapEstimate:
    return known(sum(startup_s(run, phase, each, first) for each in asked or subjects(run, phase)))


def _execution(run: Run, phase: str, asked: Sequence[str] = (), first: int = 1) -> BootstrapEstimate:
    """Return the total time of the queries minus their startup."""
    names = asked or subjects(run, phase)
    left = [query_s(run, phase, each, first=first) - startup_s(run, phase, each, first) for each in names]
    return known(max(sum(left), CLOCK_S / 2))


def _first(run: Run, asked: Sequence[str]) -> BootstrapEstimate:
    """Return the time of the first iteration, excluded from all medians: it reads metadata and compiles code for it."""
    masks = [_chosen(run, script.QUERY, script.QUERIED, each) & (run.column("iteration") == 1) for each in asked]
    return known(float(sum(run.column("elapsed_ns")[mask].sum() for mask in masks)) * SECONDS)


def _scanned(run: Run, column: str, subject: str | None = None, factor: float = 1.0) -> BootstrapEstimate:
    """Return the sum of `column` over table-reading stages of each query's first iteration, while the files are new."""
    mask = _chosen(run, script.QUERY, script.BEFORE, subject) & (run.column("iteration") == 1)
    return known(require(float(run.column(column)[mask].sum()) * factor, "the engine tells of no table that was read"))


def _is_refreshed(run: Run) -> bool:
    """Return True if merges go one after the other into tables loaded once, False if each has a separate table."""
    return script.LOAD in run.record(LakeRecord).sizes


def merges_s(run: Run) -> list[float]:
    """Return the seconds of each refresh, summed over its tables, in the order of refreshes.

    Raise NotAvailable if the merges are of several sizes, each into a separate table.
    """
    mask = _chosen(run, script.MERGE)
    require(_is_refreshed(run), "its merges are no refreshes of one table")
    numbers, times = run.column("iteration")[mask], run.column("elapsed_ns")[mask]
    return [float(times[numbers == number].sum()) * SECONDS for number in np.unique(numbers)]


def _merge(run: Run) -> BootstrapEstimate:
    return known(float(np.median(merges_s(run))))


def _longest(run: Run) -> BootstrapEstimate:
    times = merges_s(run)
    return known(max(times) / float(np.median(times)))


def _compact(run: Run) -> BootstrapEstimate:
    return known(float(run.column("elapsed_ns")[_chosen(run, script.COMPACT)].sum()) * SECONDS)


def merge_s(run: Run, size: int) -> BootstrapEstimate:
    """Return the time to merge `size` updates and as many inserts into the synthetic table.

    Raise NotAvailable for refreshes.
    """
    require(not _is_refreshed(run), "its merges are refreshes")
    return known(float(run.column("elapsed_ns")[_chosen(run, script.MERGE, f"{script.MERGE} {size}")].sum()) * SECONDS)


def slowdown_of(run: Run, size: int) -> BootstrapEstimate:
    """Return the time of the three queries after that merge, divided by their time before it."""
    return _total(run, f"{script.AFTER} {size}").ratio(_total(run, f"{script.BEFORE} {size}"))


def _weight(run: Run, what: str, phase: str) -> BootstrapEstimate:
    """Return the size of all tables judged after a phase, data and metadata; `what` is bytes or files."""
    tables = require(sound(run).record(LakeRecord).sizes.get(phase), f"no table was weighed after the phase '{phase}'")
    return known(float(sum(getattr(each, what) for each in tables.values())))


def _growth(run: Run) -> BootstrapEstimate:
    """Return the bytes of the merged tables after all refreshes, divided by their bytes when loaded."""
    phases = sound(run).record(LakeRecord).sizes
    after = phases[f"{script.MERGE} {len(merges_s(run))}"]
    bytes_after, before = (sum(tables[name].bytes for name in after) for tables in (after, phases[script.LOAD]))
    return known(bytes_after / before)


def ways_of(run: Run, phase: str) -> dict[str, Way]:
    """Return the second engine's results after a phase, by way of reading the tables; NotAvailable if no query ran."""
    found = dict(sound(run).record(SecondRecord).second).get(phase, Second(reason=NOT_ASKED))
    if found.ways is None:
        raise NotAvailable(found.reason)
    return dict(found.ways)


def _by_way(run: Run, phase: str, way: str | None) -> Way:
    """Return the results of one way; `way` None: the way that reads the first engine's own tables."""
    ways = ways_of(run, phase)
    chosen = next((each for each in ways if each != DUCKLAKE), DUCKLAKE) if way is None else way
    require(chosen in ways, NOT_ASKED)
    return ways[chosen]


def second_s(run: Run, phase: str, way: str | None, asked: Sequence[str] = ()) -> BootstrapEstimate:
    """Return the sum of the medians of queries (all, if none is named) over the second engine's passes, in seconds."""
    queries = dict(_by_way(run, phase, way).queries)
    total = 0.0
    for name in asked or queries:
        require(name in queries, f"{name} was not asked")
        require(not queries[name].words, f"{name}: {queries[name].words}")
        total += float(np.median(queries[name].ns)) * SECONDS
    return known(total)


def _second_load(run: Run) -> BootstrapEstimate:
    loads = require(dict(_by_way(run, script.BEFORE, DUCKLAKE).load_ns), "nothing was loaded")
    return known(sum(loads.values()) * SECONDS)


def _seconds(name: str, title: str, how: Callable[[Run], BootstrapEstimate], subject: str) -> Metric:
    return Metric(name, "s", title, how, LOWER, name.replace(" ", "_"), subject, ("slower", "faster"))


def merging(size: int) -> Metric:
    return _seconds(f"merge of {size}", f"Merge of {size:,} updates", partial(merge_s, size=size), "Merges")


def slowdown(size: int) -> Metric:
    title = f"Queries after over before {size:,} updates"
    return Metric(f"slowdown of {size}", "x", title, partial(slowdown_of, size=size), LOWER)


def querying(phase: str, query: str) -> Metric:
    """Return the quantity of one query in a phase."""
    return _seconds(f"{query}, {phase}", query, partial(_total, phase=phase, asked=(query,)), "Queries")


LOADING = _seconds("load", "Load", _load, "Loads")
LOADING_CPU = _seconds("load CPU", "Processor time of the load", partial(_load, column="cpu_ns"), "Loads")
QUERYING = {
    f"q{number}": _seconds(f"q{number}", f"Query {number}", partial(_total, asked=(f"q{number}",)), "Queries")
    for number in range(1, QUERIES + 1)
}
FOUR = tuple(QUERYING[name] for name in ("q9", "q67", "q68", "q90"))  # those that the paper shows in figures
TOTAL = _seconds("queries", "Queries, sum of medians", _total, "Queries")
LATER = _seconds("queries later", "Queries, from the second time on", partial(_total, first=2), "Queries")
PLANNING = _seconds("planning", "Planning of queries", partial(_total, column="planned_ns"), "Plans")
QUERIES_AFTER = _seconds("queries after", "Queries after the merges", partial(_total, phase=script.AFTER), "Queries")
QUERIES_COMPACTED = _seconds(
    "queries compacted", "Queries after compaction", partial(_total, phase=script.COMPACTED), "Queries"
)
MERGING = _seconds("merge", "A refresh, median", _merge, "Merges")
COMPACTING = _seconds("compaction", "Compaction", _compact, "Compactions")
OF_REFRESH = (LOADING, TOTAL, MERGING, QUERIES_AFTER, COMPACTING, QUERIES_COMPACTED)  # stage by stage
STARTUP = _seconds("startup", "Startup of queries", partial(_startup, phase=script.BEFORE), "Startups")
EXECUTION = _seconds("execution", "Execution of queries", partial(_execution, phase=script.BEFORE), "Queries")
SCAN_TIME = _seconds("scans", "Reading tables, all tasks", partial(_scanned, column="scan_ns", factor=SECONDS), "Scans")
TASK_TIME = _seconds("tasks", "All tasks of queries", partial(_scanned, column="task_ns", factor=SECONDS), "Tasks")
SCANNED = Metric("scanned", "B", "Bytes read by queries", partial(_scanned, column="scan_bytes"), LOWER)
SCANS_OF = {  # query 90, which the paper examines: time of its scans, and bytes read
    "scan_ns": _seconds(
        "scans of q90", "Reading tables in query 90",
        partial(_scanned, column="scan_ns", subject="q90", factor=SECONDS), "Scans",
    ),
    "scan_bytes": Metric(
        "scanned by q90", "B", "Bytes read by query 90", partial(_scanned, column="scan_bytes", subject="q90"), LOWER
    ),
}  # fmt: skip


def _of_files(name: str, asked: Sequence[str], title: str) -> tuple[Metric, Metric, Metric, Metric]:
    """Return the quantities of queries on many files: startup, execution, their total, and the first iteration's."""
    chosen: dict[str, Any] = {"phase": script.QUERIED, "asked": asked, "first": AGAIN}
    return (
        _seconds(f"startup of {name}", f"Startup, {title}", partial(_startup, **chosen), "Startups"),
        _seconds(f"execution of {name}", f"Execution, {title}", partial(_execution, **chosen), "Queries"),
        _seconds(f"answer to {name}", f"Whole, {title}", partial(_total, **chosen), "Queries"),
        _seconds(f"first answer to {name}", f"First time, {title}", partial(_first, asked=asked), "Queries"),
    )


OF_FILES = {
    query: _of_files(query, (query,), "all rows counted" if query == script.COUNT else f"filter: {query}")
    for query in script.FILES_QUERIES
}
OF_SELECTIVE = _of_files("selective", script.SELECTIVE, "the three selective queries together")


def query_by(way: str, phase: str, query: str) -> Metric:
    how = partial(second_s, phase=phase, way=way, asked=(query,))
    return Metric(f"{query} by DuckDB, {way}, {phase}", "s", query, how, LOWER)


def total_by(way: str | None, phase: str) -> Metric:
    """Return the quantity of all queries, the sum of their medians; `way` None: on the first engine's own tables."""
    name = f"queries by DuckDB, {way or 'its own way'}, {phase}"
    return Metric(name, "s", "Queries by DuckDB", partial(second_s, phase=phase, way=way), LOWER)


LOADED = Metric("load of DuckLake", "s", "Load of DuckLake", _second_load, LOWER)
LOADED_TABLES = total_by(None, script.BEFORE)
BYTES = Metric("bytes", "B", "Bytes loaded", partial(_weight, what="bytes", phase=script.LOAD), LOWER)
FILE_COUNT = Metric("files", "files", "Files loaded", partial(_weight, what="files", phase=script.LOAD), LOWER)
LONGEST = Metric("longest refresh", "x", "Longest refresh over the median", _longest, LOWER, "longest_refresh")
GROWTH = Metric("growth", "x", "Bytes after merges over before", _growth, LOWER)


def _all() -> Iterator[Metric]:
    yield from (LOADING, LOADING_CPU, TOTAL, LATER, PLANNING, QUERIES_AFTER, QUERIES_COMPACTED, MERGING, COMPACTING)
    yield from (BYTES, FILE_COUNT, GROWTH, LONGEST, *QUERYING.values())
    yield from (STARTUP, EXECUTION, SCAN_TIME, TASK_TIME, SCANNED, *SCANS_OF.values(), *OF_SELECTIVE)
    for chosen in OF_FILES.values():
        yield from chosen
    for size in SIZES:
        yield from (merging(size), slowdown(size))


QUANTITIES = MetricSet(
    all=tuple(_all()),
    headline=(LOADING, TOTAL, MERGING),
    code=("studies/lhbench/metrics.py", "studies/lhbench/record.py", "studies/lhbench/script.py"),
)


def of_part(series: Iterable[Series], part: str) -> list[Series]:
    """Return those of `series` that are of a part, sorted by size; series of one size keep their order."""
    chosen = [each for each in series if settings_of(each).part == part]
    return sorted(chosen, key=lambda each: settings_of(each).size)


def in_part(run_set: RunSet, part: str, stack: str | None = None) -> list[Series]:
    """Return the series of a part under one stack, sorted by size; series of one size keep the order of tables."""
    return of_part(run_set.select(stack=stack), part)


def measured_in(run_set: RunSet, part: str) -> list[Series]:
    """Return those series of a part that have runs. Raise NotAvailable if there is none."""
    return require([each for each in in_part(run_set, part) if each.runs], f"the part '{part}' was not measured")


def largest(series: Iterable[Series]) -> list[Series]:
    """Return the last of each system's series, which has the largest size."""
    return list({each.system: each for each in series}.values())
