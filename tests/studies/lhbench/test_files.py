"""Tests of the part on many files: the written files, their metadata in each format, and the expected answers."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from tidemark.studies.lhbench.data import many_files
from tidemark.studies.lhbench.script import COUNT, LIMIT, PARTITION, VALUE, Closed

FILES, ROWS = 103, 2


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table that was written in one folder and moved to another, as a store does."""
    folder = tmp_path_factory.mktemp("many")
    beside, place = folder / "beside", folder / "place"
    beside.mkdir()
    with duckdb.connect() as connection:
        told = many_files.make(connection, FILES, ROWS, beside, place)
    assert told["files"] == FILES and told["data_bytes"] > FILES * 1_000
    beside.rename(place)
    return place


def expected() -> list[tuple[object, ...]]:
    return [many_files.row(number, ROWS) for number in range(FILES * ROWS)]


def test_rows_by_sql_are_those_by_arithmetic() -> None:
    with duckdb.connect() as connection:
        assert connection.execute(f"{many_files.base(FILES, ROWS)} ORDER BY ss_item_sk").fetchall() == expected()
    assert many_files.row(207, 2)[:3] == (103, 207, 207) and many_files.row(9_974, 20)[11] == Decimal("0.01")


def test_all_formats_hold_the_same_rows_when_read_without_an_engine(made: Path) -> None:
    table = made / many_files.TABLE
    with duckdb.connect() as connection:
        files = connection.execute(f"SELECT * FROM '{table}/*/*.parquet' ORDER BY ss_item_sk").fetchall()
        delta = DeltaTable(str(table))
        described = made / many_files.MANIFESTS / "v1.metadata.json"
        iceberg = StaticTable.from_metadata(str(described)).scan().to_arrow()
        found = connection.execute("SELECT * FROM iceberg ORDER BY ss_item_sk").fetchall()
    assert files == found == expected()
    assert iceberg.column_names == list(many_files.COLUMNS)
    assert len(delta.file_uris()) == FILES and delta.version() == 0
    assert delta.metadata().partition_columns == [many_files.DATE]


def test_both_formats_have_the_same_metadata_of_each_file(made: Path) -> None:
    log = (made / many_files.TABLE / many_files.LOG / f"{0:020}.json").read_text().splitlines()
    added = [json.loads(line)["add"] for line in log if '"add"' in line]
    table = StaticTable.from_metadata(str(made / many_files.MANIFESTS / "v1.metadata.json"))
    listed = table.inspect.files().to_pylist()
    assert len(added) == len(listed) == FILES
    (hundredth,) = (each for each in added if each["partitionValues"] == {many_files.DATE: str(many_files.SOUGHT)})
    (other,) = (each for each in listed if each["file_path"].endswith(hundredth["path"]))
    stats = json.loads(hundredth["stats"])
    measured = other["readable_metrics"]
    for name in (each for each in many_files.COLUMNS if each != many_files.DATE):
        low, high = (float(measured[name][f"{end}_bound"]) for end in ("lower", "upper"))
        assert (stats["minValues"][name], stats["maxValues"][name]) == (low, high)
    assert (stats["minValues"][many_files.ITEM], stats["maxValues"][many_files.ITEM]) == (200, 201)
    assert (
        hundredth["size"] == other["file_size_in_bytes"] == (made / many_files.TABLE / hundredth["path"]).stat().st_size
    )


def test_closed_form_answers_match_hand_computed_ones() -> None:
    assert Closed(COUNT, 200, 20).number == 4_000
    assert Closed(VALUE, 200, 20).number == 100 % 97
    # Rows 2,000 to 2,019; 2,000 is 60 more than a multiple of 97.
    assert Closed(PARTITION, 200, 20).number == sum(range(60, 80))


@pytest.mark.parametrize(
    ("query", "rows", "words"),
    [
        (COUNT, [(4_000,)], ""),
        (COUNT, [(3_999,)], "3999 in place of 4000"),
        (PARTITION, [("1390",)], ""),
        (PARTITION, [(1_390 + 97,)], "in place of 1390"),
        (VALUE, [], "0 rows of 1"),
        (LIMIT, [tuple(map(str, many_files.row(7, 20)))], ""),
        (LIMIT, [many_files.row(4_000, 20)], "item 4000"),
        (LIMIT, [(*many_files.row(7, 20)[:-1], "0.08")], "other values in ss_net_profit"),
        (LIMIT, [many_files.row(7, 20), many_files.row(8, 20)], "2 rows of 1"),
    ],
)
def test_wrong_answer_is_detected(query: str, rows: list[tuple[object, ...]], words: str) -> None:
    said = Closed(query, 200, 20).difference(rows)
    assert said == words if not words else words in said
