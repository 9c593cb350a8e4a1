"""Recognition of files that hold a month of trips, and the errors for files that do not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidemark.dataset.model import GREEN, YELLOW, check, raw_schema
from tidemark.dataset.synthetic import Layout, chunk
from tidemark.errors import DatasetError

SOME = pa.Table.from_batches([chunk(Layout.of(400, 9), 0, 400)])


def write(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path, compression="zstd", row_group_size=150)
    return path


def replaced(name: str, kind: pa.DataType) -> pa.Table:
    place = SOME.column_names.index(name)
    return SOME.set_column(place, name, SOME[name].cast(kind))


def test_a_yellow_month_is_recognised(tmp_path: Path) -> None:
    found = check(write(tmp_path / "m.parquet", SOME))
    assert (found.kind, found.rows, found.columns, found.unknown) == (YELLOW, 400, YELLOW.columns, ())


def test_a_green_month_is_recognised(tmp_path: Path) -> None:
    schema = raw_schema(GREEN)
    found = check(write(tmp_path / "m.parquet", pa.table([pa.nulls(3, field.type) for field in schema], schema=schema)))
    assert (found.kind.name, found.rows, len(found.columns)) == ("green", 3, 21)


@pytest.mark.parametrize(
    "variant",
    [
        SOME.drop_columns(["cbd_congestion_fee"]),
        SOME.drop_columns(["cbd_congestion_fee", "Airport_fee", "congestion_surcharge"]),
        SOME.rename_columns(["airport_fee" if name == "Airport_fee" else name for name in SOME.column_names]),
        SOME.select(list(reversed(SOME.column_names))),
        replaced("VendorID", pa.int64()),
        replaced("passenger_count", pa.float64()),
        replaced("tpep_pickup_datetime", pa.timestamp("ns")),
        replaced("store_and_fwd_flag", pa.string()),
        SOME.set_column(18, "Airport_fee", pa.nulls(400)),
    ],
    ids=["2024", "2018", "2023", "reordered", "wide", "pandas", "ns", "string", "null"],
)
def test_months_of_other_years_pass(tmp_path: Path, variant: pa.Table) -> None:
    found = check(write(tmp_path / "m.parquet", variant))
    assert found.rows == 400
    assert all(found.name_of(column) in variant.column_names for column in found.columns)
    assert [column.name for column in found.columns] == [
        name for name in raw_schema(YELLOW).names if name.lower() in [n.lower() for n in variant.column_names]
    ]


def test_unknown_column_is_reported(tmp_path: Path) -> None:
    found = check(write(tmp_path / "m.parquet", SOME.append_column("moon_phase", pa.nulls(400, pa.int8()))))
    assert found.unknown == ("moon_phase",)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            SOME.drop_columns(["fare_amount", "mta_tax", "Airport_fee"]),
            r"not a whole yellow month: found VendorID.*; missing, .* columns: fare_amount, mta_tax\. ",
        ),
        (
            SOME.drop_columns(["tpep_pickup_datetime", "extra"]),
            r"neither a yellow nor a green month: found VendorID.*; missing, .*: tpep_pickup_datetime, extra\. ",
        ),
        (pa.table({f"c{n}": [n] for n in range(1000)}), r"found c0, c1, .*, c29, and 970 more; missing"),
        (replaced("fare_amount", pa.string()), r"column 'fare_amount' has type string; allowed.*double"),
        (replaced("VendorID", pa.float64()), r"column 'VendorID' has type double; allowed.*int32, int64"),
        (
            replaced("tpep_pickup_datetime", pa.timestamp("us", "UTC")),
            r"'tpep_pickup_datetime' has type timestamp\[us, tz=UTC\]; allowed.*timestamp\[us\]",
        ),
        (SOME.set_column(0, "VendorID", pa.nulls(400)), r"column 'VendorID' has type null"),
        (SOME.slice(0, 0), r"found 0 rows; allowed: 1 or more"),
        (SOME.append_column("vendorid", SOME["VendorID"]), r"column 'vendorid' more than once"),
        (pa.table({"a": [1]}), r"neither a yellow nor a green month: found a; missing, .*: VendorID, tpep_pickup_dat"),
    ],
)
def test_a_table_that_is_no_month_is_refused(tmp_path: Path, table: pa.Table, said: str) -> None:
    path = write(tmp_path / "m.parquet", table)
    with pytest.raises(DatasetError, match=said) as caught:
        check(path)
    assert str(caught.value).startswith(f"{path}: ")


def _absent(path: Path) -> None: ...


def _text(path: Path) -> None:
    path.write_text("VendorID,tpep_pickup_datetime\n1,2025-11-01\n")


def _tiny(path: Path) -> None:
    path.write_bytes(b"PAR1")


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _bad_footer(path: Path) -> None:
    path.write_bytes(b"PAR1" + bytes(100) + b"\x60\x00\x00\x00PAR1")


def _middle_cut_out(path: Path) -> None:
    whole = write(path, SOME).read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    path.write_bytes(whole[: (len(whole) - footer) // 2] + whole[-footer:])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_absent, "no such file"),
        (Path.mkdir, "found a folder; allowed: one Parquet file"),
        (_text, r"not a Parquet file: it does not begin with PAR1\. "),
        (Path.touch, "not a Parquet file"),
        (_tiny, "truncated"),
        (_loop, "cannot be read"),
        (os.mkfifo, "neither a file nor a link"),
        (_bad_footer, "footer cannot be read"),
        (_middle_cut_out, r"truncated: column '\w+' of row group \d lies at bytes"),
    ],
)
def test_a_path_that_is_no_parquet_file_is_refused(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    path = tmp_path / "m.parquet"
    make(path)
    with pytest.raises(DatasetError, match=said) as caught:
        check(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)


@given(share=st.floats(0, 0.9999))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_truncated_file_is_refused_at_any_length(tmp_path: Path, share: float) -> None:
    path = write(tmp_path / "m.parquet", SOME)
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(DatasetError):
        check(path)
