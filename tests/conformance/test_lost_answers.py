"""Commits whose answer is lost: PostgreSQL has the commit, and the client never learns of it.

DuckLake's client treats it as failed and deletes the data file that it made. The catalog still names that file, and
no client can read the table any more, whichever wrote the rest of it. A broken connection at the wrong moment is
enough, and so is a kill of PostgreSQL between its commit and its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

from tidemark.studies.ingest.load.crew import noted
from tidemark.studies.ingest.load.records import BLIND, CHECK, NEVER, Records
from tidemark.studies.ingest.load.writer import ReconnectingWriter, WorkerConfig, publish
from tidemark.studies.ingest.window.oracle import OF_TABLE, look, states
from tidemark.systems.duckdb_table import DuckDBClientFactory
from tidemark.systems.ducklake.servers import DuckLake, DuckLakeInlinedPostgres
from tidemark.systems.writers import ClientFactory, CommitStatus

from .lost_answers import LostAnswers, losing_answers
from .trips import YELLOW, trips

OpenTable = Callable[..., Any]
ROWS = 2
BEFORE = [0, 1, 100, 101]  # acknowledged


@pytest.fixture
def broken(open_table: OpenTable) -> Iterator[Callable[[type[DuckLake]], tuple[Any, Any, LostAnswers, ClientFactory]]]:
    """Yield a function that makes a table with rows of two clients, the second connected through a proxy."""
    proxies = []

    def broken(kind: type[DuckLake]) -> tuple[Any, Any, LostAnswers, ClientFactory]:
        system = open_table(kind)
        system.create(YELLOW)
        system.write(trips(YELLOW, 2))
        host, port = system._postgres.host_and_port()
        context = losing_answers((host, port))
        proxies.append(context)
        proxy, client_factory = context.__enter__(), system.client_factory()
        assert isinstance(client_factory, DuckDBClientFactory)
        through = tuple(each.replace(f"port={port}", f"port={proxy.port}") for each in client_factory.attachments)
        assert through != client_factory.attachments
        client_factory = replace(client_factory, attachments=through)
        writer = client_factory.open()
        writer.write(trips(YELLOW, 2, 100))
        assert sorted(system.ids().to_pylist()) == BEFORE
        return system, writer, proxy, client_factory

    yield broken
    for context in proxies:
        context.__exit__(None, None, None)


def missing(system: Any) -> list[Path]:
    """Return the files that the catalog names and that do not exist."""
    return [Path(path) for path in system.data_files() if not Path(path).exists()]


def test_ducklake_deletes_a_file_whose_commit_is_in_the_catalog(broken: Any) -> None:
    system, writer, proxy, _ = broken(DuckLake)
    proxy.armed = True
    with pytest.raises(duckdb.TransactionException, match=r'(?s)"COMMIT".*server closed the connection') as failed:
        writer.write(trips(YELLOW, 2, 200))
    assert proxy.lost == 1 and writer.commit_status(failed.value) is CommitStatus.UNKNOWN
    assert len(missing(system)) == 1, "mended by this release: say so where the study says that it is not"
    with pytest.raises(FileNotFoundError):
        system.ids()
    with pytest.raises(duckdb.IOException, match="No such file"):
        system._writer.execute(f"SELECT id FROM {system.table}").fetchall()


def test_inlined_rows_of_a_commit_with_a_lost_answer_are_complete(broken: Any) -> None:
    system, writer, proxy, _ = broken(DuckLakeInlinedPostgres)
    proxy.armed = True
    with pytest.raises(duckdb.TransactionException) as failed:
        writer.write(trips(YELLOW, 2, 200))
    assert proxy.lost == 1 and writer.commit_status(failed.value) is CommitStatus.UNKNOWN
    assert not missing(system) and sorted(system.ids().to_pylist()) == [*BEFORE, 200, 201]


def test_commit_that_never_arrives_leaves_nothing(broken: Any) -> None:
    system, writer, proxy, _ = broken(DuckLake)
    proxy.armed, proxy.forwards = True, False
    with pytest.raises(duckdb.TransactionException):
        writer.write(trips(YELLOW, 2, 200))
    assert not missing(system) and sorted(system.ids().to_pylist()) == BEFORE


@pytest.mark.parametrize(("retry", "forwards"), [(NEVER, True), (CHECK, True), (CHECK, False), (BLIND, True)])
def test_batch_sent_again_without_a_check_is_stored_twice(
    broken: Any, tmp_path: Path, retry: str, forwards: bool
) -> None:
    system, writer, proxy, client_factory = broken(DuckLakeInlinedPostgres)
    writer.close()
    source, place = tmp_path / "trips.parquet", tmp_path / ".door"
    pq.write_table(trips(YELLOW, ROWS), source)
    publish(client_factory, place)
    order = WorkerConfig(client_factory, 1, source, ROWS, 5, 0, 1, tmp_path / "records", 100, place, retry)
    survivor = ReconnectingWriter(order, Records(order.records, order.most))
    survivor.count(1)
    proxy.armed, proxy.forwards = True, forwards
    survivor.count(2)
    survivor.close()
    found = look(system.ids(), {OF_TABLE: np.array([2]), 1: states(noted(order.records, order.most, "it"))}, ROWS)
    assert proxy.lost == forwards and not found.lost and not found.partial
    assert found.doubled == (ROWS if retry == BLIND and forwards else 0)
    assert (found.expected, found.done, found.not_done) == (
        (ROWS * 3, int(forwards), int(not forwards)) if retry == NEVER else (ROWS * 4, 0, 0)
    )
