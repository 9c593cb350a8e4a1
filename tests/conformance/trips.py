"""Rows to write, and the comparison of rows written with rows read."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy
import pyarrow as pa

from tidemark.systems.base import System

YELLOW = pa.schema(
    [
        ("id", pa.int64()),
        ("VendorID", pa.int32()),
        ("tpep_pickup_datetime", pa.timestamp("us")),
        ("tpep_dropoff_datetime", pa.timestamp("us")),
        ("passenger_count", pa.int64()),
        ("trip_distance", pa.float64()),
        ("RatecodeID", pa.int64()),
        ("store_and_fwd_flag", pa.string()),
        ("PULocationID", pa.int32()),
        ("DOLocationID", pa.int32()),
        ("payment_type", pa.int64()),
        ("fare_amount", pa.float64()),
        ("extra", pa.float64()),
        ("mta_tax", pa.float64()),
        ("tip_amount", pa.float64()),
        ("tolls_amount", pa.float64()),
        ("improvement_surcharge", pa.float64()),
        ("total_amount", pa.float64()),
        ("congestion_surcharge", pa.float64()),
        ("Airport_fee", pa.float64()),
        ("cbd_congestion_fee", pa.float64()),
    ]
)

GREEN = pa.schema(
    [
        ("id", pa.int64()),
        ("VendorID", pa.int32()),
        ("lpep_pickup_datetime", pa.timestamp("us")),
        ("lpep_dropoff_datetime", pa.timestamp("us")),
        ("store_and_fwd_flag", pa.large_string()),
        ("RatecodeID", pa.int64()),
        ("PULocationID", pa.int32()),
        ("DOLocationID", pa.int32()),
        ("passenger_count", pa.int64()),
        ("trip_distance", pa.float64()),
        ("fare_amount", pa.float64()),
        ("extra", pa.float64()),
        ("mta_tax", pa.float64()),
        ("tip_amount", pa.float64()),
        ("tolls_amount", pa.float64()),
        ("ehail_fee", pa.float64()),
        ("improvement_surcharge", pa.float64()),
        ("total_amount", pa.float64()),
        ("payment_type", pa.int64()),
        ("trip_type", pa.int64()),
        ("congestion_surcharge", pa.float64()),
        ("cbd_congestion_fee", pa.float64()),
    ]
)

EXTREMES: dict[pa.DataType, list[Any]] = {
    pa.int32(): [0, -1, 2**31 - 1, -(2**31)],
    pa.int64(): [0, -1, 2**63 - 1, -(2**63)],
    pa.float64(): [float("inf"), float("-inf"), float("nan"), -0.0, 5e-324, 1.7976931348623157e308],
    pa.timestamp("us"): [
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999),
        datetime(2025, 11, 2, 1, 30),
    ],
    pa.string(): ["", "Y"],
}

TEXTS = [
    "",
    " ",
    "N",
    "Ærøskøbing",
    "東京",
    "🚕🇺🇸",
    "e\u0301",
    'it\'s "quoted", \\ and %s',
    "a\tb\nc\rd",
    "\u202eabc",
    "x" * 10_000,
]


def trips(schema: pa.Schema, count: int, first_id: int = 0, seed: int = 1) -> pa.Table:
    """Return `count` ordinary rows with ids from `first_id` on."""
    draws = numpy.random.default_rng([seed, first_id])
    columns = []
    for field in schema:
        if field.name == "id":
            values = pa.array(range(first_id, first_id + count), pa.int64())
        elif field.name == "ehail_fee":
            values = pa.nulls(count, field.type)
        elif pa.types.is_integer(field.type):
            values = pa.array(draws.integers(1, 266, count), field.type)
        elif pa.types.is_floating(field.type):
            values = pa.array(draws.integers(0, 10_000, count) / 100, field.type)
        elif pa.types.is_timestamp(field.type):
            seconds = draws.integers(0, 2_592_000, count).tolist()
            values = pa.array([datetime(2025, 11, 1) + timedelta(seconds=s) for s in seconds], field.type)
        else:
            values = pa.array(draws.choice(["Y", "N"], count).tolist(), field.type)
        columns.append(values)
    return pa.Table.from_arrays(columns, schema=schema)


def with_column(rows: pa.Table, name: str, values: pa.Array) -> pa.Table:
    index = rows.schema.get_field_index(name)
    return rows.set_column(index, rows.schema.field(index), values)


def all_null(schema: pa.Schema, count: int, first_id: int) -> pa.Table:
    """Return rows that hold only their ids."""
    columns = [
        pa.array(range(first_id, first_id + count), field.type) if field.name == "id" else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def extremes(schema: pa.Schema, infinity: bool = True) -> pa.Table:
    """Return rows whose columns run through the extreme values of their types; the ids are distinct extremes."""
    count = max(len(values) for values in EXTREMES.values())
    finite = {pa.float64(): [value for value in EXTREMES[pa.float64()] if not math.isinf(value)]}
    outermost = EXTREMES if infinity else EXTREMES | finite
    ids = [-(2**63), 2**63 - 1, *range(count - 2)]
    columns = []
    for field in schema:
        kind = pa.string() if pa.types.is_large_string(field.type) else field.type
        values = ids if field.name == "id" else outermost[kind]
        columns.append(pa.array([values[i % len(values)] for i in range(count)], field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def one_text(schema: pa.Schema) -> pa.Schema:
    """Return `schema` with Arrow's two layouts of text replaced by one."""
    text = [field.with_type(pa.string()) if pa.types.is_large_string(field.type) else field for field in schema]
    return pa.schema(text)


def stored_schema(system: System, schema: pa.Schema) -> pa.Schema:
    """Return `schema` with the types that the system declares its format to force."""
    forced = {mapping.column: mapping.stored for mapping in system.type_mappings(schema)}
    return pa.schema(
        [field.with_type(pa.type_for_alias(forced[field.name])) if field.name in forced else field for field in schema]
    )


def assert_same_rows(found: pa.Table, written: pa.Table, schema: pa.Schema) -> None:
    """Check for the same columns, types and rows in any order; all NaNs are equal, and -0.0 equals 0.0."""
    schema, found = one_text(schema), found.cast(one_text(found.schema))
    assert found.schema.names == schema.names
    assert found.schema.types == schema.types
    found, written = found.sort_by("id").combine_chunks(), written.cast(schema).sort_by("id").combine_chunks()
    ids, ours = (Counter(table.column("id").to_pylist()) for table in (found, written))
    assert ids == ours, f"{(ours - ids).total():,} rows are missing, {(ids - ours).total():,} are too many"
    for name in schema.names:
        left, right = found.column(name), written.column(name)
        if pa.types.is_floating(left.type):
            assert left.is_null().equals(right.is_null()), name
            numpy.testing.assert_array_equal(left.to_numpy(), right.to_numpy(), name)
        else:
            assert left.equals(right), name
