"""Measurement window that ends with a power cut: a table and its servers on a dedicated disk, and its cost."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import SystemFailure
from tidemark.machine.power import WITNESS_S, Disk, stop
from tidemark.measure.describe import system_part
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed
from tidemark.paths import private_directory
from tidemark.runs.manifest import Footprint
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import written
from tidemark.services.base import files_below
from tidemark.studies.ingest.load.crew import WorkerPool, surviving
from tidemark.studies.ingest.load.records import ACKED, NUMBERS, by_field
from tidemark.studies.ingest.load.writer import ID_BITS
from tidemark.studies.ingest.parts import CutSettings
from tidemark.studies.ingest.record import FLUSHED, Cost, PowerCut, PowerCutRecord, in_seconds
from tidemark.studies.ingest.window.fault_injection import BACK_S, LOOK_S, Look
from tidemark.studies.ingest.window.runner import OF_TABLE, TABLE, IngestWindow, WriteRunner, fresh_table, versions
from tidemark.studies.ingest.window.unsynced_data import commits_at_risk
from tidemark.systems.tables import TableSystem, count_and_bytes

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from tidemark.runs.manifest import SystemPart

EARLIEST = 0.5  # earliest moment of the cut, as a share of the window
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Remains:
    """Contents of the data files, each read separately: int64 ids, and the counts of all and of unreadable files."""

    ids: Ints
    files: int
    unreadable: int

    @classmethod
    def below(cls, folder: Path) -> Remains:
        return cls.of(folder.rglob("*.parquet"))

    @classmethod
    def of(cls, paths: Iterable[PurePath], file_system: FileSystem | None = None) -> Remains:
        """Return the contents of the data files among `paths`, in `file_system` or on the local disk."""
        import pyarrow.parquet as pq

        parts, files, unreadable = [np.zeros(0, np.int64)], 0, 0
        for path in sorted(each for each in paths if each.suffix == ".parquet"):
            files += 1
            try:
                found = pq.read_table(str(path), columns=["id"], filesystem=file_system)
                parts.append(found.column(0).drop_null().to_numpy())
            except Exception:  # any error that an empty or truncated file causes
                unreadable += 1
        return cls(np.concatenate(parts), files, unreadable)


def cost(
    records: Sequence[Ints], cut_ns: int, synced: int, rows: int, seen: Ints | None, said: str, remains: Remains
) -> Cost:
    """Return the cost by the `records` of writers 1, 2, ...; the table began with `synced` batches of `rows` rows.

    `seen` are the ids that another client reads after the cut; None if it cannot, for the reason in `said`.
    """
    there = np.zeros(0, np.int64) if seen is None else seen
    acked, ended, doubt = [_ids(OF_TABLE, np.zeros(0, np.int64), rows)], [np.zeros(0, np.int64)], []
    for number, noted in enumerate(records, 1):
        columns = by_field(noted)
        chosen = columns["outcome"] == NUMBERS[ACKED]
        acked.append(_ids(number, columns["sequence"][chosen], rows))
        ended.append((columns["start_ns"] + columns["elapsed_ns"])[chosen])
        open_ones = np.setdiff1d(columns["sequence"], columns["sequence"][chosen])
        doubt.append(_ids(number, open_ones, rows))
    wanted, moments, unknown = np.concatenate(acked), np.concatenate(ended), np.concatenate(doubt)
    missing = ~np.isin(wanted, there)
    first = _ids(OF_TABLE, np.arange(synced), rows)
    counts = np.unique(there, return_counts=True)[1]
    known = [np.isin(each, there).sum(axis=1) for each in (wanted, first, unknown)]
    gone = moments[missing.any(axis=1)]
    lost, synced_lost, doubled = int(missing.sum()), int((~np.isin(first, there)).sum()), int((counts > 1).sum())
    partial = sum(int(((found > 0) & (found < rows)).sum()) for found in known)
    return Cost(
        acked=wanted.size,
        lost=lost,
        oldest_lost_s=in_seconds(cut_ns - int(gone.min())) if len(gone) else None,
        synced=first.size,
        synced_lost=synced_lost,
        doubled=doubled,
        partial=partial,
        unknown=len(unknown),
        done=int((known[2] > 0).sum()),
        left_in_files=int(np.isin(wanted[missing], remains.ids).sum()),
        said=said,
        holds=not (lost or synced_lost or doubled or partial or said),
    )


def _ids(number: int, batches: Ints, rows: int) -> Ints:
    """Return int64[batches, rows]: the ids of a writer's batches."""
    return (number << ID_BITS) + rows * batches[:, None] + np.arange(rows, dtype=np.int64)


class PowerFailureRunner(WriteRunner[WorkerPool]):
    """Window on one table that ends with a power cut; made by `open_window`."""

    _cut: PowerCut

    def __init__(
        self, test_bed: TestBed, directory: Path, table: TableSystem, crew: WorkerPool, disk: Disk, seen: Seen
    ) -> None:
        super().__init__(test_bed, directory, [table], crew)
        self._disk, self._seen = disk, seen
        spec = test_bed.spec
        self._share = random.Random(f"{spec.seed} {spec.repeat} {spec.label} cut").uniform(EARLIEST, 1)
        self._cancelled = threading.Event()
        self._cut_ns = self._copies = 0

    def execute(self, window: IngestWindow, until_seconds: float) -> None:
        """Let writers write, stop all processes at once, copy the contents of the disk, then kill the processes."""
        start = self._crew.go()
        unwatched = max(0.0, self._share * until_seconds - WITNESS_S)
        if self._cancelled.wait(unwatched):
            return
        self._disk.leave_witness()
        if self._cancelled.wait(self._share * until_seconds - unwatched) or not self._all_have_written(start):
            return
        stop(lambda: [*self._crew.pids, *self.test_bed.servers.pids()])
        self._cut_ns = time.perf_counter_ns()
        self._copies = self._disk.cut()
        for number in self._crew.numbers:
            self._crew.kill(number)
        for server in reversed(list(self.test_bed.servers.by_class.values())):
            server.kill()
        window.elapsed_ns = self._cut_ns - start
        self._started = start

    def _all_have_written(self, start_ns: int) -> bool:
        """Return True once each writer has an acknowledged commit, False if abandoned; SystemFailure after BACK_S."""
        deadline = time.monotonic() + BACK_S
        while not all(self._crew.acked_since(number, start_ns) for number in self._crew.numbers):
            if time.monotonic() > deadline:
                raise SystemFailure(f"not every writer had a commit acknowledged {BACK_S:g} s after the window's half")
            if self._cancelled.wait(LOOK_S):
                return False
        return True

    def cancel(self) -> None:
        self._cancelled.set()

    def finish(self, window: IngestWindow) -> None:
        """Restore the disk from the copy, start the servers on it, and reconnect."""
        if self._started is not None:
            self._disk.come_back()
            self.test_bed.servers.start()
            self._table.reconnect()
        super().finish(window)

    def check(self, window: IngestWindow, _last: bool, show: ProgressCallback) -> CheckResult:
        show("oracle")
        began = time.perf_counter()
        found, rows = Look.at(self._table), self._settings.rows
        remains = Remains.below(self.directory / TABLE)
        paid = cost(self._records, self._cut_ns, self._seen.batches, rows, found.ids, found.said, remains)
        self._cut = PowerCut(
            **asdict(paid),
            moment_s=in_seconds(window.elapsed_ns),
            copies=self._copies,
            data_files=remains.files,
            unreadable_files=remains.unreadable,
            at_acknowledgement=self._seen.at_risk,
        )
        return CheckResult(self._oracle(paid, found, time.perf_counter() - began), self._footprint())

    def _footprint(self) -> Footprint:
        """Return the footprint by the files alone, since the table may be unreadable."""
        files = set(files_below(self.directory / TABLE))
        data = {path for path in files if path.suffix == ".parquet"}
        return Footprint(*count_and_bytes(data), *count_and_bytes(files - data), None, "the power was cut under it")

    def _oracle(self, paid: Cost, found: Look, seconds: float) -> Oracle:
        there = 0 if found.ids is None else len(found.ids)
        expected, lost = paid.acked + paid.synced, paid.lost + paid.synced_lost
        return Oracle(paid.holds, True, expected, there, lost, paid.doubled, 0, self._table.reader, seconds)

    def describe(self, window: IngestWindow) -> RunMetadata:
        found = written(PowerCutRecord(commits=self.acked, cut=self._cut, first_errors=window.said))
        marks = ("its power was cut", *([FLUSHED] if self._disk.was_flushed() else []))
        return RunMetadata(system=self._seen.system, versions=versions(), marks=marks, found=found)


class Seen:
    """State before the window: table description, and which commit data is durable when `write` returns."""

    def __init__(self, test_bed: TestBed, table: TableSystem, folder: Path) -> None:
        self.system: SystemPart = system_part(test_bed.variant, table, test_bed.workload.trips_schema)
        self.at_risk, commits = commits_at_risk(test_bed, table, folder, 0.0)
        self.batches = 1 + commits  # in the table


@contextmanager
def open_window(test_bed: TestBed, name: str, seconds: float, show: ProgressCallback) -> Iterator[PowerFailureRunner]:
    """Yield a runner: a table in the folder `name`, synced to disk, and writers whose records lie outside that disk."""
    settings = CutSettings.of(test_bed.spec)
    directory = private_directory(test_bed.work / name)
    disk = test_bed.session
    assert disk is not None, "the series was placed on no separate disk"
    ledger = private_directory(disk.beside / name)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        show("making the table")
        table = fresh_table(test_bed, directory / TABLE, stack, settings.rows)
        seen = Seen(test_bed, table, directory / TABLE)
        show("starting the writers")
        crew = surviving(test_bed, table, ledger, settings, seconds + BACK_S, stack)
        disk.sync()
        yield PowerFailureRunner(test_bed, directory, table, crew, disk, seen)
