"""Commit costs measured by the study: by number of writers, and by distance of an object store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidemark.analysis.measures import Measures
from tidemark.analysis.quantities import Absent
from tidemark.planner.cost_model import Cell, Cost, rtt_of
from tidemark.runs.runset import Series
from tidemark.studies.ingest.parts import part_of
from tidemark.studies.ingest.quantities import COMMITS, NOT_COMPARABLE
from tidemark.studies.ingest.storage.settings import STORAGE
from tidemark.studies.ingest.writers.settings import ONE, WRITERS, mode_of


def costs(measures: Measures) -> Iterator[Cost]:
    """Yield the costs for closed-loop writers of one table, with a flaw if it does not hold what was acknowledged."""
    for series in measures.run_set.series:
        part = part_of(series.mode)
        one_table = part == STORAGE or (part == WRITERS and mode_of(series.mode)[0] == ONE)
        if one_table and series.hot_runs and not series.is_harness:
            yield _cost(measures, series)


def _cost(measures: Measures, series: Series) -> Cost:
    run = series.hot_runs[0]
    given = dict(run.manifest.config)
    writers, rtt_ms = int(given["writers"]), rtt_of(run)
    found = Cost(
        system=series.system,
        title=series.title,
        stack=series.stack,
        promise=run.manifest.system.durability,
        cell=Cell(int(given["rows"]), writers, rtt_ms),
    )
    where = f"{writers} writer{'s' if writers > 1 else ''}" + (
        "" if rtt_ms is None else f", a store {rtt_ms:g} ms away"
    )
    if not all(each.manifest.oracle.verdict for each in series.hot_runs):
        return replace(found, flaw=f"{NOT_COMPARABLE} ({where})")
    try:
        rate = measures.hot(COMMITS, series).value
    except Absent as absent:
        return replace(found, flaw=f"{absent} ({where})")
    return replace(found, commit_ms=1000 * writers / rate, commits=rate * run.elapsed_s / 2)
