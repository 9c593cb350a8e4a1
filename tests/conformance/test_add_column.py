"""A column is added to a table with rows: older rows are null in it, and no data file is rewritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tidemark.studies.ingest.window.one_client import EARLIER, rows_with, wrong_values
from tidemark.systems.pruning_dataset import rows_of, schema
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

OpenTable = Callable[..., Any]

KINDS = {name: kind for name, kind in of_kind(TableSystem).items() if kind.refuses_columns() is None}
ROWS = 3


@pytest.mark.parametrize("name", KINDS)
def test_older_rows_are_null_and_no_file_is_rewritten(name: str, open_table: OpenTable) -> None:
    system = open_table(KINDS[name])
    system.create(schema())
    for commit in range(EARLIER):
        system.write(rows_of(commit, ROWS))
    before = set(system.data_files())
    system.add_column("added_1")
    system.write(rows_with(EARLIER, ROWS, 1))
    assert before <= set(system.data_files())
    assert wrong_values(system.read(), ROWS, 1) == 0
    assert sorted(system.ids().to_pylist()) == list(range((EARLIER + 1) * ROWS))


def test_values_that_are_wrong_are_counted() -> None:
    right = pa.concat_tables(
        [*(rows_of(each, ROWS) for each in range(EARLIER)), rows_with(EARLIER, ROWS, 1)], promote_options="default"
    )
    assert wrong_values(right, ROWS, 1) == 0
    assert wrong_values(right.drop_columns("added_1"), ROWS, 1) == right.num_rows
    filled = right.set_column(right.column_names.index("added_1"), "added_1", right.column("id"))
    assert wrong_values(filled, ROWS, 1) == EARLIER * ROWS
    emptied = right.set_column(right.column_names.index("added_1"), "added_1", pa.nulls(right.num_rows, pa.int64()))
    assert wrong_values(emptied, ROWS, 1) == ROWS
