"""Tests of reads before and after maintenance of a streamed table; cells that cannot be measured state why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.studies.freshness.records import RECORD

from tidemark.analysis.formatting import MissingCell
from tidemark.errors import OracleError
from tidemark.runs.manifest import Footprint
from tidemark.studies.freshness.runner import NOBODY, timed_reads
from tidemark.studies.freshness.tables import READS, STREAMED, lines
from tidemark.systems.base import Capability
from tidemark.systems.tables import TableSystem

HEAD = 4  # columns that identify a line


@dataclass
class Table:
    """Fake table of 1,000 rows in 100 files, which `merge` turns into one file with `lost` rows fewer."""

    capabilities: frozenset[Capability] = frozenset({Capability.ASKED, Capability.MAINTENANCE})
    refused: str | None = None
    lost: int = 0
    fails: bool = False
    rows: int = 1000
    files: int = 100
    options: Any = None
    closed: list[bool] = field(default_factory=list)

    @contextmanager
    def open_reader(self) -> Iterator[Any]:
        yield SimpleNamespace(count=lambda: self.rows, sum_ids=lambda: self.rows * (self.rows - 1) // 2)

    def refuses_maintenance(self, _options: Any) -> str | None:
        return self.refused

    def footprint(self) -> Footprint:
        return Footprint(self.files, 1, 5, 1, 0)

    def client_factory(self) -> Any:
        def merge() -> None:
            if self.fails:
                raise ValueError("no memory")
            self.rows, self.files = self.rows - self.lost, 1

        operations: dict[str, Callable[[], None]] = {"merge": merge, "expire": lambda: None}
        writer = SimpleNamespace(maintenance=lambda: operations, close=lambda: self.closed.append(True))
        return SimpleNamespace(open=lambda: writer)


def taken(table: Table) -> list[list[Any]]:
    reads = timed_reads(cast(TableSystem, table), 1000, table.footprint(), lambda _: None)
    return lines(replace(RECORD, reads=reads))


def test_a_table_is_read_before_and_after_its_maintenance() -> None:
    table = Table()
    before, after = taken(table)
    assert (before[:3], after[:3]) == ([STREAMED, 50, 105], ["after merge and expire", 50, 6])
    assert len(before) == len(after) == len(READS) - HEAD
    assert all(seconds >= 0 for seconds in before[3:7] + after[3:]) and before[7] is None
    assert table.closed == [True]


def test_row_lost_by_maintenance_is_detected() -> None:
    table = Table(lost=1)
    with pytest.raises(OracleError, match=r"a table of 1,000 rows .* is 999"):
        taken(table)
    assert table.closed == [True]


def test_unmeasurable_cells_state_the_reason() -> None:
    (alone,) = taken(Table(capabilities=frozenset()))
    assert alone[:3] == [STREAMED, 50, 105] and alone[3:7] == [MissingCell(NOBODY)] * 4
    _, refused = taken(Table(refused="no call"))
    assert refused == [MissingCell("no call")] * (len(READS) - HEAD)
    _, failed = taken(Table(fails=True))
    assert failed[:7] == [MissingCell("merge failed: ValueError: no memory")] * 7
    assert lines(RECORD) == [[MissingCell("its table was not read")] * (len(READS) - HEAD)]  # also files of older runs
