"""Trips as JSON objects, one per message: the format that Kafka Connect, Flink and Spark read without a converter.

Event k is at offset k: there is no schema message, and readers get the schema from elsewhere. Text is built one column
at a time: each value as Arrow casts it to a string, with the quotes and names that JSON requires.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from tidemark.errors import StreamError

BLOCK_BYTES = 8 << 20  # block size of the reader; must exceed the longest event


@dataclass(frozen=True, slots=True)
class JsonCodec:
    """Encoder of trips of one schema into messages, and decoder of messages into tables."""

    schema: pa.Schema

    def encode(self, trips: pa.RecordBatch) -> list[bytes]:
        """Return one message for each row of `trips`, in order."""
        parts: list[pa.Array | str] = []
        for number, (field, column) in enumerate(zip(self.schema, trips.columns, strict=True)):
            parts += ["{" if number == 0 else ",", f"{json.dumps(field.name)}:", _text(field, column)]
        lines = pc.binary_join_element_wise(*parts, "}", "")
        return lines.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]

    def decode(self, messages: Sequence[bytes]) -> pa.Table:
        """Return the events of `messages` in order, as one table; raise StreamError for a malformed message."""
        options = pyarrow.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="error")
        try:
            table = pyarrow.json.read_json(
                io.BytesIO(b"\n".join(messages)),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
                parse_options=options,
            )
        except pa.ArrowInvalid as error:
            raise StreamError(f"a message is no event of JSON: {error}") from error
        if table.num_rows != len(messages):
            raise StreamError(f"found {table.num_rows} events in {len(messages)} messages")
        return table.select(self.schema.names).combine_chunks()


def _text(field: pa.Field, column: pa.Array) -> pa.Array:
    """Return the values of one column as JSON text; raise StreamError for values that JSON cannot represent."""
    kind = field.type
    if pa.types.is_string(kind):
        text = pa.array([None if value is None else json.dumps(value) for value in column.to_pylist()], pa.string())
    elif pa.types.is_timestamp(kind) and kind.tz is None:
        plain = pc.replace_substring(column.cast(pa.string()), pattern=" ", replacement="T", max_replacements=1)
        text = pc.binary_join_element_wise('"', plain, '"', "")
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        text = column.cast(pa.string())
    elif pa.types.is_floating(kind):
        if not pc.all(pc.is_finite(column)).as_py() and column.null_count < len(column):
            raise StreamError(f"column '{field.name}' holds numbers that are not finite, which JSON cannot say")
        text = column.cast(pa.string())
    else:
        raise StreamError(f"column '{field.name}' is {kind}: events of JSON have no such values")
    return text.fill_null("null")
