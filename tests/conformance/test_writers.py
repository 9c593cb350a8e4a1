"""Several processes write one table, each with a separate client: every system that declares it, on real servers."""

from __future__ import annotations

import dataclasses
import multiprocessing
import multiprocessing.pool
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tidemark.systems.base import FULL, Capability
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.files import FILE, DuckLakeInlined, DuckLakeSqlite
from tidemark.systems.ducklake.servers import DuckLake
from tidemark.systems.iceberg.iceberg_duckdb import IcebergDuckDB
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg, PyIcebergOptions
from tidemark.systems.paimon import Paimon
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import ClientFactory, CommitStatus, IdempotencyKey

from .trips import YELLOW, trips

OpenTable = Callable[..., Any]


KINDS = of_kind(TableSystem)
DECLARED = {name: kind for name, kind in KINDS.items() if Capability.WRITERS in kind.capabilities}
ROWS, FIRST = 2, 1 << 40
# The reference catalog's endpoint for several tables, which DuckDB commits through, acknowledges both of two commits
# on one snapshot and keeps one. Paimon's client has a lock against that which only threads of one process share.
LOSES = {IcebergDuckDB.name, Paimon.name}


def write(client_factory: ClientFactory, number: int, batches: int) -> tuple[list[int], list[str]]:
    """Write each batch until it is acknowledged, in any process; return the ids, and each refused attempt's status."""
    writer, refused = client_factory.open(), []
    ids: list[int] = []
    for batch in range(batches):
        rows = trips(YELLOW, ROWS, FIRST * number + ROWS * batch)
        while True:
            try:
                writer.write(rows)
                break
            except Exception as error:
                refused.append(str(writer.commit_status(error)))
                writer.refresh()
        ids += rows.column("id").to_pylist()
    writer.close()
    return ids, refused


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1])  # so that they can import this file
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            yield pool


@pytest.mark.parametrize("name", DECLARED)
def test_rows_of_two_processes_are_all_stored(name: str, open_table: OpenTable, processes: ProcessPoolExecutor) -> None:
    system = open_table(DECLARED[name])
    system.create(YELLOW)
    system.write(trips(YELLOW, 1))
    at_work = [processes.submit(write, system.client_factory(), number, 8) for number in (1, 2)]
    done = [each.result(timeout=120) for each in at_work]
    acknowledged = [0, *(number for ids, _ in done for number in ids)]
    assert {commit_status for _, refused in done for commit_status in refused} <= {CommitStatus.CONFLICT}
    found = sorted(system.ids().to_pylist())
    if Capability.READ_BACK not in system.capabilities:
        assert found == []
    elif name in LOSES:
        assert set(found) <= set(acknowledged) and len(set(found)) == len(found)
    else:
        assert found == sorted(acknowledged)


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.hands_over])
def test_rows_of_one_other_process_are_stored(name: str, open_table: OpenTable, processes: ProcessPoolExecutor) -> None:
    system = open_table(KINDS[name])
    system.create(YELLOW)
    system.write(trips(YELLOW, 1))
    before = system.commits()
    ids, refused = processes.submit(write, system.client_factory(), 1, 8).result(timeout=120)
    assert refused == [] and sorted(system.ids().to_pylist()) == sorted([0, *ids])
    system.write(trips(YELLOW, 1, 1))
    assert sorted(system.ids().to_pylist()) == sorted([0, 1, *ids])
    assert system.commits() == (None if before is None else before + 9)
    assert "for one writer" in system.refuses_writers(system.options)


@pytest.mark.parametrize(
    "name", [name for name, kind in DECLARED.items() if kind.refuses_bundles(kind.Options()) is None]
)
def test_files_of_one_client_are_committed_at_once_by_another(name: str, open_table: OpenTable) -> None:
    system = open_table(DECLARED[name])
    system.create(YELLOW)
    system.write(trips(YELLOW, 1))
    making, committing = system.client_factory().open(), system.client_factory().open()
    for first in (10, 20):  # the second time from the state that the first commit left
        before = system.commits()
        made = [making.stage(trips(YELLOW, ROWS, first + ROWS * place)) for place in range(3)]
        if Capability.READ_BACK in system.capabilities:
            assert not {first, first + 1} & set(system.ids().to_pylist()) and system.commits() == before
        committing.register(made)
        if Capability.READ_BACK in system.capabilities:
            assert system.commits() == before + 1
    if Capability.READ_BACK in system.capabilities:
        assert sorted(system.ids().to_pylist()) == [0, *range(10, 16), *range(20, 26)]
        there = system.read().filter(pa.compute.field("id") >= 20 + 2 * ROWS).sort_by("id")
        assert there.to_pylist() == trips(YELLOW, ROWS, 20 + 2 * ROWS).to_pylist()
        missing = dataclasses.replace(made[0], path="/nowhere/at-all.parquet")
        if name != DeltaRs.name:  # which checks no file
            with pytest.raises(Exception, match="nowhere"):
                committing.register([*made, missing])
            assert len(system.ids()) == 13
    for client in (making, committing):
        client.close()


def overtaken(system: TableSystem) -> Exception:
    """Return the error of a commit that another one preceded; two threads commit at once until that happens."""
    one, two = system.client_factory().open(), system.client_factory().open()
    with multiprocessing.pool.ThreadPool(2) as pool:
        for batch in range(100):
            rows = [trips(YELLOW, 1, FIRST * (2 * batch + place + 1)) for place in (0, 1)]
            for error in pool.starmap(_attempt, zip((one, two), rows, strict=True)):
                if error is not None:
                    return error
    raise AssertionError("no commit was refused")


def _attempt(writer: Any, rows: pa.Table) -> Exception | None:
    try:
        writer.write(rows)
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("name", [name for name, kind in DECLARED.items() if Capability.READ_BACK in kind.capabilities])
def test_refused_commit_is_a_conflict_and_other_errors_are_not(name: str, open_table: OpenTable) -> None:
    kind = DECLARED[name]
    retrying = {field.name for field in dataclasses.fields(kind.Options)} & {"commit_retries"}
    options = kind.Options(**dict.fromkeys(retrying, 0))
    system = open_table(kind, kind.Options() if kind.unavailable(options) else options)
    system.create(YELLOW)
    system.write(trips(YELLOW, 1))
    writer = system.client_factory().open()
    assert writer.commit_status(OSError("connection reset by peer")) is CommitStatus.UNKNOWN
    misfit = _attempt(writer, pa.table({"id": ["no number"], "colour": ["red"]}))
    assert misfit is not None and writer.commit_status(misfit) is CommitStatus.FAILED, misfit
    error = overtaken(system)
    assert writer.commit_status(error) is CommitStatus.CONFLICT, error
    writer.close()


# A separate process: SQLite's locks belong to a process, not to a connection.
READS = """
import sqlite3, sys
reader = sqlite3.connect(sys.argv[1])
reader.execute("BEGIN")
print(reader.execute("SELECT count(*) FROM ducklake_snapshot").fetchall(), flush=True)
sys.stdin.read()
"""


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Keep a reading transaction open in another process."""
    with subprocess.Popen([sys.executable, "-c", READS, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdin is not None and reader.stdout is not None
        assert reader.stdout.readline()
        yield
        reader.stdin.close()


def hold(client_factory: ClientFactory, file: Path, refused: Connection, end: Event) -> None:
    """Commit during another process's read, send the status of the commit, and stay."""
    writer = client_factory.open()
    with reading(file):
        error = _attempt(writer, trips(YELLOW, 1))
    refused.send(error is not None and str(writer.commit_status(error)))
    writer.close()
    end.wait()


def test_sqlite_client_that_met_a_reader_blocks_others_until_its_process_ends(open_table: OpenTable) -> None:
    system = open_table(DuckLakeSqlite)
    system.create(YELLOW)
    system.close()
    spawn = multiprocessing.get_context("spawn")
    (here, there), end = spawn.Pipe(), spawn.Event()
    holding = spawn.Process(target=hold, args=(system.client_factory(), system.context.directory / FILE, there, end))
    holding.start()
    try:
        assert here.poll(60) and here.recv() == CommitStatus.CONFLICT
        with pytest.raises(duckdb.Error, match="database is locked"):
            dataclasses.replace(system.client_factory(), patience_s=0.0).open()
    finally:
        end.set()
        holding.join(60)
    dataclasses.replace(system.client_factory(), patience_s=0.0).open().close()
    assert len(system.ids()) == 0


def test_commits_refused_by_the_catalog_are_counted(open_table: OpenTable, processes: ProcessPoolExecutor) -> None:
    system = open_table(DuckLake)
    system.create(YELLOW)
    write(system.client_factory(), 1, 10)
    assert system.refused() == 0
    assert (
        len([each.result(120) for each in [processes.submit(write, system.client_factory(), n, 40) for n in (2, 3)]])
        == 2
    )
    refused = system.refused()
    assert refused is not None and refused > 0


def test_client_counts_its_attempts(open_table: OpenTable) -> None:
    system = open_table(IcebergPyIceberg)
    system.create(YELLOW)
    one, two = system.client_factory().open(), system.client_factory().open()
    one.write(trips(YELLOW, 1))
    assert one.attempts() == 1
    retries = Capability.COMMIT_RETRY in system.capabilities
    error = _attempt(two, trips(YELLOW, 1, 1))
    assert (error is None) == retries and two.attempts() == 1 + retries


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (DuckLakeInlined, {}, "one process at a time"),
        (DeltaRs, {"durability": FULL}, None),
        (IcebergPyIceberg, {"expire_every": 5}, "one process"),
        (DuckLake, {}, None),
    ],
)
def test_refused_writers_are_explained(kind: type[TableSystem], options: dict[str, Any], said: str | None) -> None:
    reason = kind.refuses_writers(kind.Options(**options))
    assert (said is None and reason is None) or (said is not None and said in (reason or ""))


def test_retry_options_reach_the_client(open_table: OpenTable) -> None:
    system = open_table(DuckLake, DuckLake.Options(commit_retries=7, retry_wait_ms=3))
    system.create(YELLOW)
    names = ("ducklake_max_retry_count", "ducklake_retry_wait_ms")
    writer: Any = system.client_factory().open()
    for connection in (system._writer, writer._connection):
        found = connection.execute(f"SELECT name, value FROM duckdb_settings() WHERE name IN {names}").fetchall()
        assert dict(found) == dict(zip(names, ("7", "3"), strict=True))
    set_so = PyIcebergOptions(commit_retries=7)
    assert (IcebergPyIceberg.unavailable(set_so) is None) == (Capability.COMMIT_RETRY in IcebergPyIceberg.of_release())


@pytest.mark.parametrize("name", [name for name, kind in DECLARED.items() if Capability.READ_BACK in kind.capabilities])
def test_a_commit_is_found_by_its_token(name: str, open_table: OpenTable) -> None:
    system = open_table(KINDS[name])
    system.create(YELLOW)
    system.write(trips(YELLOW, ROWS))
    first, second = system.client_factory().open(), system.client_factory().open()
    for batch in range(2):
        first.write_known(
            trips(YELLOW, ROWS, FIRST + ROWS * batch), IdempotencyKey("writer 1", batch, FIRST + ROWS * batch)
        )
        for writer in (first, second):
            assert writer.has(IdempotencyKey("writer 1", batch, FIRST + ROWS * batch))
            assert not writer.has(IdempotencyKey("writer 1", batch + 1, FIRST + ROWS * (batch + 1)))
            assert not writer.has(IdempotencyKey("writer 2", batch, 2 * FIRST + ROWS * batch))
    assert system.ids().length() == 3 * ROWS
    for writer in (first, second):
        writer.close()
