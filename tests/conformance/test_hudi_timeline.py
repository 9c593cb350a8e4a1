"""Files that hold a Hudi table's rows, and their commit times, from the names that its writer gave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.errors import SystemFailure
from tidemark.systems.base import Context, Options
from tidemark.systems.hudi import HudiTable

FIRST, SECOND, THIRD = "20261123010000000", "20261123010001000", "20261123010002000"
SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> Iterator[HudiTable]:
    made = HudiTable(Context(tmp_path, {}, 1), Options())
    made.create(SCHEMA)
    yield made
    made.close()


def put(table: HudiTable, group: str, instant: str, rows: dict[int, str]) -> None:
    """Write a base file of `group` by `instant`; `rows` maps each id to the instant that wrote it last."""
    columns = {"_hoodie_commit_time": list(rows.values()), "id": list(rows)}
    pq.write_table(pa.table(columns), table.place / f"{group}-0_0-1-2_{instant}.parquet")


def complete(table: HudiTable, instant: str, after_ms: int, kind: str = "commit") -> None:
    timeline = table.place / ".hoodie" / "timeline"
    timeline.mkdir(parents=True, exist_ok=True)
    (timeline / f"{instant}.{kind}.requested").touch()
    (timeline / f"{instant}_{int(instant) + after_ms}.{kind}").touch()


def test_table_without_writes_is_empty(table: HudiTable) -> None:
    assert table.visible_rows() == 0 and not table.history() and len(table.ids()) == 0
    with pytest.raises(SystemFailure, match="what an engine writes"):
        table.write(pa.table({"id": [1]}))


def test_newest_completed_file_of_each_group_counts(table: HudiTable) -> None:
    put(table, "a", FIRST, {0: FIRST, 1: FIRST})
    complete(table, FIRST, 300)
    put(table, "a", SECOND, {0: FIRST, 1: FIRST, 2: SECOND})
    put(table, "b", SECOND, {3: SECOND})
    complete(table, SECOND, 250)
    put(table, "a", THIRD, {0: FIRST, 1: FIRST, 2: SECOND, 4: THIRD})  # never completed
    complete(table, THIRD, 100, "rollback")
    assert table.visible_rows() == 4
    assert sorted(table.ids().to_pylist()) == [0, 1, 2, 3] == sorted(table.read().column("id").to_pylist())
    assert [(each.at_ms % 10_000, each.rows) for each in table.history()] == [(300, 2), (1_250, 2)]
    footprint = table.footprint()
    assert (footprint.data_files, footprint.metadata_files) == (4, 6)


def test_instants_moved_to_the_history_count_as_well(table: HudiTable) -> None:
    put(table, "a", FIRST, {0: FIRST})
    history = table.place / ".hoodie" / "timeline" / "history"
    history.mkdir(parents=True)
    moved = {
        "instantTime": [FIRST, SECOND],
        "completionTime": [str(int(FIRST) + 7), SECOND],
        "action": ["commit", "clean"],
    }
    pq.write_table(pa.table(moved), history / "1_2_0.parquet")
    assert table.visible_rows() == 1
    assert [(each.at_ms % 10_000, each.rows) for each in table.history()] == [(7, 1)]
