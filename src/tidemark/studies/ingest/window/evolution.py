"""Window of columns added to a table with rows: each change is timed, and rows from before and after are read."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

import pyarrow as pa

from tidemark.errors import SystemFailure
from tidemark.measure.describe import system_part
from tidemark.measure.oracle import compare, difference
from tidemark.measure.workload import CheckResult, DoneWindow, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.runs.serde import written
from tidemark.studies.ingest.record import EvolutionRecord, Words
from tidemark.studies.ingest.settings import EvolutionSettings
from tidemark.studies.ingest.window.pruning import table_of
from tidemark.systems.base import Capability
from tidemark.systems.pruning_dataset import rows_of, schema
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import TableWriter

EARLIER = 10  # commits before the first change, a data file each
ACCEPTED = "accepted"


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
        return RunMetadata(
            system=system_part(self.test_bed.variant, self._table, schema()),
            versions={"PyArrow": pa.__version__, "Python": platform.python_version()},
            marks=() if self._words == "exact" else (self._words,),
            found=written(EvolutionRecord(Words(self._words), len(self._table.data_files()), rewritten, self._other)),
        )


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[EvolutionRunner]:
    """Create the table in the folder `name`, with `EARLIER` commits, and yield its runner."""
    del seconds
    settings = EvolutionSettings.of(test_bed.spec)
    with table_of(test_bed, name, EARLIER, settings.rows, show) as (directory, table), ExitStack() as stack:
        runner = EvolutionRunner(test_bed, directory, table, settings)
        if Capability.WRITERS in table.capabilities:
            runner.bystander = table.client_factory().open()
            stack.callback(runner.bystander.close)
        yield runner
