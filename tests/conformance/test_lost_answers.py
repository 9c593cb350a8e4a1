"""Commits whose answer is lost: the server has the commit, and the client never learns of it.

DuckLake's client treats it as failed and deletes the data file that it made. The catalog still names that file, and
no client can read the table any more, whichever wrote the rest of it. A broken connection at the wrong moment is
enough, and so is a kill of PostgreSQL between its commit and its answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from tidemark.machine import strace
from tidemark.services.fault_proxy import (
    AFTER,
    BEFORE,
    CUT_OFF,
    LATE,
    RESTART,
    STATUS,
    TWICE,
    CommitFaults,
    CommitKills,
    FaultProxy,
)
from tidemark.studies.ingest.load.crew import noted
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER, Records
from tidemark.studies.ingest.load.separate import SeparateFactory
from tidemark.studies.ingest.load.writer import ReconnectingWriter, WorkerConfig, batches, publish
from tidemark.studies.ingest.window.ambiguity import (
    NUMBER,
    Attempted,
    Bench,
    Client,
    Contents,
    outcomes,
    proxy_before,
)
from tidemark.studies.ingest.window.runner import OF_TABLE, look, states
from tidemark.systems.delta.delta_duckdb import DeltaDuckDB
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.delta.table import DeltaRsOptions
from tidemark.systems.ducklake.servers import DuckLake, DuckLakeInlinedPostgres
from tidemark.systems.iceberg.iceberg_duckdb import IcebergDuckDB, IcebergDuckDBOptions
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg, PyIcebergOptions
from tidemark.systems.object_store import S3
from tidemark.systems.releases import parse_version
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory, CommitStatus, TableWriter

from .trips import YELLOW, trips

OpenTable = Callable[..., Any]
ROWS = 2
ACKED_IDS = [0, 1, 100, 101]  # acknowledged


@pytest.fixture
def near(open_table: OpenTable) -> Iterator[Callable[..., tuple[Any, CommitFaults, ClientFactory]]]:
    """Yield a function that makes a table with rows, and opens a proxy before its server and clients through it.

    Clients wait `limit` seconds for an answer, if it is given. Without a server, the client's process can be killed.
    """
    with ExitStack() as stack:

        def near(
            kind: type[TableSystem], rows: int, options: Any = None, limit: int | None = None
        ) -> tuple[Any, CommitFaults, ClientFactory]:
            system = open_table(kind, options)
            system.create(YELLOW)
            system.write(trips(YELLOW, rows))
            if not system.context.services:
                kills = stack.enter_context(CommitKills(system.context.directory))
                return system, kills, SeparateFactory(system.client_factory(), system.context.directory, kills.of)
            server = next(iter(system.context.services))
            service = system.context.services[server]
            proxy = stack.enter_context(proxy_before(server, service))
            services = {**system.context.services, server: service.by_way_of(proxy.port)}
            reached = system.reached_by(services)
            return system, proxy, (reached if limit is None else reached.waiting(limit)).client_factory()

        yield near


@pytest.fixture
def broken(near: Any) -> Iterator[Callable[[type[DuckLake]], tuple[Any, Any, FaultProxy, ClientFactory]]]:
    """Yield a function that makes a table with rows of two clients, the second connected through a proxy."""
    with ExitStack() as stack:

        def broken(kind: type[DuckLake]) -> tuple[Any, Any, FaultProxy, ClientFactory]:
            system, proxy, client_factory = near(kind, ROWS)
            writer = client_factory.open()
            stack.callback(writer.close)
            writer.write(trips(YELLOW, ROWS, 100))
            assert sorted(system.ids().to_pylist()) == ACKED_IDS
            return system, writer, proxy, client_factory

        yield broken


def missing(system: Any) -> list[Path]:
    """Return the files that the catalog names and that do not exist."""
    return [Path(path) for path in system.data_files() if not Path(path).exists()]


def test_ducklake_deletes_a_file_whose_commit_is_in_the_catalog(broken: Any) -> None:
    system, writer, proxy, _ = broken(DuckLake)
    proxy.hit_next(AFTER)
    with pytest.raises(duckdb.TransactionException, match=r'(?s)"COMMIT".*server closed the connection') as failed:
        writer.write(trips(YELLOW, 2, 200))
    assert len(proxy.take()) == 1 and writer.commit_status(failed.value) is CommitStatus.UNKNOWN
    assert len(missing(system)) == 1, "mended by this release: say so where the study says that it is not"
    with pytest.raises(FileNotFoundError):
        system.ids()
    with pytest.raises(duckdb.IOException, match="No such file"):
        system._writer.execute(f"SELECT id FROM {system.table}").fetchall()
    contents = Contents.of(system, system.context.directory)
    assert "No such file" in contents.unread and sorted(contents.ids) == ACKED_IDS, "those of the files that are left"


def test_inlined_rows_of_a_commit_with_a_lost_answer_are_complete(broken: Any) -> None:
    system, writer, proxy, _ = broken(DuckLakeInlinedPostgres)
    proxy.hit_next(AFTER)
    with pytest.raises(duckdb.TransactionException) as failed:
        writer.write(trips(YELLOW, 2, 200))
    assert len(proxy.take()) == 1 and writer.commit_status(failed.value) is CommitStatus.UNKNOWN
    assert not missing(system) and sorted(system.ids().to_pylist()) == [*ACKED_IDS, 200, 201]


def test_commit_that_never_arrives_leaves_nothing(broken: Any) -> None:
    system, writer, proxy, _ = broken(DuckLake)
    proxy.hit_next(BEFORE)
    with pytest.raises(duckdb.TransactionException):
        writer.write(trips(YELLOW, 2, 200))
    assert not missing(system) and sorted(system.ids().to_pylist()) == ACKED_IDS


@pytest.mark.parametrize(("retry", "fault"), [(NEVER, AFTER), (CHECK, AFTER), (CHECK, BEFORE), (BLIND, AFTER)])
def test_batch_sent_again_without_a_check_is_stored_twice(broken: Any, tmp_path: Path, retry: str, fault: str) -> None:
    system, writer, proxy, client_factory = broken(DuckLakeInlinedPostgres)
    writer.close()
    source, place = tmp_path / "trips.parquet", tmp_path / ".door"
    pq.write_table(trips(YELLOW, ROWS), source)
    publish(client_factory, place)
    order = WorkerConfig(client_factory, 1, source, ROWS, 5, 0, 1, tmp_path / "records", 100, place, retry)
    survivor = ReconnectingWriter(order, Records(order.records, order.most))
    survivor.count(1)
    proxy.hit_next(fault)
    survivor.count(2)
    survivor.close()
    found = look(system.ids(), {OF_TABLE: np.array([2]), 1: states(noted(order.records, order.most, "it"))}, ROWS)
    forwards = fault == AFTER
    assert len(proxy.take()) == 1 and not found.lost and not found.partial
    assert found.doubled == (ROWS if retry == BLIND and forwards else 0)
    assert (found.expected, found.done, found.not_done) == (
        (ROWS * 3, int(forwards), int(not forwards)) if retry == NEVER else (ROWS * 4, 0, 0)
    )


DOUBLES, LOSES, STICKS = "doubles", "loses", "sticks"


@dataclass(frozen=True)
class PlantedFactory(ClientFactory):
    inner: ClientFactory
    fault: str

    def open(self) -> TableWriter:
        return Planted(self.inner.open(), self.fault)


class Planted(TableWriter):
    """Client that, after an error, sends a row again without a look, acknowledges it unseen, or writes no more."""

    def __init__(self, inner: TableWriter, fault: str) -> None:
        self._inner, self._fault, self._is_stuck = inner, fault, False
        self.close = inner.close  # type: ignore[method-assign]

    def write(self, rows: Any) -> None:
        if self._is_stuck:
            raise RuntimeError("the connection is closed")
        try:
            self._inner.write(rows)
        except Exception:
            if self._fault == DOUBLES:
                self._inner.write(rows)
            elif self._fault == STICKS:
                self._is_stuck = True
                raise

    def commit_status(self, error: Exception) -> CommitStatus:
        return self._inner.commit_status(error)


@pytest.fixture
def bench(near: Any, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    """Yield a function that makes a table and its client, in which a fault may be planted."""
    pq.write_table(trips(YELLOW, 8), tmp_path / "trips.parquet")
    rows, sequence = batches(tmp_path / "trips.parquet", 1, NUMBER), itertools.count()
    with ExitStack() as stack:

        def bench(kind: type[TableSystem], retry: str, planted: str = "", **how: Any) -> Bench:
            system, proxy, factory = near(kind, 1, **how)
            client = Client(PlantedFactory(factory, planted) if planted else factory, retry, proxy.wait)
            stack.callback(client.close)
            return Bench(system, system.context.directory, 1, client, retry, proxy, rows, sequence)

        yield bench


@pytest.mark.parametrize(
    ("planted", "retry", "expected"),
    [
        ("", NEVER, {AFTER: "error_once", BEFORE: "error_absent"}),
        ("", BLIND, {AFTER: "acked_twice", BEFORE: "acked_once"}),
        ("", CHECK, {AFTER: "acked_once", BEFORE: "acked_once"}),
        (DOUBLES, NEVER, {AFTER: "acked_twice"}),
        (LOSES, NEVER, {BEFORE: "acked_absent"}),
        (STICKS, NEVER, {AFTER: "error_once"}),
    ],
)
def test_each_outcome_is_recognized(bench: Any, planted: str, retry: str, expected: dict[str, str]) -> None:
    names = [f"{told}_{copies}" for told in ("acked", "error") for copies in ("once", "twice", "absent")]
    one = bench(DuckLakeInlinedPostgres, retry, planted)
    for fault, outcome in expected.items():
        row = one.hit(fault, 0)
        (found,) = outcomes([row])
        assert {name: getattr(found, name) for name in names} == {name: int(name == outcome) for name in names}
        assert found.harmed == int(outcome in ("acked_twice", "acked_absent") or planted == STICKS)
        assert (found.hits, found.unreadable, found.earlier_lost) == (1, 0, 0) and found.earlier >= 2
        assert found.stuck == (planted == STICKS)
        assert row.tries == (2 if retry == BLIND or (retry == CHECK and fault == BEFORE) else 1)


def test_table_that_a_hit_breaks_keeps_its_earlier_rows(bench: Any) -> None:
    (found,) = outcomes([bench(DuckLake, CHECK).hit(AFTER, 0)])
    assert (found.unreadable, found.harmed, found.stuck) == (1, 1, 0)
    assert (found.acked_absent, found.earlier, found.earlier_lost) == (1, 2, 0), "by its token it is there: it is not"


def test_commits_to_a_catalog_server_are_hit_in_each_way(bench: Any) -> None:
    one = bench(IcebergPyIceberg, CHECK)
    for fault in (AFTER, BEFORE, TWICE, STATUS):
        row = one.hit(fault, 0)
        assert (row.rows, row.copies, row.is_harmed) == (1, 1, False), row


def cut_at(one: Bench, place: str, copies: int) -> Attempted:
    """Cut the connections of writes at random moments until a cut is at `place`, with so many copies of the row."""
    for _ in range(300):
        if (row := one.hit(CUT_OFF, 0)) and (row.place, row.copies) == (place, copies):
            return row
    raise AssertionError(f"no cut {place} the commit left {copies} rows")


RARE = pytest.mark.long(reason="most cuts are earlier; test_each_outcome_is_recognized plants the same fault")


@pytest.mark.parametrize(
    ("planted", "place", "copies", "outcome"),
    [
        ("", AFTER, 1, "error_once"),
        ("", BEFORE, 0, "error_absent"),
        pytest.param(DOUBLES, AFTER, 2, "acked_twice", marks=RARE),
        (LOSES, BEFORE, 0, "acked_absent"),
    ],
)
def test_cut_at_a_random_moment_is_recognized(bench: Any, planted: str, place: str, copies: int, outcome: str) -> None:
    row = cut_at(bench(DuckLakeInlinedPostgres, NEVER, planted), place, copies)
    (found,) = outcomes([row])
    assert (getattr(found, outcome), found.stuck, found.unreadable) == (1, 0, 0), row
    assert found.harmed == bool(planted)
    assert (found.lost, found.lost_harmed) == (place == AFTER, planted == DOUBLES)


def test_catalog_server_that_is_restarted_has_its_commit(bench: Any) -> None:
    (found,) = outcomes([row := bench(IcebergPyIceberg, CHECK).hit(RESTART, 0)])
    assert (found.acked_once, found.harmed) == (1, 0) and row.said, row


@pytest.mark.parametrize(
    ("kind", "options"), [(IcebergPyIceberg, PyIcebergOptions), (IcebergDuckDB, IcebergDuckDBOptions)]
)
def test_commits_to_nessie_are_hit(bench: Any, kind: type[TableSystem], options: Any) -> None:
    one = bench(kind, CHECK, options=options(catalog="nessie", storage=S3))
    after = one.hit(AFTER, 0)
    if kind is IcebergDuckDB and parse_version(duckdb.__version__) >= (1, 5):  # the finding duckdb-iceberg-lost-answer
        assert (after.rows, after.copies, after.stuck) == (0, 0, "") and "not exist" in after.unread, after
        return
    for row in (after, one.hit(BEFORE, 0)):
        assert (row.rows, row.copies, row.earlier_lost, row.stuck, row.unread) == (1, 1, 0, "", ""), row


def test_late_answer_finds_a_client_that_has_given_up_by_its_time_limit(bench: Any) -> None:
    one = bench(DeltaRs, NEVER, options=DeltaRsOptions(storage=S3), limit=1)
    assert IcebergPyIceberg.time_limit is DuckLake.time_limit is None and DeltaRs.time_limit == "timeout"
    row = one.hit(LATE, 0)
    assert (row.copies, row.is_harmed) == (1, False), row
    assert "timed out" in row.said, row


def test_time_limit_is_set_in_the_client(near: Any) -> None:
    _, _, factory = near(IcebergDuckDB, 1, limit=3)
    writer = factory.open()
    assert writer._execute(f"SELECT current_setting('{IcebergDuckDB.time_limit}')").fetchall() == [(3,)]
    writer.close()


needs_strace = pytest.mark.skipif(
    bool(strace.why_not()), reason=f"no client can be killed at a call: {strace.why_not()}"
)


@needs_strace
@pytest.mark.parametrize(
    ("kind", "retry", "expected"),
    [
        (DeltaRs, NEVER, {AFTER: "error_once", BEFORE: "error_absent"}),
        (DeltaRs, BLIND, {AFTER: "acked_twice", BEFORE: "acked_once"}),
        (DeltaRs, CHECK, {AFTER: "acked_once", BEFORE: "acked_once"}),
        (DeltaDuckDB, BLIND, {AFTER: "acked_twice"}),
    ],
)
def test_client_is_killed_right_after_its_commit_or_before(
    bench: Any, kind: type[TableSystem], retry: str, expected: dict[str, str]
) -> None:
    one = bench(kind, retry)
    for fault, outcome in expected.items():
        (found,) = outcomes([row := one.hit(fault, 0)])
        assert (getattr(found, outcome), found.unreadable, found.stuck, found.earlier_lost) == (1, 0, 0, 0), row
        assert "killed" in row.said and found.harmed == (outcome == "acked_twice")
