"""Measurement window: new tables with a first commit in each, and writers, or a front and its clients, that wait.

The base of the windows of all parts with their samples, the window of those that are not disturbed, and the oracle:
each acknowledged row is present once, as read by another client, and no refused row is present. Its findings are a
result of this study and invalidate no run: a system that loses acknowledged rows is shown as such.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidemark.errors import SystemFailure
from tidemark.machine.sampler import Group
from tidemark.measure.describe import system_part
from tidemark.measure.workload import CheckResult, ColumnsWindow, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.paths import private_directory
from tidemark.runs.manifest import together
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import written
from tidemark.studies.ingest.load.crew import GatewayPool, Pool, WorkerPool, gateway_pool, writer_orders
from tidemark.studies.ingest.load.records import ACKED, NOT_TOLD, NUMBERS, OUTCOMES, SENT, UNKNOWN, by_field
from tidemark.studies.ingest.load.writer import ID_BITS, batches
from tidemark.studies.ingest.parts import settings_of
from tidemark.studies.ingest.record import CommitRecord, GatewayRecord, OracleRecord, RowCounts
from tidemark.studies.ingest.settings import OWN, GroupSettings, WritersSettings
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TABLE = "table-1"  # folder of the table, or of the first
MOST_A_SECOND = 500_000  # attempts of one writer that its records have room for; the null system reaches 130,000
MOST_OF_A_CLIENT = 20_000  # requests a second of one client that its records have room for
ROWS_A_FLUSH = 1_000_000  # more than any flush of a front has
COLD_RUN = "run-0"  # includes the first commits: no warm-up before it
OF_TABLE = 0  # writer number of a table's first rows
REFUSED_BATCH, UNKNOWN_BATCH, ACKED_BATCH = 0, 1, 2


@dataclass(slots=True)
class Finding(RowCounts):
    """Findings of the oracle on one table, or on several together."""

    @property
    def is_exact(self) -> bool:
        return not (self.lost or self.doubled or self.risen or self.phantom or self.partial or self.unread)

    def add(self, other: Finding) -> None:
        for name, value in asdict(other).items():
            if name != "unread":
                setattr(self, name, getattr(self, name) + value)
        self.unread = self.unread or other.unread

    @property
    def words(self) -> str:
        """Description of what is wrong; "exact" if nothing is."""
        if self.unread:
            return f"cannot be read: {self.unread}"
        names = ("lost", "doubled", "risen", "phantom")
        found = [f"{getattr(self, name):,} rows {name}" for name in names if getattr(self, name)]
        found += [f"{self.partial:,} batches partial"] if self.partial else []
        return ", ".join(found) or "exact"


def states(records: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[batches]: each batch's final status, which is the best status of its attempts."""
    columns = by_field(records)
    outcome = columns["outcome"]
    attempts = np.full(len(outcome), REFUSED_BATCH)
    attempts[np.isin(outcome, (SENT, NUMBERS[UNKNOWN]))] = UNKNOWN_BATCH
    attempts[outcome == NUMBERS[ACKED]] = ACKED_BATCH
    found = np.full(int(columns["sequence"].max(initial=-1)) + 1, REFUSED_BATCH)
    np.maximum.at(found, columns["sequence"], attempts)
    return found


def counts_of(ids: NDArray[np.int64], writer: int, batches: int, rows: int) -> NDArray[np.int64]:
    """Return int64[batches, rows]: how often each id of a writer, in batches of `rows` rows, is among `ids`."""
    own = (ids & ((1 << ID_BITS) - 1))[(ids >> ID_BITS) == writer]
    counts: NDArray[np.int64] = np.bincount(own[own < rows * batches], minlength=rows * batches)
    return counts.reshape(batches, rows)


def look(ids: pa.ChunkedArray, batches: Mapping[int, NDArray[np.int64]], rows: int) -> Finding:
    """Compare the `ids` of a table with the final status of its writers' `batches`, of `rows` rows each."""
    seen = ids.drop_null().to_numpy()
    finding = Finding(found=len(ids), phantom=ids.null_count)
    writers, places = seen >> ID_BITS, seen & ((1 << ID_BITS) - 1)
    for writer, known in batches.items():
        own = places[writers == writer]
        finding.phantom += int((own >= rows * len(known)).sum())
        counts = counts_of(seen, writer, len(known), rows)
        acked, refused, unknown = (counts[known == state] for state in (ACKED_BATCH, REFUSED_BATCH, UNKNOWN_BATCH))
        finding.expected += acked.size
        finding.lost += int((acked == 0).sum())
        finding.doubled += int((counts > 1).sum())
        finding.risen += int((refused > 0).sum())
        there = (counts > 0).sum(axis=1)
        finding.partial += int(((there > 0) & (there < rows)).sum())
        finding.done += int((unknown > 0).any(axis=1).sum())
        finding.not_done += int((unknown == 0).all(axis=1).sum())
    finding.phantom += int((~np.isin(writers, list(batches))).sum())
    return finding


@dataclass(slots=True)
class IngestWindow(ColumnsWindow):
    """Attempts of one window of length `elapsed_ns`, including those in flight at its end; behind a front, requests."""

    rows_a_batch: int
    writers: int = 0
    said: tuple[str, ...] = ()
    of_front: bool = False

    def take(self, records: Sequence[NDArray[np.int64]], start_ns: int) -> None:
        """Convert the records of writers 1, 2, ... into rows; attempts that began before the window are left out.

        An attempt without an end, of a writer that was killed, has an unknown duration, which is stored as 0.
        """
        made: dict[str, list[NDArray[Any]]] = {}
        for number, noted in enumerate(records, 1):
            inside = noted[noted[:, 0] >= start_ns]
            columns = by_field(inside)
            sequence, begins = columns["sequence"], columns["start_ns"] - start_ns
            first = begins[np.searchsorted(sequence, sequence, side="left")]  # batches follow each other
            columns["start_ns"] = begins
            columns["response_ns"] = begins + columns["elapsed_ns"] - first
            columns["writer"] = np.full(len(inside), number, np.int64)
            for name, values in columns.items():
                made.setdefault(name, []).append(values)
        joined = {name: np.concatenate(parts) for name, parts in made.items()}
        order = np.argsort(joined["start_ns"], kind="stable")
        self.columns = {name: values[order] for name, values in joined.items()}
        self.columns["outcome"] = np.array(OUTCOMES, object)[self.columns["outcome"]]
        self.columns["rows"] = np.where(self.columns["outcome"] == ACKED, self.rows_a_batch, 0)
        self.columns["commit"] = np.full(self.operations, NOT_TOLD, np.int64)
        if self.of_front:  # its answers name the commit that holds a request
            self.columns["commit"], self.columns["commits"] = self.columns["commits"], self.columns["commit"]
        self.writers = len(records)

    def budget(self) -> dict[str, int]:
        """Return the average writer's time (ns) inside acknowledged calls, inside others, and the rest with waits."""
        starts, ends = self.columns["start_ns"], self.columns["start_ns"] + self.columns["elapsed_ns"]
        inside = np.minimum(ends, self.elapsed_ns) - np.minimum(starts, self.elapsed_ns)
        acked = self.columns["outcome"] == ACKED
        parts = {"acked": int(inside[acked].sum()), "not acked": int(inside[~acked].sum())}
        parts = {name: spent // self.writers for name, spent in parts.items()}
        return {**parts, "rest": self.elapsed_ns - sum(parts.values())}


class WriteRunner[Crew: Pool](WindowRunner[IngestWindow]):
    """Window on one table, or one per writer, and the check of their contents. A subclass defines the timed part."""

    def __init__(self, test_bed: TestBed, directory: Path, tables: Sequence[TableSystem], crew: Crew) -> None:
        super().__init__(test_bed, directory)
        self._settings = settings_of(test_bed.spec)
        self._tables, self._table, self._crew = tables, tables[0], crew
        self._started: int | None = None
        self._records: list[NDArray[np.int64]] = []
        self._finding = Finding()
        self._referenced = 0

    def new_window(self) -> IngestWindow:
        return IngestWindow(self._settings.rows, of_front=self._settings.has_front)

    def groups(self) -> Mapping[str, Group]:
        return self._crew.groups()

    def has_ended(self) -> bool:
        return self._crew.has_failed()

    def finish(self, window: IngestWindow) -> None:
        self.test_bed.servers.check()
        if self._started is None:
            raise SystemFailure("the window was abandoned: a writer's process ended")
        self._records = self._crew.records()
        window.take(self._records, self._started)
        window.said = self._crew.said
        if window.rows == 0:
            raise SystemFailure(f"not one commit was acknowledged; the first errors: {'; '.join(window.said)}")

    def check(self, window: IngestWindow, _last: bool, show: ProgressCallback) -> CheckResult:
        show("oracle")
        reader = self._table.reader
        footprint = together([table.footprint() for table in self._tables])
        if Capability.READ_BACK not in self._table.capabilities:
            return CheckResult(Oracle.not_applicable(window.rows, reader), footprint)
        began = time.perf_counter()
        known = {number: states(records) for number, records in enumerate(self._records, 1)}
        finding = self._finding = self._look(known)
        seconds = time.perf_counter() - began
        self._referenced = sum(len(table.data_files()) for table in self._tables)
        unexpected = finding.risen + finding.phantom
        counts = (finding.expected, finding.found, finding.lost, finding.doubled, unexpected)
        return CheckResult(Oracle(finding.is_exact, True, *counts, reader, seconds), footprint)

    def _look(self, known: dict[int, NDArray[np.int64]]) -> Finding:
        """Check each table separately, with the writers that it had: all of them, or one."""
        whole, first = Finding(), np.array([ACKED_BATCH])
        for number, table in enumerate(self._tables, 1):
            own = known if len(self._tables) == 1 else {number: known[number]}
            try:
                ids = table.ids()
            except Exception as error:
                whole.add(Finding(unread=f"{type(error).__name__}: {error}"))
                continue
            whole.add(look(ids, {OF_TABLE: first, **own}, self._settings.rows))
        return whole

    @property
    def acked(self) -> int:
        """Number of acknowledged batches, uncounted ones included."""
        return sum(int((states(records) == ACKED_BATCH).sum()) for records in self._records)

    def describe(self, window: IngestWindow) -> RunMetadata:
        refused = [table.refused() for table in self._tables]
        commits = CommitRecord(
            commits=self.acked,
            refused=None if None in refused else sum(count for count in refused if count is not None),
            referenced_files=self._referenced,
            first_errors=window.said,
        )
        oracle = OracleRecord(**asdict(self._finding), words=self._finding.words)
        wrong = f"the table does not hold what was acknowledged: {oracle.words}"
        marks = () if self._finding.is_exact else (wrong,)
        return extended(metadata(self.test_bed, self._table, oracle, marks), commits)


class IngestRunner[Crew: Pool](WriteRunner[Crew]):
    """Window of undisturbed writers or clients; made by `open_window`."""

    def __init__(
        self, test_bed: TestBed, directory: Path, tables: Sequence[TableSystem], crew: Crew, warms: bool
    ) -> None:
        super().__init__(test_bed, directory, tables, crew)
        self._warms = warms

    def segments(self, window: IngestWindow, until_seconds: float) -> Iterator[None]:
        """Yield once. Before a hot window, have all writers write their warm-up batches together."""
        if self._warms:
            self._crew.warm()
        yield from super().segments(window, until_seconds)

    def execute(self, window: IngestWindow, until_seconds: float) -> None:
        self._started = self._crew.write(until_seconds)
        window.elapsed_ns = round(until_seconds * 1e9)

    def cancel(self) -> None:
        self._crew.cancel()

    def describe(self, window: IngestWindow) -> RunMetadata:
        """Describe the window as for writers, except that a front's commits are not the clients' requests."""
        made = super().describe(window)
        if not isinstance(self._crew, GatewayPool):
            return made
        reply = self._crew.told
        return extended(made, GatewayRecord(requests=self.acked, commits=reply["commits"], busy=reply["busy"]))


def extended(made: RunMetadata, *records: DataclassInstance) -> RunMetadata:
    """Return `made` with the fields of `records` among its results."""
    found = dict(made.found)
    for record in records:
        found |= written(record)
    return replace(made, found=found)


def versions() -> dict[str, str]:
    """Return the versions of the libraries that the harness itself uses."""
    return {"PyArrow": pa.__version__, "Python": platform.python_version()}


def metadata(
    test_bed: TestBed,
    table: TableSystem,
    record: DataclassInstance,
    marks: Sequence[str],
    schema: pa.Schema | None = None,
) -> RunMetadata:
    """Return the metadata of a window on `table`, whose rows are trips if no `schema` is given."""
    system = system_part(test_bed.variant, table, test_bed.workload.trips_schema if schema is None else schema)
    return RunMetadata(system, versions(), tuple(marks), written(record))


def new_table(test_bed: TestBed, folder: Path, stack: ExitStack, rows_per_write: int, schema: pa.Schema) -> TableSystem:
    """Return an empty table in `folder`; `stack` closes it."""
    table = test_bed.variant.open_as(TableSystem, test_bed.context(private_directory(folder), rows_per_write))
    stack.callback(table.close)
    table.create(schema)
    return table


def fresh_table(test_bed: TestBed, folder: Path, stack: ExitStack, rows_per_write: int) -> TableSystem:
    """Return a table in `folder` with a first commit, of as many rows as a batch; `stack` closes it."""
    table = new_table(test_bed, folder, stack, rows_per_write, test_bed.workload.trips_schema)
    # Some clients do not check for a conflict when they make the first commit to an empty table.
    table.write(batches(test_bed.workload.trips, settings_of(test_bed.spec).rows, OF_TABLE)(0))
    return table


@contextmanager
def opened_table(
    test_bed: TestBed, name: str, rows_per_write: int, show: ProgressCallback
) -> Iterator[tuple[Path, TableSystem, ExitStack]]:
    """Yield the folder `name`, a table in it with a first commit, and a stack for what else the window needs."""
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        show("making the table")
        yield directory, fresh_table(test_bed, directory / TABLE, stack, rows_per_write), stack


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[IngestRunner[Any]]:
    """Yield a runner: one or several tables in the folder `name`, and waiting writers, or a front and its clients."""
    settings, warms = settings_of(test_bed.spec), name != COLD_RUN
    if isinstance(settings, GroupSettings):
        with opened_table(test_bed, name, ROWS_A_FLUSH, show) as (directory, table, stack):
            show("starting the front and its clients")
            most = math.ceil(seconds * MOST_OF_A_CLIENT) + settings.uncounted
            front = gateway_pool(test_bed, table, settings, settings.writers, most, directory)
            yield IngestRunner(test_bed, directory, [table], stack.enter_context(front), warms)
        return
    assert isinstance(settings, WritersSettings)
    with opened_table(test_bed, name, settings.rows, show) as (directory, first, stack):
        others = range(2, 1 + (settings.writers if settings.tables == OWN else 1))
        more = [fresh_table(test_bed, directory / f"table-{number}", stack, settings.rows) for number in others]
        show("starting the writers")
        most = math.ceil(seconds * MOST_A_SECOND) + settings.uncounted * settings.tries
        order = writer_orders(test_bed, [first, *more], settings, directory, most)
        writers = stack.enter_context(WorkerPool(order, settings.writers, directory))
        yield IngestRunner(test_bed, directory, [first, *more], writers, warms)
