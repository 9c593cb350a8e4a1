"""Windows of one client on one table: filtered queries, added columns, and a table at several ages.

pruning    queries with filters, in rounds over all predicates: rows and files that the client reads for each
evolution  columns added to a table with rows: each change is timed, and rows from before and after are read
ages       at each age, readers open, plan and read the table, and its client commits

A table is made older between the parts of its window, by its client or by the format's own files
(`TableSystem.make_commits`). All of its commits, timed or not, are of one row, and the rows differ in their ids alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from tidemark.errors import SystemFailure
from tidemark.measure.oracle import compare, consult, difference
from tidemark.measure.workload import CheckResult, DoneWindow, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.runs.proofs import Oracle
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.parts import settings_of
from tidemark.studies.ingest.record import AgesRecord, EvolutionRecord, PruningRecord, SizeAtAge, Words
from tidemark.studies.ingest.settings import COMMITS_AT_AGE, AgesSettings, EvolutionSettings, PruningSettings
from tidemark.studies.ingest.window.runner import TABLE, metadata, new_table
from tidemark.systems.base import Capability
from tidemark.systems.duckdb_client import DuckDBReadClient
from tidemark.systems.pruning_dataset import PREDICATES, rows_of, schema
from tidemark.systems.tables import TableSystem, with_id
from tidemark.systems.writers import TableWriter

EARLIER = 10  # commits before the first change, a data file each
ACCEPTED = "accepted"
PLAN, READ, COMMIT = "plan", "read", "commit"
READERS = 3  # that plan, and that read, at each age
LONGEST = 300  # characters of an error that are kept
SHOWN = 500  # commits between two messages


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

    activity = "queries"


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
                rows = self._table.answer(each.asked)
                took = clock() - began
                files = self._table.files_to_read(each.asked)  # a query of its own, which is not timed
                window.done.append(Asked(each.name, began - start, took, rows, files))
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
        words = Words("; ".join(self._wrong) or "exact")
        record = PruningRecord(words, len(self._table.data_files()), plan_apart=True)
        return metadata(self.test_bed, self._table, record, self._wrong, schema())


@dataclass(slots=True)
class Added:
    """One added column, in windows of the part `evolution`."""

    start_ns: int  # begin of the change
    elapsed_ns: int  # duration of the change
    rows: int  # rows of the commit that follows, the first with the column
    rewritten: int  # data files of the table that were gone after the change


def column_name(number: int) -> str:
    """Return the name of an added column, from 1."""
    return f"added_{number}"


def rows_with(commit: int, rows: int, columns: int) -> pa.Table:
    """Return the rows of a commit with the first `columns` added columns, whose values are the rows' ids."""
    found = rows_of(commit, rows)
    for number in range(1, columns + 1):
        found = found.append_column(column_name(number), found.column("id"))
    return found


def wrong_values(found: pa.Table, rows: int, columns: int) -> int:
    """Count the values of added columns that are neither the row's id nor, in rows older than the column, null.

    Rows without any value come last as well: the commit of a writer that knows no added column.
    """
    wrong = 0
    for number in range(1, columns + 1):
        if column_name(number) not in found.column_names:
            return int(found.num_rows) * columns
        values = found.column(column_name(number)).to_pylist()
        for identity, value in zip(found.column("id").to_pylist(), values, strict=True):
            commit = identity // rows
            has = EARLIER + number - 1 <= commit < EARLIER + columns
            wrong += bool(value != (identity if has else None))
    return wrong


class EvolutionRunner(WindowRunner[DoneWindow[Added]]):
    """Runner of a window of added columns, created by `open_window`."""

    def __init__(self, test_bed: TestBed, directory: Path, table: TableSystem, settings: EvolutionSettings) -> None:
        super().__init__(test_bed, directory)
        self._table, self._settings = table, settings
        self._written, self._words, self._other = EARLIER, "", ""
        self.bystander: TableWriter | None = None  # a client of another connection, which opened the table before

    def new_window(self) -> DoneWindow[Added]:
        return DoneWindow()

    def execute(self, window: DoneWindow[Added], until_seconds: float) -> None:
        """Add all columns, whatever the length of the window: it ends with its work."""
        del until_seconds
        clock, rows = time.perf_counter_ns, self._settings.rows
        start = clock()
        for number in range(1, self._settings.columns + 1):
            if self.is_cancelled:
                break
            before = self._files()
            began = clock()
            self._table.add_column(column_name(number))
            ended = clock()
            rewritten = len(before - self._files())
            self._table.write(rows_with(self._written, rows, number))
            self._written += 1
            window.done.append(Added(began - start, ended - began, rows, rewritten))
        window.elapsed_ns = clock() - start

    def _files(self) -> set[tuple[PurePath, int]]:
        """Return the table's data files; those of a local disk with the time of their last change, 0 for objects."""
        return {(path, path.stat().st_mtime_ns if isinstance(path, Path) else 0) for path in self._table.data_files()}

    def finish(self, window: DoneWindow[Added]) -> None:
        self.test_bed.servers.check()
        if len(window.done) < self._settings.columns:
            raise SystemFailure(
                f"the window was abandoned after {len(window.done)} of {self._settings.columns} columns"
            )

    def check(self, window: DoneWindow[Added], last: bool, show: ProgressCallback) -> CheckResult:
        """Check ids and the values of added columns, after a writer that knows no added column has tried to write."""
        del last
        show("oracle")
        rows, columns = self._settings.rows, self._settings.columns
        self._other = self._write_as_before()
        commits = EARLIER + columns + (self._other == ACCEPTED)
        began = time.perf_counter()
        ids = self._table.ids()
        oracle = compare(ids, rows * commits, self._table.reader, time.perf_counter() - began)
        wrong = wrong_values(self._table.read(), rows, columns)
        self._words = "exact" if oracle.verdict else difference(oracle, window.operations)
        if wrong:
            self._words = f"{self._words}; {wrong:,} values of added columns are wrong"
        return CheckResult(replace(oracle, verdict=oracle.verdict and not wrong), self._table.footprint())

    def _write_as_before(self) -> str:
        """Write rows without added columns by a client that opened the table before the first change; return how."""
        if self.bystander is None:
            return "not tried: one process at a time may write its table"
        try:
            self.bystander.write(rows_of(EARLIER + self._settings.columns, self._settings.rows))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).strip().partition('\n')[0][:200]}"
        return ACCEPTED

    def describe(self, window: DoneWindow[Added]) -> RunMetadata:
        rewritten = sum(each.rewritten for each in window.done)
        record = EvolutionRecord(Words(self._words), len(self._table.data_files()), rewritten, self._other)
        marks = () if self._words == "exact" else (self._words,)
        return metadata(self.test_bed, self._table, record, marks, schema())


@dataclass(slots=True)
class AtAge:
    """One operation on a table of an age, in windows of the part `ages`."""

    age: int  # commits that the table had when its first operation at this age began
    what: str  # plan or read, each by a new client that opens the table, or commit
    start_ns: int  # begin of the operation
    elapsed_ns: int  # duration of the operation
    rows: int  # rows that a commit adds; 0 of others


class AgesRunner(WindowRunner[DoneWindow[AtAge]]):
    """Runner of a window at several ages, created by `open_window`."""

    def __init__(
        self, test_bed: TestBed, directory: Path, table: TableSystem, row: pa.Table, show: ProgressCallback
    ) -> None:
        super().__init__(test_bed, directory)
        self._table, self._row, self._show = table, row, show
        self._ages = AgesSettings.of(test_bed.spec).numbers
        self._created = table.commits()
        self._commits = 0
        self._sizes: list[SizeAtAge] = []
        self._ended = ""  # why older ages were not reached
        self._wrong: list[str] = []

    def new_window(self) -> DoneWindow[AtAge]:
        return DoneWindow()

    def segments(self, window: DoneWindow[AtAge], until_seconds: float) -> Iterator[None]:
        """Yield once at each age, with the table at this age, until the time limit or an error."""
        del window
        deadline = time.monotonic() + until_seconds
        for age in self._ages:
            began = time.monotonic()
            self._grow(age, deadline, until_seconds)
            if self._ended or self.is_cancelled:
                return
            seconds, found = time.monotonic() - began, self._table.footprint()
            sizes = (found.data_files, found.metadata_files, found.metadata_bytes, found.catalog_bytes)
            self._sizes.append(SizeAtAge(age, round(seconds, 3), *sizes))
            yield

    def _grow(self, age: int, deadline: float, limit_seconds: float) -> None:
        """Make the table `age` commits old, the first by its client; set the reason if that fails or takes too long."""
        while self._commits < age and not self._ended:
            if time.monotonic() > deadline:
                made = f"{self._commits:,} commits were made"
                self._ended = f"{age:,} commits were not reached within {limit_seconds / 60:g} min: {made}"
                return
            if self._commits % SHOWN == 0:
                self._show(f"making the table older: {self._commits:,} of {age:,} commits")
            last = min(age, self._commits + self._table.commits_at_once)
            if self._commits == 0:
                self._try("the first commit", self._commit)
                continue
            make = partial(self._table.make_commits, self._row, range(self._commits, last))
            if self._try(f"commit {last:,}", make):
                self._commits = last

    def _try(self, what: str, do: Callable[[], object]) -> bool:
        """Return whether `do` succeeds; if not, its error is why the window ends."""
        try:
            do()
            return True
        except Exception as error:
            self._ended = f"{what} failed: {type(error).__name__}: {str(error).strip()}"[:LONGEST]
            return False

    def execute(self, window: DoneWindow[AtAge], until_seconds: float) -> None:
        """Do all operations at the table's age, whatever the length of the window: it ends with its work."""
        del until_seconds
        age, opened = self._commits, time.perf_counter_ns() - window.elapsed_ns

        def timed(operation: str) -> None:
            began, ended = self._commit() if operation == COMMIT else self._ask(operation)
            window.done.append(AtAge(age, operation, began - opened, ended - began, int(operation == COMMIT)))

        for operation in [*[PLAN, READ] * READERS, *[COMMIT] * COMMITS_AT_AGE]:
            if self.is_cancelled or not self._try(f"{operation} at {age:,} commits", partial(timed, operation)):
                break
        window.elapsed_ns = time.perf_counter_ns() - opened

    def _commit(self) -> tuple[int, int]:
        row = with_id(self._row, self._commits)
        began = time.perf_counter_ns()
        self._table.write(row)
        ended = time.perf_counter_ns()
        self._commits += 1
        return began, ended

    def _ask(self, operation: str) -> tuple[int, int]:
        """Plan a query, or read all ids, by a new client; return begin and end, without its own start."""
        with self._table.open_reader() as reader:
            assert isinstance(reader, DuckDBReadClient)
            began = time.perf_counter_ns()
            if operation == PLAN:
                reader.plan()
                return began, time.perf_counter_ns()
            ids = reader.ids()
            ended = time.perf_counter_ns()
        oracle = compare(ids, self._commits, "a new client")
        if not oracle.verdict:
            self._wrong.append(f"at {self._commits:,} commits: {difference(oracle, self._commits)}")
        return began, ended

    def finish(self, window: DoneWindow[AtAge]) -> None:
        self.test_bed.servers.check()
        if not window.done:
            raise SystemFailure(self._ended or "the window was abandoned before the first operation")

    def check(self, window: DoneWindow[AtAge], last: bool, show: ProgressCallback) -> CheckResult:
        """Check that the table has each row once, and as many commits as were made, by an independent reader."""
        del window, last
        show("oracle")
        oracle = consult(self._table, self._commits, self._commits, self._created)
        if not oracle.verdict:
            self._wrong.append(difference(oracle, self._commits))
        return CheckResult(replace(oracle, verdict=not self._wrong), self._table.footprint())

    def describe(self, window: DoneWindow[AtAge]) -> RunMetadata:
        del window
        words = Words("; ".join(self._wrong) or "exact")
        record = AgesRecord(words, self._table.commits_at_once, tuple(self._sizes), self._ended)
        return metadata(self.test_bed, self._table, record, self._wrong)


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[WindowRunner[Any]]:
    """Create a table in the folder `name`, with the commits that its part begins with, and yield its runner."""
    del seconds
    settings = settings_of(test_bed.spec)
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        if isinstance(settings, AgesSettings):
            table = new_table(test_bed, directory / TABLE, stack, 1, test_bed.workload.trips_schema)
            yield AgesRunner(test_bed, directory, table, batches(test_bed.workload.trips, 1, 0)(0), show)
            return
        assert isinstance(settings, PruningSettings | EvolutionSettings)
        show("making the table")
        table = new_table(test_bed, directory / TABLE, stack, settings.rows, schema())
        for commit in range(settings.files if isinstance(settings, PruningSettings) else EARLIER):
            table.write(rows_of(commit, settings.rows))
        if isinstance(settings, PruningSettings):
            yield PruningRunner(test_bed, directory, table, settings.files, settings.rows)
            return
        runner = EvolutionRunner(test_bed, directory, table, settings)
        if Capability.WRITERS in table.capabilities:
            runner.bystander = table.client_factory().open()
            stack.callback(runner.bystander.close)
        yield runner
