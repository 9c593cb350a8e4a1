"""A client reports reading only the files that statistics do not exclude, and its rows are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tidemark.systems.base import Capability
from tidemark.systems.iceberg.catalog import SQL_CATALOG as CATALOG
from tidemark.systems.iceberg.iceberg_duckdb import IcebergDuckDB
from tidemark.systems.iceberg.iceberg_pyiceberg import IcebergPyIceberg
from tidemark.systems.iceberg.table import TABLE
from tidemark.systems.registry import of_kind
from tidemark.systems.tables import Filter, TableSystem

OpenTable = Callable[..., Any]


KINDS = {name: kind for name, kind in of_kind(TableSystem).items() if Capability.PLANS in kind.capabilities}
ROWS = 4


def rows(first: int, regions: list[str]) -> pa.Table:
    """Return rows with ids from `first` on, equally many per region, with a message that names the region."""
    names = [region for region in regions for _ in range(ROWS // len(regions))]
    return pa.table(
        {"id": pa.array(range(first, first + ROWS)), "region": names, "message": [f"all {n}" for n in names]}
    )


def test_promised_systems_report_their_plans() -> None:
    assert set(KINDS) == {"ducklake", "iceberg-pyiceberg", "iceberg-duckdb", "delta-rs"}


def asked(system: TableSystem, filter_: Filter) -> tuple[int, int]:
    """Return the rows of the answer, and the files that the query is left to read."""
    return system.answer(filter_), system.files_to_read(filter_)


def bounded(system: Any) -> bool:
    """Return True if the metadata has the files' lowest and highest values; DuckDB 1.4.4 writes none for Iceberg."""
    if not isinstance(system, IcebergDuckDB):
        return True
    return any(task.file.lower_bounds for task in system._load().scan().plan_files())


@pytest.mark.parametrize("name", KINDS)
def test_files_that_cannot_match_are_not_read(name: str, open_table: OpenTable) -> None:
    system = open_table(KINDS[name])
    system.create(rows(0, ["a"]).schema)
    for number, region in enumerate("abc"):
        system.write(rows(ROWS * number, [region]))
    one, none = (1, 0) if bounded(system) else (3, 3)
    assert asked(system, Filter()) == (3 * ROWS, 3)
    assert asked(system, Filter("region = 'b'")) == (ROWS, one)
    assert asked(system, Filter("region IN ('a', 'c') AND id < 4")) == (ROWS, one)
    assert asked(system, Filter("region = 'moon'")) == (0, none)
    assert asked(system, Filter(contains=("message", "l b"))) == (ROWS, 3)
    # Files with overlapping ranges cannot be excluded by their lowest and highest values.
    system.write(rows(3 * ROWS, ["a", "c"]))
    assert asked(system, Filter("region = 'b'")) == (ROWS, one + 1)


def test_duckdb_prunes_files_that_pyiceberg_wrote(open_table: OpenTable) -> None:
    """Show that the bounds missing from the metadata are due to the writer, not to the reader."""
    written = open_table(IcebergPyIceberg)
    written.create(rows(0, ["a"]).schema)
    for number, region in enumerate("abc"):
        written.write(rows(ROWS * number, [region]))
    reader = open_table(IcebergDuckDB)
    reader.table = f"{CATALOG}.{written._namespace}.{TABLE}"
    assert asked(reader, Filter("region = 'b'")) == (ROWS, 1)
    assert asked(reader, Filter("region = 'moon'")) == (0, 0)
