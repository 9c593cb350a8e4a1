"""Prepared trips: ids, plain types, any month, and no file left if pages are broken."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.dataset import Provenance, acquire, make_dataset, prepare
from tidemark.dataset.files import full_disk_named, replacing
from tidemark.dataset.model import GREEN, raw_schema
from tidemark.dataset.prepare import ROW_GROUP_ROWS
from tidemark.dataset.synthetic import Layout, chunk, write_replica
from tidemark.errors import DatasetError, DiskFull
from tidemark.paths import Workspace
from tidemark.settings import DatasetConfig

SOME = pa.Table.from_batches([chunk(Layout.of(500, 9), 0, 500)])


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def month(path: Path, table: pa.Table = SOME) -> Path:
    pq.write_table(table, path, compression="zstd", row_group_size=200)
    return path


def prepared(workspace: Workspace, *paths: Path, rows: int | None = None) -> tuple[pa.Table, Provenance]:
    target = workspace.data / "prepared" / "trips.parquet"
    provenance = make_dataset(DatasetConfig(path=paths, rows=rows), 0, workspace, target)
    assert Provenance.read(target.with_name("dataset.json")) == provenance
    assert sorted(path.name for path in target.parent.iterdir()) == ["dataset.json", "trips.parquet"]
    return pq.read_table(target), provenance


def test_id_column_is_prepended_and_nothing_else_changes(workspace: Workspace, tmp_path: Path) -> None:
    table, provenance = prepared(workspace, month(tmp_path / "m.parquet"))
    assert table["id"].to_pylist() == list(range(500))
    assert table.column_names == ["id", *SOME.column_names]
    assert table.schema.field("store_and_fwd_flag").type == pa.string()
    plain = SOME.set_column(6, "store_and_fwd_flag", SOME["store_and_fwd_flag"].cast(pa.string()))
    assert table.drop_columns(["id"]).equals(plain)
    assert (provenance.first_id, provenance.last_id, provenance.rows) == (0, 499, 500)
    assert (provenance.source, provenance.synthetic, provenance.kind) == ("path", False, "yellow")
    assert [(column.name, column.type) for column in provenance.columns] == [
        (field.name, str(field.type)) for field in table.schema
    ]
    assert provenance.notes == ()


def test_one_row_is_a_dataset(workspace: Workspace, tmp_path: Path) -> None:
    table, provenance = prepared(workspace, month(tmp_path / "m.parquet", SOME.slice(499)))
    assert table["id"].to_pylist() == [0]
    assert provenance.last_id == 0


def test_row_groups_are_full_regardless_of_those_of_the_file(workspace: Workspace, tmp_path: Path) -> None:
    rows = 2 * ROW_GROUP_ROWS + 5
    write_replica(tmp_path / "a.parquet", rows, 1)
    write_replica(tmp_path / "b.parquet", 77, 2)
    table, provenance = prepared(workspace, tmp_path / "a.parquet", tmp_path / "b.parquet")
    metadata = pq.read_metadata(workspace.data / "prepared" / "trips.parquet")
    groups = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert groups == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 5, 77], "full but for the last one of each file"
    assert np.array_equal(table["id"].to_numpy(), np.arange(rows + 77))
    assert [(file.name, file.rows) for file in provenance.raw] == [("a.parquet", rows), ("b.parquet", 77)]
    tail = pq.read_table(tmp_path / "b.parquet")["total_amount"].to_pylist()
    assert table["total_amount"].slice(rows).to_pylist() == tail


@pytest.mark.parametrize("rows", [1, 3, 199, 200, 201, 499, 500, 501])
def test_first_rows_can_be_selected(workspace: Workspace, tmp_path: Path, rows: int) -> None:
    table, provenance = prepared(workspace, month(tmp_path / "m.parquet"), rows=rows)
    assert table.num_rows == provenance.rows == min(rows, 500)
    assert table["total_amount"].equals(SOME["total_amount"].slice(0, rows))
    assert provenance.notes == ((f"the first {rows:,} of 500 rows",) if rows < 500 else ())


def test_months_of_several_years_become_one_table(workspace: Workspace, tmp_path: Path) -> None:
    old = SOME.drop_columns(["cbd_congestion_fee"])
    old = old.set_column(3, "passenger_count", old["passenger_count"].cast(pa.float64()))
    old = old.set_column(0, "VendorID", old["VendorID"].cast(pa.int64()))
    old = old.set_column(1, "tpep_pickup_datetime", old["tpep_pickup_datetime"].cast(pa.timestamp("ns")))
    old = old.rename_columns(["airport_fee" if name == "Airport_fee" else name for name in old.column_names])
    new = month(tmp_path / "new.parquet", SOME.append_column("moon_phase", pa.nulls(500, pa.int8())))
    table, provenance = prepared(workspace, month(tmp_path / "old.parquet", old), new)
    assert table.column_names == ["id", *SOME.column_names]
    for column in ("passenger_count", "VendorID", "tpep_pickup_datetime", "Airport_fee"):
        assert table[column].slice(0, 500).to_pylist() == SOME[column].to_pylist(), column
    assert table["cbd_congestion_fee"].slice(0, 500).null_count == 500
    assert table["cbd_congestion_fee"].slice(500).to_pylist() == SOME["cbd_congestion_fee"].to_pylist()
    assert provenance.notes == (
        "old.parquet: null, for want of the column: cbd_congestion_fee",
        "new.parquet: columns that are not known were left out: moon_phase",
    )


def test_a_green_month_is_prepared(workspace: Workspace, tmp_path: Path) -> None:
    schema = raw_schema(GREEN)
    green = pa.table([pa.array([None, None], field.type) for field in schema], schema=schema)
    table, provenance = prepared(workspace, month(tmp_path / "g.parquet", green))
    assert (table.num_rows, provenance.kind, len(provenance.columns)) == (2, "green", 22)


def test_a_value_that_does_not_fit_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    half = SOME.set_column(3, "passenger_count", pa.array([1.5] * 500))
    with pytest.raises(DatasetError, match=r"m\.parquet: column 'passenger_count' holds a value .* int64"):
        prepared(workspace, month(tmp_path / "m.parquet", half))
    assert list((workspace.data / "prepared").iterdir()) == []


def test_broken_pages_are_refused_and_the_earlier_dataset_kept(workspace: Workspace, tmp_path: Path) -> None:
    path = month(tmp_path / "m.parquet")
    before, _ = prepared(workspace, path)
    column = pq.read_metadata(path).row_group(1).column(10)
    content = bytearray(path.read_bytes())
    place = column.dictionary_page_offset
    content[place : place + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)
    with pytest.raises(DatasetError, match=r"m\.parquet: truncated or corrupt: a page cannot be read"):
        prepared(workspace, path)
    assert pq.read_table(workspace.data / "prepared" / "trips.parquet").equals(before)


def test_a_replica_with_a_flipped_bit_is_found_by_its_page_checksums(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "m.parquet"
    write_replica(path, 300, 1)
    column = pq.read_metadata(path).row_group(0).column(16)
    content = bytearray(path.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size - 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DatasetError, match="a page cannot be read"):
        prepared(workspace, path)


def test_the_same_trips_make_the_same_file(workspace: Workspace, tmp_path: Path) -> None:
    acquired = acquire(DatasetConfig(path=(month(tmp_path / "m.parquet"),)), 0, workspace)
    targets = [tmp_path / name / "trips.parquet" for name in ("one", "two")]
    one, two = (prepare(acquired, target) for target in targets)
    assert targets[0].read_bytes() == targets[1].read_bytes()
    assert one == two


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "no such file"),
        ("{", "cannot be read as a dataset's provenance"),
        ("[]", "cannot be read as a dataset's provenance"),
        (json.dumps({"schema_version": 99}), r"found schema_version 99; allowed: 1"),
        (json.dumps({"schema_version": 1}), "cannot be read as a dataset's provenance"),
    ],
)
def test_a_broken_provenance_is_refused(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "dataset.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DatasetError, match=said):
        Provenance.read(path)


def test_full_disk_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "trips.parquet"
    with pytest.raises(DiskFull, match=r"trips\.parquet: no room left"), replacing(path) as file:
        file.write(b"x")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="other"), full_disk_named(path):
        raise ValueError("other")
