"""Tests of the cells on inlining: limit by catalog, reads before and after the flush, reasons for missing values."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from tidemark.analysis.formatting import MissingCell
from tidemark.runs.manifest import Flush
from tidemark.runs.run import Run
from tidemark.runs.serde import Fields, read
from tidemark.studies.streams.storage_tables import INLINING_COLUMNS, NO_FLUSH, NOT_READ, inlining_cells

HEAD = 3  # columns that identify a inlining_cells
BEFORE, AFTER = {"count_s": [0.5, 0.1], "sum_s": [0.7, 0.2]}, {"count_s": [0.05, 0.01], "sum_s": [0.07, 0.02]}


def run(limit: int, flush: Flush | None, **reads: Any) -> Run:
    system = SimpleNamespace(catalog="PostgreSQL", settings=(("data_inlining_row_limit", str(limit)),))
    manifest = SimpleNamespace(system=system, flush=flush)
    record = partial(read, f=Fields("run.json", {"reads": reads}))
    return cast(Run, SimpleNamespace(manifest=manifest, record=record))


def test_reads_are_shown_before_and_after_the_flush() -> None:
    cells = inlining_cells(run(1000, Flush(1.5, 30_000, 1, 900), streamed=BEFORE, flushed=AFTER), 4.0)
    assert len(cells) == len(INLINING_COLUMNS) - HEAD
    assert cells == ["PostgreSQL", 1000, 4.0, 30_000, 1.5, 0.5, 0.1, 0.7, 0.2, 0.05, 0.01, 0.07, 0.02]


def test_table_without_inlining_is_read_once_and_failures_state_the_reason() -> None:
    cells = inlining_cells(run(0, None, streamed=BEFORE), 4.0)
    assert cells[1:9] == [0, 4.0, MissingCell(NO_FLUSH), MissingCell(NO_FLUSH), 0.5, 0.1, 0.7, 0.2]
    assert cells[9:] == [MissingCell(NO_FLUSH)] * 4
    failed = inlining_cells(run(10, Flush(1.5, 9, 1, 9), streamed={"why_not": "count(*) failed: locked"}), 4.0)
    assert failed[5:9] == [MissingCell("count(*) failed: locked")] * 4 and failed[9:] == [MissingCell(NOT_READ)] * 4
