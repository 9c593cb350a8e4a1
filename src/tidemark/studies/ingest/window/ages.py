"""Window of a table at several ages: at each, readers open, plan and read it, and its client commits.

The table is made older between the parts of the window, by its client or by the format's own files
(`TableSystem.make_commits`). All commits, timed or not, are of one row, and the rows differ in their ids alone.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from tidemark.errors import SystemFailure
from tidemark.measure.describe import system_part
from tidemark.measure.oracle import compare, consult, difference
from tidemark.measure.workload import CheckResult, DoneWindow, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.paths import private_directory
from tidemark.runs.serde import written
from tidemark.studies.ingest.load.writer import batches
from tidemark.studies.ingest.record import AgesRecord, SizeAtAge, Words
from tidemark.studies.ingest.settings import COMMITS_AT_AGE, AgesSettings
from tidemark.systems.duckdb_client import DuckDBReadClient
from tidemark.systems.tables import TableSystem, with_id

PLAN, READ, COMMIT = "plan", "read", "commit"
READERS = 3  # that plan, and that read, at each age
LONGEST = 300  # characters of an error that are kept
SHOWN = 500  # commits between two messages


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
        return RunMetadata(
            system=system_part(self.test_bed.variant, self._table, self.test_bed.workload.trips_schema),
            versions={"PyArrow": pa.__version__, "Python": platform.python_version()},
            marks=tuple(self._wrong),
            found=written(AgesRecord(words, self._table.commits_at_once, tuple(self._sizes), self._ended)),
        )


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[AgesRunner]:
    """Create an empty table in the folder `name`, and yield its runner."""
    del seconds
    with test_bed.folder(name) as directory, ExitStack() as stack:
        context = test_bed.context(private_directory(directory / "table-1"), 1)
        table = test_bed.variant.open_as(TableSystem, context)
        stack.callback(table.close)
        table.create(test_bed.workload.trips_schema)
        yield AgesRunner(test_bed, directory, table, batches(test_bed.workload.trips, 1, 0)(0), show)
