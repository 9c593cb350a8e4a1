"""Window of filtered queries on a table, in rounds over all predicates: rows and files that a client reads for each."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tidemark.errors import SystemFailure
from tidemark.measure.describe import system_part
from tidemark.measure.workload import CheckResult, DoneWindow, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.paths import private_directory
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import written
from tidemark.studies.ingest.record import PruningRecord, Words
from tidemark.studies.ingest.settings import PruningSettings
from tidemark.systems.pruning_dataset import PREDICATES, rows_of, schema
from tidemark.systems.tables import TableSystem


@dataclass(slots=True)
class Asked:
    """One query with its result, in windows of the part `pruning`."""

    predicate: str  # name of the query's condition
    start_ns: int  # begin of the query
    elapsed_ns: int  # duration of the query
    rows: int  # rows of the answer
    files: int  # data files left to read after pruning


@dataclass(slots=True)
class AskingWindow(DoneWindow[Asked]):
    """Window of queries; `elapsed_ns` ends with a complete round of all queries."""

    def budget(self) -> dict[str, int]:
        inside = int(self.elapsed().sum())
        return {"queries": inside, "rest": self.elapsed_ns - inside}


class PruningRunner(WindowRunner[AskingWindow]):
    """Runner of an `AskingWindow`, created by `open_window`."""

    def __init__(self, test_bed: TestBed, directory: Path, table: TableSystem, files: int, rows: int) -> None:
        super().__init__(test_bed, directory)
        self._table, self._files, self._rows = table, files, rows
        self._wrong: list[str] = []

    def new_window(self) -> AskingWindow:
        return AskingWindow()

    def execute(self, window: AskingWindow, until_seconds: float) -> None:
        clock = time.perf_counter_ns
        start = clock()
        while not self.is_cancelled:
            for each in PREDICATES:
                began = clock()
                found = self._table.answer(each.asked)
                window.done.append(Asked(each.name, began - start, clock() - began, found.rows, found.files))
            if clock() - start >= until_seconds * 1e9:
                break
        window.elapsed_ns = clock() - start

    def finish(self, window: AskingWindow) -> None:
        self.test_bed.servers.check()
        if not window.done:
            raise SystemFailure("the window was abandoned before a query was answered")

    def check(self, window: AskingWindow, last: bool, show: ProgressCallback) -> CheckResult:
        """Check that each query found all matching rows, and that the table holds each written row once."""
        del last
        show("oracle")
        began = time.perf_counter()
        files, rows = self._files, self._rows
        wanted = {each.name: rows * each.files(files) for each in PREDICATES}
        wrong = {each.predicate: each.rows for each in window.done if each.rows != wanted[each.predicate]}
        self._wrong = [f"'{name}' found {count:,} rows of {wanted[name]:,}" for name, count in wrong.items()]
        ids = np.bincount(self._table.ids().to_numpy(), minlength=files * rows)
        missing, doubled = int((ids[: files * rows] == 0).sum()), int((ids > 1).sum())
        unexpected = int((ids[files * rows :] > 0).sum())
        verdict = not (wrong or missing or doubled or unexpected)
        counts = (files * rows, int(ids.sum()), missing, doubled, unexpected)
        oracle = Oracle(verdict, True, *counts, self._table.reader, time.perf_counter() - began)
        return CheckResult(oracle, self._table.footprint())

    def describe(self, window: AskingWindow) -> RunMetadata:
        del window
        words = "; ".join(self._wrong) or "exact"
        return RunMetadata(
            system=system_part(self.test_bed.variant, self._table, schema()),
            versions={"PyArrow": pa.__version__, "Python": platform.python_version()},
            marks=tuple(self._wrong),
            found=written(PruningRecord(Words(words), len(self._table.data_files()))),
        )


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[PruningRunner]:
    """Create the table in the folder `name`, with a commit for each of its files, and yield its runner."""
    del seconds
    settings = PruningSettings.of(test_bed.spec)
    with table_of(test_bed, name, settings.files, settings.rows, show) as (directory, table):
        yield PruningRunner(test_bed, directory, table, settings.files, settings.rows)


@contextmanager
def table_of(
    test_bed: TestBed, name: str, commits: int, rows: int, show: ProgressCallback
) -> Iterator[tuple[Path, TableSystem]]:
    """Create the folder `name` and a table in it, with `commits` commits of `rows` rows each; yield both."""
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("making the table")
        folder = private_directory(directory / "table-1")
        table = test_bed.variant.open_as(TableSystem, test_bed.context(folder, rows))
        stack.callback(table.close)
        table.create(schema())
        for commit in range(commits):
            table.write(rows_of(commit, rows))
        yield directory, table
