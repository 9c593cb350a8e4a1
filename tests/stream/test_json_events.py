"""Events encoded as JSON objects decode unchanged, and values that JSON cannot represent are refused."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from tests.conformance.trips import YELLOW, all_null, trips, with_column

from tidemark.errors import StreamError
from tidemark.stream.json_events import JsonCodec

GREEK = 'it\'s "quoted", \\ and Ærøskøbing\n'


def test_events_round_trip_with_nulls_text_and_every_digit() -> None:
    rows = trips(YELLOW, 300)
    rows = with_column(rows, "store_and_fwd_flag", pa.array([GREEK, None, ""] * 100))
    rows = with_column(rows, "tip_amount", pa.array([0.1 + 0.2, -1e-300, None] * 100))
    rows = pa.concat_tables([rows, all_null(YELLOW, 5, 300)])
    codec = JsonCodec(YELLOW)
    (batch,) = rows.combine_chunks().to_batches()
    messages = codec.encode(batch)
    assert codec.decode(messages).equals(rows.combine_chunks())
    assert codec.decode(messages[7:8]).equals(rows.slice(7, 1).combine_chunks())
    first = json.loads(messages[0])
    assert list(first) == YELLOW.names and first["store_and_fwd_flag"] == GREEK and first["id"] == 0
    assert first["tpep_pickup_datetime"][10] == "T"  # ISO 8601, which Connect, Flink and Spark accept
    assert json.loads(messages[-1])["tip_amount"] is None


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_cannot_represent_are_refused(number: float) -> None:
    (batch,) = with_column(trips(YELLOW, 2), "extra", pa.array([1.0, number])).combine_chunks().to_batches()
    with pytest.raises(StreamError, match="column 'extra' holds numbers that are not finite"):
        JsonCodec(YELLOW).encode(batch)


def test_invalid_event_is_refused() -> None:
    codec = JsonCodec(YELLOW)
    with pytest.raises(StreamError, match="no event of JSON"):
        codec.decode([b'{"id": 1, "another": 2}'])
    with pytest.raises(StreamError, match="no event of JSON"):
        codec.decode([b'{"id": "one"}'])
