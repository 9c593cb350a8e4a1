"""Tables made older by the format's own files hold each row once, in as many commits, and their clients go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tidemark.measure.oracle import consult
from tidemark.systems.delta.delta_rs import DeltaRs
from tidemark.systems.ducklake.servers import DuckLake
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.tables import TableSystem, with_id

from .trips import YELLOW, trips

OpenTable = Callable[..., Any]
ROW = trips(YELLOW, 1)
BY_FILES = (DeltaRs, IcebergPyIceberg)


def young(open_table: OpenTable, kind: type[TableSystem], options: Any = None) -> tuple[Any, int | None]:
    """Return a table with one commit, and its number of commits before."""
    system = open_table(kind, options, rows_per_write=1)
    system.create(ROW.schema)
    created = system.commits()
    system.write(with_id(ROW, 0))
    return system, created


@pytest.mark.parametrize("kind", [*BY_FILES, DuckLake])
def test_made_commits_are_read_and_continued(kind: type[TableSystem], open_table: OpenTable) -> None:
    system, created = young(open_table, kind)
    assert (system.commits_at_once > 1) == (kind in BY_FILES)
    for ids in (range(1, 8), range(8, 12)):
        system.make_commits(ROW, ids)
    for number in range(12, 15):
        system.write(with_id(ROW, number))
    oracle = consult(system, 15, 15, created)
    assert oracle.verdict and (oracle.found, oracle.commits) == (15, 15), oracle
    with system.open_reader() as reader:
        reader.plan()
        assert sorted(reader.ids().to_pylist()) == list(range(15))
    others = [tuple(row.values()) for row in system.read().drop_columns("id").to_pylist()]
    assert others == [others[0]] * 15, "rows differ in their ids alone"
    assert system.visible_rows() == 15 and [each.rows for each in system.history()] == [1] * 15


@pytest.mark.parametrize("kind", BY_FILES)
def test_a_row_that_is_missing_or_there_twice_is_found(kind: type[TableSystem], open_table: OpenTable) -> None:
    system, created = young(open_table, kind)
    system.make_commits(ROW, range(2, 5))
    system.make_commits(ROW, range(4, 6))
    oracle = consult(system, 6, 6, created)
    assert (oracle.verdict, oracle.missing, oracle.duplicated, oracle.unexpected) == (False, 1, 1, 0)
    system.make_commits(ROW, range(1, 2))
    oracle = consult(system, 6, 6, created)
    assert (oracle.verdict, oracle.missing, oracle.duplicated, oracle.commits) == (False, 0, 1, 7)


def test_own_means_against_growth_are_left_to_the_client(open_table: OpenTable) -> None:
    system, created = young(open_table, IcebergPyIceberg, IcebergPyIceberg.Options(expire_every=2))
    system.make_commits(ROW, range(1, 5))
    assert system.commits_at_once == 1 and consult(system, 5, 5, created).verdict
    assert len(system.history()) < 5, "older snapshots are expired"
