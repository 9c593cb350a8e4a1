"""Tests of a writer's loop and records with planted clients, and of its processes with a real table on the disk."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.errors import SystemFailure
from tidemark.studies.ingest.load.crew import WorkerPool, Writer
from tidemark.studies.ingest.load.records import (
    ACKED,
    CONFLICT,
    FAILED,
    FIELDS,
    GIVEN_UP,
    NUMBERS,
    SENT,
    UNKNOWN,
    WIDTH,
    Records,
)
from tidemark.studies.ingest.load.writer import ID_BITS, WorkerConfig, WriterLoop, batches
from tidemark.studies.ingest.window.runner import IngestWindow, look, states
from tidemark.systems.base import Context
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.null import NullClientFactory
from tidemark.systems.writers import ClientFactory, CommitStatus, TableWriter

ROWS = 5


class Planted(TableWriter):
    """Client that ends each write as given: None acknowledges it, a status does not."""

    def __init__(self, ends: Iterator[CommitStatus | None]) -> None:
        self.written: list[pa.Table] = []
        self.refreshed = 0
        self._ends = ends

    def write(self, rows: pa.Table) -> None:
        end = next(self._ends)
        if end is not None:
            raise ValueError(end)
        self.written.append(rows)

    def commit_status(self, error: Exception) -> CommitStatus:
        return CommitStatus(error.args[0])

    def refresh(self) -> None:
        self.refreshed += 1


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    path = tmp_path / "trips.parquet"
    pq.write_table(pa.table({"id": pa.array(range(7), pa.int64()), "fare": [float(n) for n in range(7)]}), path)
    return path


def order(trips: Path, client_factory: ClientFactory, number: int = 1, **changed: int) -> WorkerConfig:
    sizes = {"rows": ROWS, "tries": 3, "uncounted": 2, "seed": 1, "most": 1000, **changed}
    return WorkerConfig(
        client_factory=client_factory, number=number, trips=trips, records=trips.with_name(f"records-{number}"), **sizes
    )


def work(trips: Path, writer: TableWriter, count: int, **changed: int) -> np.ndarray:
    """Write `count` batches and return the records of the writer, read from the file that it leaves."""
    given = order(trips, NullClientFactory(), **changed)
    WriterLoop(given, writer, Records(given.records, given.most)).count(count)
    whole = np.fromfile(given.records, np.int64).reshape(-1, WIDTH)
    return whole[1 : whole[0, 0] + 1]


def told(records: np.ndarray) -> list[tuple[int, int, int]]:
    """Return the sequence, attempt number and outcome of each record."""
    places = [FIELDS.index(name) for name in ("sequence", "attempt", "outcome")]
    return [tuple(map(int, record[places])) for record in records]


def test_every_row_has_a_unique_id(trips: Path) -> None:
    made = [batches(trips, ROWS, writer)(sequence) for writer in (1, 2) for sequence in range(100)]
    seen = [number for rows in made for number in rows.column("id").to_pylist()]
    assert len(set(seen)) == len(seen) == 2 * 100 * ROWS
    assert seen[0] == 1 << ID_BITS and made[0].schema == pq.read_schema(trips)
    assert batches(trips, 20, 1)(0).num_rows == 20  # more than there are trips


def test_conflict_is_retried_and_finally_given_up(trips: Path) -> None:
    conflict = CommitStatus.CONFLICT
    planted = Planted(iter([None, conflict, None, conflict, conflict, conflict, None]))
    noted = told(work(trips, planted, 4))
    acked, refused, given_up = NUMBERS[ACKED], NUMBERS[CONFLICT], NUMBERS[GIVEN_UP]
    third = [(2, 1, refused), (2, 2, refused), (2, 3, given_up)]
    assert noted == [(0, 1, acked), (1, 1, refused), (1, 2, acked), *third, (3, 1, acked)]
    assert planted.refreshed == 4 and len(planted.written) == 3


def test_failed_and_unknown_writes_are_not_retried(trips: Path) -> None:
    noted = told(work(trips, Planted(iter([CommitStatus.FAILED, CommitStatus.UNKNOWN, None])), 3))
    assert noted == [(0, 1, NUMBERS[FAILED]), (1, 1, NUMBERS[UNKNOWN]), (2, 1, NUMBERS[ACKED])]


def test_interrupted_call_has_an_unknown_outcome(trips: Path) -> None:
    class Killed(Planted):
        def write(self, rows: pa.Table) -> None:
            if len(self.written) == 2:
                raise KeyboardInterrupt
            super().write(rows)

    with pytest.raises(KeyboardInterrupt):
        work(trips, Killed(iter([None] * 5)), 5)
    whole = np.fromfile(trips.with_name("records-1"), np.int64).reshape(-1, WIDTH)
    noted = whole[1 : whole[0, 0] + 1]
    assert told(noted)[-1] == (2, 1, SENT)
    assert states(noted).tolist() == [2, 2, 1]


def test_window_counts_from_its_opening_and_a_commit_from_its_first_attempt() -> None:
    acked, refused = NUMBERS[ACKED], NUMBERS[CONFLICT]
    before = (100, 10, 0, 1, acked, -1)
    one = np.array([before, (1000, 20, 1, 1, refused, -1), (1050, 30, 1, 2, acked, 2), (1090, 5, 2, 1, acked, 1)])
    two = np.array([(1010, 100, 0, 1, acked, -1)])
    window = IngestWindow(ROWS, elapsed_ns=100)
    window.take([one, two], 1000)
    columns = {name: values.tolist() for name, values in window.columns.items()}
    assert columns["start_ns"] == [0, 10, 50, 90]
    assert columns["writer"] == [1, 2, 1, 1]
    assert columns["response_ns"] == [20, 100, 80, 5]
    assert columns["outcome"] == [CONFLICT, ACKED, ACKED, ACKED]
    assert columns["rows"] == [0, ROWS, ROWS, ROWS] and window.rows == 3 * ROWS
    budget = window.budget()
    assert budget == {"acked": (30 + 5 + 90) // 2, "not acked": 10, "rest": 100 - 62 - 10}


@pytest.fixture
def table(tmp_path: Path, trips: Path) -> Iterator[DeltaRs]:
    folder = tmp_path / "table"
    folder.mkdir()
    system = DeltaRs(Context(folder, {}, ROWS), DeltaRs.Options())
    system.create(pq.read_schema(trips))
    yield system
    system.close()


class Lossy(TableWriter):
    """Client that acknowledges every third write without a commit, like one that acknowledges early and then dies."""

    def __init__(self, inner: TableWriter) -> None:
        self._inner, self._count = inner, 0

    def write(self, rows: pa.Table) -> None:
        self._count += 1
        if self._count % 3:
            self._inner.write(rows)

    def commit_status(self, error: Exception) -> CommitStatus:
        return self._inner.commit_status(error)


@pytest.mark.parametrize("lossy", [False, True])
def test_writer_that_acknowledges_without_a_commit_is_detected(lossy: bool, table: DeltaRs, trips: Path) -> None:
    inner = table.client_factory().open()
    noted = work(trips, Lossy(inner) if lossy else inner, 9)
    finding = look(table.ids(), {1: states(noted)}, ROWS)
    assert finding.expected == 9 * ROWS
    assert finding.words == ("15 rows lost" if lossy else "exact")


def test_processes_begin_together_and_their_rows_are_stored(table: DeltaRs, trips: Path) -> None:
    sizes = {"tries": 50, "most": 100_000}
    with WorkerPool(lambda n: order(trips, table.client_factory(), n, **sizes), 2, trips.parent) as crew:
        assert len(crew.pids) == 2 and not crew.has_failed()
        crew.warm()
        start = crew.write(0.5)
        assert start is not None
        noted = crew.records()
    window = IngestWindow(ROWS, elapsed_ns=500_000_000)
    window.take(noted, start)
    first = {writer: window.columns["start_ns"][window.columns["writer"] == writer].min() for writer in (1, 2)}
    assert all(0 <= began < 500_000_000 for began in first.values()), first
    finding = look(table.ids(), {number: states(each) for number, each in enumerate(noted, 1)}, ROWS)
    assert finding.is_exact and finding.expected == window.rows + 2 * 2 * ROWS


def test_killed_writer_is_detected_and_its_records_remain(trips: Path) -> None:
    with WorkerPool(lambda n: order(trips, NullClientFactory(), n, most=5_000_000), 2, trips.parent) as crew:
        crew.warm()
        for member in crew._members:
            member.tell("go", 0, time.perf_counter_ns() + 60_000_000_000)
        warm, deadline = len(crew._members[0].records()), time.monotonic() + 20
        while len(crew._members[0].records()) == warm and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(crew.pids[0], signal.SIGKILL)
        with pytest.raises(SystemFailure, match=r"writer 1 ended on its own"):
            crew._members[0].heard("done")
        crew._members[0].process.wait(5)  # its pipe closes shortly before it ends
        assert crew.has_failed()
        assert len(crew._members[0].records()) > warm


def test_program_that_cannot_start_reports_the_reason(trips: Path) -> None:
    member = Writer(order(trips.with_name("gone"), NullClientFactory()), trips.parent)
    try:
        with pytest.raises(SystemFailure, match="FileNotFoundError"):
            member.heard("ready")
    finally:
        member.end()
