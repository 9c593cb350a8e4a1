"""Events decode to what was encoded: every layout, every fallback, both encodings."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.errors import StreamError
from tidemark.stream.events import Encoding, EventCodec, with_ids

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("vendor", pa.int32()),
        ("pickup", pa.timestamp("us")),
        ("fare", pa.float64()),
        ("flag", pa.string()),
        ("passengers", pa.int64()),
    ]
)

row = st.fixed_dictionaries(
    {
        "vendor": st.none() | st.integers(-(2**31), 2**31 - 1),
        "pickup": st.none() | st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2200, 1, 1)),
        "fare": st.none() | st.floats(allow_nan=False),
        "flag": st.none() | st.text(max_size=5),
        "passengers": st.none() | st.integers(-(2**63), 2**63 - 1),
    }
)


def batch_of(rows: list[dict[str, object]], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": place, **each} for place, each in enumerate(rows)], schema=schema)


@settings(max_examples=150, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=40), encoding=st.sampled_from(list(Encoding)))
def test_events_round_trip(rows: list[dict[str, object]], encoding: Encoding) -> None:
    batch = batch_of(rows)
    codec = EventCodec(SCHEMA, encoding)
    messages = codec.encode(batch)
    assert len(messages) == len(rows)
    assert codec.assemble(codec.decode(messages)).equals(pa.Table.from_batches([batch]))
    rows = codec.as_collected()
    collected = rows.assemble(rows.decode(messages))
    assert collected.equals(pa.Table.from_batches([batch])), "the same rows"
    assert {column.num_chunks for column in collected.columns} == {batch.num_rows}, "in a chunk each"
    for place, message in enumerate(messages):
        assert codec.decode_one(message).equals(batch.slice(place, 1))


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(row, min_size=1, max_size=20))
def test_messages_are_compatible_with_pyarrow(rows: list[dict[str, object]]) -> None:
    batch = batch_of(rows)
    ours = EventCodec(SCHEMA).encode(batch)
    theirs = [batch.slice(place, 1).serialize().to_pybytes() for place in range(batch.num_rows)]
    for mine, plain in zip(ours, theirs, strict=True):
        assert pa.ipc.read_record_batch(mine, SCHEMA).equals(pa.ipc.read_record_batch(plain, SCHEMA))
    assert EventCodec(SCHEMA).assemble(EventCodec(SCHEMA).decode(theirs)).equals(pa.Table.from_batches([batch]))


def test_a_slice_with_an_offset_is_encoded_from_its_own_rows() -> None:
    batch = batch_of([{"vendor": n, "flag": "NY"[n % 2], "fare": n / 7, "passengers": n} for n in range(100)])
    codec = EventCodec(SCHEMA)
    part = batch.slice(37, 21)
    assert codec.assemble(codec.decode(codec.encode(part))).equals(pa.Table.from_batches([part]))


def test_columns_without_a_plain_layout_go_through_pyarrow() -> None:
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.string())), ("paid", pa.bool_())])
    rows = [{"tags": ["a", None], "paid": True}, {"tags": None, "paid": None}, {"tags": [], "paid": False}]
    batch = batch_of(rows, schema)
    codec = EventCodec(schema)
    assert codec.assemble(codec.decode(codec.encode(batch))).equals(pa.Table.from_batches([batch]))


def test_schema_message_makes_the_same_codec() -> None:
    codec = EventCodec(SCHEMA)
    again = EventCodec.from_schema_message(codec.schema_message, Encoding.RECORD)
    assert again.schema.equals(SCHEMA)


def test_stream_event_is_self_contained() -> None:
    batch = batch_of([{"vendor": 1, "flag": "é"}])
    (message,) = EventCodec(SCHEMA, Encoding.STREAM).encode(batch)
    assert pa.ipc.open_stream(message).read_all().equals(pa.Table.from_batches([batch]))


def test_only_ids_are_replaced() -> None:
    batch = batch_of([{"vendor": 5}, {"vendor": 6}])
    moved = with_ids(batch, 1_000_000_000_000)
    assert moved.column("id").to_pylist() == [1_000_000_000_000, 1_000_000_000_001]
    assert moved.column("vendor").equals(batch.column("vendor"))


def test_an_event_without_an_id_is_refused() -> None:
    with pytest.raises(StreamError, match="int64"):
        EventCodec(pa.schema([("id", pa.int32())]))


def test_layouts_do_not_grow_with_the_events() -> None:
    rng = np.random.default_rng(1)
    rows = [{"vendor": int(v), "flag": "N" if v % 2 else None} for v in rng.integers(0, 100, 3000)]
    codec = EventCodec(SCHEMA)
    codec.decode(codec.encode(batch_of(rows)))
    assert len(codec._layouts) == 2
