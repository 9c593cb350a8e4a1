"""Results of maintenance: the table ingest-maintenance of operations and concurrent commits, and the finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median

import numpy as np

from tidemark.analysis.formatting import Cell, MissingCell, attempt, listed
from tidemark.analysis.metrics import NotAvailable
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.results.tables.table import SYSTEM, Column, Table, TableBuilder
from tidemark.runs.run import Run
from tidemark.runs.runset import RunSet, Series
from tidemark.studies.ingest.maintenance.maintenance_results import (
    Kept,
    commit_ms,
    failed_calls,
    kept_of,
    operations,
    pairs,
    slowed,
    words_of,
)
from tidemark.studies.ingest.maintenance.settings import MAINTENANCE
from tidemark.studies.ingest.metrics import NOT_COMPARABLE, refusals
from tidemark.studies.ingest.part import PartResults

MEGABYTE = 1e6
WHOLE, NOTHING = "all of it", "none"  # shown in place of an operation
COLUMNS = (
    SYSTEM, Column("operation", "Maintenance"), Column("verdict", "Oracle"), Column("calls", "Calls"),
    Column("conflicts", "Calls refused"), Column("errors", "Calls failed"), Column("median", "Call, median", "s"),
    Column("longest", "Call, longest", "s"), Column("share", "Of the window", "%"),
    Column("peak", "Peak memory of its process", "MB"),
    Column("p50_during", "Commit p50 during it", "ms", interval=True),
    Column("p50_between", "Commit p50 without", "ms", interval=True),
    Column("p50_ratio", "Ratio of p50", "x", interval=True),
    Column("p99_during", "Commit p99 during it", "ms", interval=True),
    Column("p99_between", "Commit p99 without", "ms", interval=True),
    Column("p99_ratio", "Ratio of p99", "x", interval=True),
    Column("rate", "Commits", "commits/s"), Column("pause_during", "Longest pause during it", "s"),
    Column("pause_between", "Longest pause without", "s"), Column("refused", "Commits refused", "%"),
    Column("lost", "Lost rows"), Column("doubled", "Doubled rows"),
    Column("files_first", "Data files, first"), Column("files_most", "Most"), Column("files_last", "Last"),
    Column("data_bytes", "Data, last", "B"), Column("metadata_files", "Metadata files, last"),
    Column("metadata_bytes", "Metadata, last", "B"), Column("reads", "Reads"), Column("reads_failed", "Reads failed"),
    Column("backwards", "Reads that saw fewer rows than before"),
    Column("read_during", "Read, median during it", "ms"), Column("read_between", "Read, median without", "ms"),
    Column("said", "First errors"),
)  # fmt: skip
QUANTILES = (0.5, 0.99)


def build(builder: TableBuilder) -> Iterator[Table]:
    """Yield the table ingest-maintenance."""
    rows: list[list[Cell]] = []
    runs: list[Run] = []
    for series, control in pairs(builder.run_set):
        rows += _of_series(series)
        runs += series.runs
        if control is not None and control.runs:
            rows.append(_whole(control, NOTHING, kept_of(control)))
            runs += control.runs
    notes = [
        "Writers append to one table in a closed loop. Meanwhile one client counts the table's rows again and again, "
        "and another one does, in rounds, what its client offers to keep the table small; 'none' is the same without. "
        "Times of commits run from the first try to the acknowledgement; 'during it' are those that a call had a part "
        "of, 'without' those that no call had. A pause is a time without an acknowledgement to any writer.",
        "The oracle asks another client for all ids after the window. Where it does not report 'exact', times of "
        "commits are no results. How long calls took is shown all the same.",
        "Refused: because another commit came first, after the client's own tries. Data files are those on the disk, "
        "at the first look, at the one with most, and after the window. A client reads with the library that writes; "
        "peak memory is that of its process, with what it shares with others.",
    ]
    yield builder.table("ingest-maintenance", "Maintenance while writers write", COLUMNS, rows, runs, notes)


def _of_series(series: Series) -> Iterator[list[Cell]]:
    kept = kept_of(series)
    if not kept:
        yield [series.title, WHOLE, MissingCell(series.missing()), *[None] * (len(COLUMNS) - 3)]
        return
    yield _whole(series, WHOLE, kept)
    found = operations(kept)
    for operation in found if len(found) > 1 else ():
        calls, commits = _calls(kept, operation), _commits(kept, operation)
        yield [series.title, operation, None, *calls, *commits, *[None] * (len(COLUMNS) - 16)]
    left_undone = kept[0].found.left_undone
    if left_undone:
        yield [series.title, "what is left undone", MissingCell(left_undone), *[None] * (len(COLUMNS) - 3)]


def _whole(series: Series, operation: str, kept: Sequence[Kept]) -> list[Cell]:
    """Return the row of all operations together, or of a control."""
    exact = all(each.is_exact for each in kept)
    elapsed = sum(each.run.elapsed_s for each in kept)
    within = sum(int((each.commits[1] <= each.run.elapsed_s).sum()) for each in kept)
    refused, tried = map(sum, zip(*(refusals(each.run)[:2] for each in kept), strict=True))
    sizes = [size.data_files for each in kept for size in each.found.sizes]
    footprint = kept[-1].run.footprint
    reads = [each.reads for each in kept]
    said = [call.said for each in kept for call in each.found.calls if call.said]
    said += [words for each in reads for words in each.said]
    return [
        series.title,
        operation,
        words_of(kept),
        *_calls(kept, None),
        *_commits(kept, None),
        within / elapsed if exact else MissingCell(NOT_COMPARABLE),
        *(_longest([each.pause_s(during) for each in kept]) for during in (True, False)),
        100 * refused / max(tried, 1),
        sum(each.oracle.lost for each in kept),
        sum(each.oracle.doubled for each in kept),
        sizes[0] if sizes else None,
        max(sizes, default=None),
        footprint.data_files,
        footprint.data_bytes,
        footprint.metadata_files,
        footprint.metadata_bytes,
        sum(each.count for each in reads),
        sum(each.failed for each in reads),
        sum(each.backwards for each in reads),
        *(
            float(np.median(times)) if len(times := np.concatenate([getattr(each, name) for each in reads])) else None
            for name in ("during_ms", "between_ms")
        ),
        "; ".join(dict.fromkeys(said))[:300] or None,
    ]


def _calls(kept: Sequence[Kept], operation: str | None) -> list[Cell]:
    """Return the cells of calls: number, refused, failed; median and longest; share of the window; peak memory."""
    calls = [call for each in kept for call in each.calls(operation)]
    if not calls:
        return [0, *[None] * 6]
    seconds = [call.seconds for call in calls]
    return [
        len(calls),
        *failed_calls(kept, operation),
        median(seconds),
        max(seconds),
        100 * sum(seconds) / sum(each.run.elapsed_s for each in kept),
        max(call.peak_bytes for call in calls) / MEGABYTE,
    ]


def _commits(kept: Sequence[Kept], operation: str | None) -> list[Cell]:
    cells: list[Cell] = []
    has_calls = any(each.found.calls for each in kept)
    for probability in QUANTILES:
        asked: list[tuple[str, Callable[[], BootstrapEstimate]]] = [
            ("ms", partial(commit_ms, kept, probability, True, operation)),
            ("ms", partial(commit_ms, kept, probability, False)),
            ("x", partial(slowed, kept, probability, operation)),
        ]
        for place, (unit, compute) in enumerate(asked):
            cells.append(attempt(unit, compute) if has_calls or place == 1 else None)
    return cells


def _longest(pauses: Sequence[float | None]) -> Cell:
    return max((pause for pause in pauses if pause is not None), default=None)


def held_sentence(run_set: RunSet) -> str:
    """Return the sentences on the oracle's verdict on each table; raise NotAvailable if none was maintained."""
    found = [(kept_of(own), kept_of(other) if other else []) for own, other in pairs(run_set) if own.runs]
    if not found:
        raise NotAvailable("no table was maintained while it was written to")
    held, broken = [], []
    for kept, control in found:
        title = kept[0].series.title
        if all(each.is_exact for each in kept):
            held.append(title)
        else:
            alone = f" (without maintenance: {words_of(control)})" if control else ""
            broken.append(f"{title}: {words_of(kept)}{alone}")
    said = [f"With maintenance, every acknowledged row is there once in {listed(held)}."] if held else []
    said += [f"Maintenance during writes breaks what was acknowledged: {'; '.join(broken)}."] if broken else []
    return " ".join(said)


def values(run_set: RunSet) -> dict[str, str]:
    """Return the maintenance settings shown in the chapter; "-" in run sets that are older than the part."""
    given = run_set.config.values.get(MAINTENANCE, {})
    names = {"writers": "writers", "rows": "rows", "every": "every_seconds"}
    return {f"ingest-maintenance-{name}": str(given.get(key, "-")) for name, key in names.items()}


RESULTS = PartResults(
    tables=build,
    figures="tidemark.studies.ingest.maintenance.figures",
    sentences=lambda measures: {"ingest-maintenance-held": partial(held_sentence, measures.run_set)},
    findings=lambda measures: (partial(held_sentence, measures.run_set),),
)
