"""Trips as Kafka messages and back: one event is one trip as an Arrow IPC record batch.

There are two encodings. `record` sends the schema once per topic, as its first message, and each event as a bare record
batch message. `stream` sends each event as a self-contained IPC stream with its schema, as the thesis did.

Events with the same *layout* (the same columns null, strings with equal space) are messages of equal length that
differ only in the bytes of their values. Many of them are written or read at once as one matrix of bytes, one column
of values at a time; pyarrow writes and reads the first message of each layout and gives the positions of its
buffers. Data without such a layout (nested or compressed columns) goes through pyarrow message by message.
Format: https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.errors import StreamError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ID = "id"
END_OF_STREAM = struct.pack("<iI", -1, 0)
_PREFIX = struct.Struct("<ii")  # the continuation marker, and the length of the metadata


class Encoding(StrEnum):
    RECORD = "record"
    STREAM = "stream"


Bytes = npt.NDArray[np.uint8]


def fixed_width(kind: pa.DataType) -> int | None:
    """Return the bytes of one value, or None if values have no fixed width of whole bytes."""
    try:
        bits = kind.bit_width
    except ValueError:
        return None
    return int(bits) // 8 if bits % 8 == 0 and not pa.types.is_nested(kind) else None


@dataclass(frozen=True, slots=True)
class _Column:
    """Position of one column's value inside a message. `width` is in bytes; for a string it is the maximum."""

    null: bool
    start: int
    width: int
    offsets: int | None  # position of a string's two int32 offsets; None for other types


@dataclass(frozen=True, slots=True)
class _Layout:
    head: Bytes  # uint8[bytes before the body], the same in every message of this layout
    length: int
    columns: tuple[_Column, ...]


def _head_length(message: bytes) -> int:
    return _PREFIX.size + int(_PREFIX.unpack_from(message)[1])


def _read_layout(message: bytes, schema: pa.Schema) -> _Layout | None:
    """Return the layout of `message`, or None if its buffers are not plain values at fixed positions."""
    whole = pa.py_buffer(message)
    batch = pa.ipc.read_record_batch(whole, schema)
    if batch.num_rows != 1:
        return None
    head = _head_length(message)
    columns = []
    for column in batch.columns:
        buffers = column.buffers()
        text = pa.types.is_string(column.type)
        width = buffers[-1].size if text and buffers[-1] is not None else 0 if text else fixed_width(column.type)
        if width is None or len(buffers) != (3 if text else 2):
            return None
        start = buffers[-1].address - whole.address if width else head
        offsets = buffers[1].address - whole.address if text else None
        if not (head <= start <= len(message) - width and (offsets is None or head <= offsets <= len(message) - 8)):
            return None  # decompressed or copied: not part of the message
        columns.append(_Column(column.null_count > 0, start, width, offsets))
    return _Layout(np.frombuffer(message, np.uint8, head), len(message), tuple(columns))


class EventCodec:
    """Encoder of trips of one schema into messages, and decoder of messages into tables.

    Not thread-safe; each thread needs a separate instance.
    """

    def __init__(self, schema: pa.Schema, encoding: Encoding = Encoding.RECORD) -> None:
        if schema.get_field_index(ID) < 0 or schema.field(ID).type != pa.int64():
            raise StreamError(f"an event needs the column '{ID}' of type int64; found {schema.names}")
        self.schema = schema
        self.encoding = encoding
        self.schema_message = schema.serialize().to_pybytes()
        self._layouts: dict[bytes, _Layout | None] = {}

    @classmethod
    def from_schema_message(cls, message: bytes, encoding: Encoding) -> EventCodec:
        """Return the codec of a topic from the topic's first message."""
        return cls(pa.ipc.read_schema(pa.py_buffer(message)), encoding)

    def encode(self, trips: pa.RecordBatch) -> list[bytes]:
        """Return one message for each row of `trips`, in order."""
        messages = self._encode_by_layout(trips)
        if messages is None:
            messages = [trips.slice(row, 1).serialize().to_pybytes() for row in range(trips.num_rows)]
        if self.encoding is Encoding.STREAM:
            return [self.schema_message + message + END_OF_STREAM for message in messages]
        return messages

    def decode_one(self, message: bytes) -> pa.RecordBatch:
        """Return the event of one message as a record batch of one row."""
        if self.encoding is Encoding.STREAM:
            return pa.ipc.open_stream(message).read_next_batch()
        return pa.ipc.read_record_batch(pa.py_buffer(message), self.schema)

    def decode(self, messages: Sequence[bytes]) -> list[pa.RecordBatch]:
        """Return the events of `messages` in order: one record batch, or one per message in encoding `stream`."""
        if self.encoding is Encoding.STREAM or len(messages) == 1:
            return [self.decode_one(message) for message in messages]
        layout = self._layout(messages[0])
        joined = b"".join(messages)
        if layout is not None and len(joined) == layout.length * len(messages):
            matrix = np.frombuffer(joined, np.uint8).reshape(len(messages), layout.length)
            if bool((matrix[:, : len(layout.head)] == layout.head).all()):
                return [self._gather(matrix, layout)]
        return [self._decode_mixed(messages)]

    def assemble(self, batches: list[pa.RecordBatch]) -> pa.Table:
        """Return `batches` as one table with one chunk per column."""
        table = pa.Table.from_batches(batches)
        return table if len(batches) == 1 else table.combine_chunks()

    def as_collected(self) -> EventCodec:
        """Return a codec whose tables have one chunk for each event, as events were collected one by one."""
        return _CodecOfRows(self.schema, self.encoding)

    def _layout(self, message: bytes) -> _Layout | None:
        key = message[: _head_length(message)]
        try:
            return self._layouts[key]
        except KeyError:
            layout = self._layouts[key] = _read_layout(message, self.schema)
            return layout

    def _gather(self, matrix: Bytes, layout: _Layout) -> pa.RecordBatch:
        """Return the rows of `matrix` (uint8[messages, length]), all of `layout`, as one record batch."""
        count = len(matrix)
        arrays = []
        for field, column in zip(self.schema, layout.columns, strict=True):
            if column.null:
                arrays.append(pa.nulls(count, field.type))
            elif column.offsets is None:
                values = np.ascontiguousarray(matrix[:, column.start : column.start + column.width])
                arrays.append(pa.Array.from_buffers(field.type, count, [None, pa.py_buffer(values)], 0))
            else:
                arrays.append(_gather_text(matrix, column))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _decode_mixed(self, messages: Sequence[bytes]) -> pa.RecordBatch:
        """Decode messages of several layouts: decode each layout's rows together, then restore the order."""
        groups: dict[bytes, list[int]] = {}
        for row, message in enumerate(messages):
            groups.setdefault(message[: _head_length(message)], []).append(row)
        batches, order = [], []
        for rows in groups.values():
            layout = self._layout(messages[rows[0]])
            chosen = [messages[row] for row in rows]
            if layout is None:
                batches += [self.decode_one(message) for message in chosen]
            else:
                joined = np.frombuffer(b"".join(chosen), np.uint8)
                batches.append(self._gather(joined.reshape(len(rows), layout.length), layout))
            order += rows
        together = pa.concat_batches(batches)
        return together.take(pa.array(np.argsort(np.array(order))))

    def _encode_by_layout(self, trips: pa.RecordBatch) -> list[bytes] | None:
        """Return the messages of all rows by their layouts, or None if a column does not allow it."""
        keys = _layout_keys(trips)
        if keys is None:
            return None
        messages: list[bytes] = [b""] * trips.num_rows
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        for number, row in enumerate(first):
            message = trips.slice(int(row), 1).serialize().to_pybytes()
            layout = self._layout(message)
            if layout is None:
                return None
            rows = np.flatnonzero(group == number)
            chosen = trips if len(rows) == trips.num_rows else trips.take(pa.array(rows))
            packed = _scatter(chosen, message, layout).tobytes()
            length = layout.length
            for place, position in enumerate(rows.tolist()):
                messages[position] = packed[place * length : (place + 1) * length]
        return messages


class _CodecOfRows(EventCodec):
    """Codec that decodes each message by itself and joins the events without copying them."""

    def decode(self, messages: Sequence[bytes]) -> list[pa.RecordBatch]:
        return [self.decode_one(message) for message in messages]

    def assemble(self, batches: list[pa.RecordBatch]) -> pa.Table:
        return pa.Table.from_batches(batches)


def _gather_text(matrix: Bytes, column: _Column) -> pa.Array:
    """Return the strings of one column: rows of a layout reserve equal space for them, but lengths may differ."""
    assert column.offsets is not None
    count = len(matrix)
    ends = np.ascontiguousarray(matrix[:, column.offsets : column.offsets + 8]).view(np.int32)
    lengths = ends[:, 1] - ends[:, 0]
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    room = matrix[:, column.start : column.start + column.width]
    values = room[(np.arange(column.width) >= ends[:, :1]) & (np.arange(column.width) < ends[:, 1:])]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.string(), count, buffers, 0)


def _layout_keys(trips: pa.RecordBatch) -> npt.NDArray[np.uint64] | None:
    """Return uint64[rows], equal for rows of equal layout; None if a column has no fixed-width values."""
    keys = np.zeros(trips.num_rows, np.uint64)
    for column in trips.columns:
        if pa.types.is_string(column.type):
            lengths = pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
            keys = keys * np.uint64(1_000_003) + lengths.astype(np.uint64)
        elif fixed_width(column.type) is None:
            return None
        if column.null_count:
            keys = keys * np.uint64(1_000_003) + column.is_null().to_numpy(zero_copy_only=False)
    return keys


def _scatter(trips: pa.RecordBatch, template: bytes, layout: _Layout) -> Bytes:
    """Return the messages of `trips` as uint8[rows, length]; they differ from `template` only in fixed positions."""
    count = trips.num_rows
    matrix = np.empty((count, layout.length), np.uint8)
    matrix[:] = np.frombuffer(template, np.uint8)
    for array, column in zip(trips.columns, layout.columns, strict=True):
        if column.null or not column.width:
            continue
        flat = np.frombuffer(array.buffers()[-1], np.uint8)
        if column.offsets is None:
            begin, width = array.offset * column.width, column.width
        else:
            begin, end = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + 2].tolist()
            width = end - begin  # the same for all rows here and for the template
        block = flat[begin : begin + count * width].reshape(count, width)
        matrix[:, column.start : column.start + width] = block
    return matrix


def with_ids(trips: pa.RecordBatch, first_id: int) -> pa.RecordBatch:
    """Return `trips` with the ids `first_id`, `first_id` + 1, ... instead of their own."""
    ids = pa.array(np.arange(first_id, first_id + trips.num_rows, dtype=np.int64))
    return trips.set_column(trips.schema.get_field_index(ID), trips.schema.field(ID), ids)


def endless(trips: pq.ParquetFile, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the trips of a file over and over, at most `rows` at a time, with the ids 0, 1, 2, ..."""
    schema, first_id = trips.schema_arrow.remove_metadata(), 0
    while True:
        for batch in trips.iter_batches(batch_size=rows, use_threads=False):
            # A chunk may be a slice of a larger buffer; only its own rows matter.
            yield with_ids(pa.RecordBatch.from_arrays(batch.columns, schema=schema), first_id)
            first_id += batch.num_rows
