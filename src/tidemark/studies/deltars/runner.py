"""Runner of a window: a client process, a location for its tables, and a reader that compares each with its source."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.errors import SystemFailure
from tidemark.machine.processes import confine
from tidemark.machine.sampler import Group
from tidemark.measure.describe import system_part
from tidemark.measure.workload import CheckResult, ProgressCallback, RunMetadata, TestBed, WindowRunner
from tidemark.runs.proofs import Oracle
from tidemark.runs.serde import pairs, written
from tidemark.services.hdfs import Closes, NameNode
from tidemark.software.tools import tool_versions
from tidemark.studies.deltars import data
from tidemark.studies.deltars.oracle import Comparer, Difference
from tidemark.studies.deltars.samples import READ, WRITE, DataRecord, DeltarsSettings, Done, TablesRecord, TablesWindow
from tidemark.systems import duckdb_client
from tidemark.systems.base import Capability
from tidemark.systems.bulk.base import BulkTable
from tidemark.systems.bulk.process import Client

CLIENT = "client"  # group of its processes


class TableRunner(WindowRunner[TablesWindow]):
    """Runner of the window of one client; `open_window` creates it."""

    def __init__(
        self, test_bed: TestBed, directory: Path, system: BulkTable, comparer: Comparer, show: ProgressCallback
    ) -> None:
        super().__init__(test_bed, directory)
        self._settings = DeltarsSettings.of(test_bed.spec)
        self._system, self._comparer, self._show = system, comparer, show
        self._source = data.source_of(test_bed.workload.workspace, self._settings.data)
        self._data = data.made(test_bed.workload.workspace, self._settings.data)
        self._keys = data.keys_of(self._settings.data)
        self._client: Client | None = None
        self._kept = directory / "read.parquet"  # what the client read in the last repetition
        self._differences: list[Difference] = []
        self._wrong: list[str] = []
        self._departures: list[str] = []
        self._versions: dict[str, str] = {}
        self._placed: dict[str, list[int]] = {}

    def new_window(self) -> TablesWindow:
        return TablesWindow()

    def segments(self, _window: TablesWindow, _until_seconds: float) -> Iterator[None]:
        """Yield once, with a client whose libraries are loaded and that has written nothing."""
        mine = sorted(os.sched_getaffinity(0))
        cores = self._settings.cores
        # Servers get the processors that the client does not have; if it has all of them, they share.
        self._placed = {"client": mine[:cores], "servers": mine[cores:] or mine}
        confine(self.test_bed.servers.pids(), self._placed["servers"])
        self._client = client = Client(self._system, self._placed["client"], self.directory)
        with client:
            self._versions = client.versions
            yield
        self.test_bed.servers.check()

    def execute(self, window: TablesWindow, _until_seconds: float) -> None:
        began = time.perf_counter_ns()
        last = self._settings.repetitions - 1
        for repetition in range(last + 1):
            name = f"table-{repetition}"
            self._show(f"repetition {repetition + 1} of {last + 1}")
            self._repeat(window, repetition, name, began, self._kept if repetition == last else None)
            if self.is_cancelled:
                break
            checked = time.perf_counter_ns()
            if Capability.READ_BACK in self._system.capabilities:
                self._hold(name, window.done[-1], repetition in (0, last))
            if repetition != last:
                self._system.remove(name)
            window.checked_ns += time.perf_counter_ns() - checked
        window.elapsed_ns = time.perf_counter_ns() - began

    def _repeat(self, window: TablesWindow, repetition: int, name: str, began: int, keep: Path | None) -> None:
        client, timeout_s = self._client, self._settings.timeout_seconds
        assert client is not None
        address, name_node = self._system.address(name), self.test_bed.servers.find(NameNode)
        self._system.make_room(name)
        for operation in (WRITE, READ) if self._system.reads else (WRITE,):
            since = name_node.said_bytes() if name_node else 0
            try:
                if operation == WRITE:
                    reply = client.write(self._source, self._keys, address, timeout_s)
                else:
                    reply = client.read(address, keep, timeout_s)
            except SystemFailure:
                if self.is_cancelled:
                    return
                raise
            reply["start_ns"] -= began
            steps = {f"{step}_ns": took for step, took in reply.pop("steps", {}).items()}
            closes = name_node.closes(since) if name_node else Closes(0, 0)
            window.done.append(Done(operation, repetition, closed=closes.closed, refused=closes.refused,
                                    **reply, **steps))  # fmt: skip

    def _hold(self, name: str, read: Done, whole: bool) -> None:
        """Compare the table, and the number of rows that the client read of it, with the source."""
        system, rows = self._system, self._comparer.rows
        if not whole and rows > self._settings.checked_rows:
            found = system.counted(name)
            difference = Difference(rows, found, max(0, rows - found), max(0, found - rows), 0)
        else:
            beside = self.directory / "fetched"
            relation = system.relation(system.fetched(name, beside))
            difference = self._comparer.compare(relation)
            self._departures = self._comparer.departures(relation)
            shutil.rmtree(beside, ignore_errors=True)
        self._differences.append(difference)
        if not difference.holds:
            self._wrong.append(f"{name}: {difference.words}")
        if system.reads and read.rows != rows:
            self._wrong.append(f"{name}: the client read {read.rows:,} rows of {rows:,}")

    def groups(self) -> Mapping[str, Group]:
        return {CLIENT: Group(lambda: [self._client.pid] if self._client else [])}

    def has_ended(self) -> bool:
        return self._client is not None and not self._client.is_alive()

    def cancel(self) -> None:
        super().cancel()
        if self._client is not None:
            self._client.kill()

    def finish(self, _window: TablesWindow) -> None:
        self._client = None
        self.test_bed.servers.check()
        if self.is_cancelled:
            raise SystemFailure("the window was abandoned: a process that it needs ended")

    def check(self, window: TablesWindow, _last: bool, show: ProgressCallback) -> CheckResult:
        """Compare the client's last read with the source, value by value; the tables were checked one by one before."""
        show("oracle")
        began = time.perf_counter()
        footprint = self._system.footprint(f"table-{self._settings.repetitions - 1}")
        if Capability.READ_BACK not in self._system.capabilities:
            return CheckResult(Oracle.not_applicable(0, self._system.reader), footprint)
        found = list(self._differences)
        if self._system.reads:
            read = self._comparer.compare(f"read_parquet({duckdb_client.literal(self._kept)})")
            found.append(read)
            if not read.holds:
                self._wrong.append(f"what the client read: {read.words}")
        seconds = window.checked_ns / 1e9 + time.perf_counter() - began
        oracle = Oracle(
            not self._wrong,
            True,
            sum(each.expected for each in found),
            sum(each.found for each in found),
            sum(each.missing for each in found),
            sum(each.doubled for each in found),
            sum(each.unexpected for each in found),
            self._system.reader,
            seconds,
        )
        return CheckResult(oracle, footprint)

    def describe(self, _window: TablesWindow) -> RunMetadata:
        record = TablesRecord(
            data=DataRecord(**asdict(self._data), rows=self._comparer.rows),
            placed=tuple((name, tuple(cores)) for name, cores in self._placed.items()),
            departures=tuple(self._departures),
            client=pairs(self._versions),
        )
        apart = self._system.of_release_before  # the system's class reports the versions that a stack has
        return RunMetadata(
            system=system_part(self.test_bed.variant, self._system, pq.read_schema(self._source)),
            versions={
                **({f"{name} ({apart})": version for name, version in self._versions.items()} if apart else {}),
                **tool_versions(data.TOOL),
                "PyArrow": pa.__version__,
                "Python": platform.python_version(),
            },
            marks=tuple(self._wrong),
            found=written(record),
        )


@contextmanager
def open_window(test_bed: TestBed, name: str, _seconds: float, show: ProgressCallback) -> Iterator[TableRunner]:
    """Yield a runner with an empty location for tables in the folder `name`, and a comparer for their source."""
    written = DeltarsSettings.of(test_bed.spec).data
    with ExitStack() as stack:
        directory = stack.enter_context(test_bed.folder(name))
        system = test_bed.variant.open_as(BulkTable, test_bed.context(directory, 1))
        stack.callback(system.close)
        show("summing up the table that is written")
        source, keys = data.source_of(test_bed.workload.workspace, written), data.keys_of(written)
        comparer = stack.enter_context(Comparer(source, keys, system.extensions, directory))
        yield TableRunner(test_bed, directory, system, comparer, show)
