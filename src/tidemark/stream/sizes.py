"""Size of a dataset's events in both encodings, after checking that both round-trip without change."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.errors import DatasetError, StreamError
from tidemark.paths import write_atomically
from tidemark.stream.events import Encoding, EventCodec

SAMPLE_ROWS = 500  # of each row group


@dataclass(frozen=True, slots=True)
class EventSizes:
    """Bytes per event, averaged over `sampled` trips: as Arrow columns in memory, and as messages."""

    sampled: int
    arrow_bytes: float
    record_bytes: float
    stream_bytes: float

    @classmethod
    def read(cls, path: Path) -> EventSizes:
        return cls(**json.loads(path.read_text()))

    def write(self, path: Path) -> None:
        write_atomically(path, json.dumps(asdict(self), indent=1) + "\n")


def weigh(trips: Path) -> EventSizes:
    """Encode and decode the first rows of every row group of `trips`; raise StreamError if any value changes.

    Raise DatasetError if the file is not Parquet.
    """
    try:
        file = pq.ParquetFile(trips)
    except pa.ArrowInvalid as error:
        raise DatasetError(f"{trips}: cannot be read as Parquet ({error}); './tidemark all' makes it again") from error
    sampled, arrow_bytes = 0, 0
    messages_bytes = dict.fromkeys(Encoding, 0)
    for group in range(file.metadata.num_row_groups):
        table = file.read_row_group(group).slice(0, SAMPLE_ROWS).replace_schema_metadata(None).combine_chunks()
        batch = table.to_batches()[0]
        # A slice may share the buffers of the complete row group; a copy has the size of its own rows only.
        arrow_bytes += batch.take(pa.array(range(batch.num_rows))).nbytes
        sampled += batch.num_rows
        for encoding in Encoding:
            codec = EventCodec(batch.schema, encoding)
            messages = codec.encode(batch)
            messages_bytes[encoding] += sum(map(len, messages))
            if not codec.assemble(codec.decode(messages)).equals(table):
                raise StreamError(f"{trips}: row group {group}: events in encoding '{encoding}' do not come back whole")
    totals = (arrow_bytes, messages_bytes[Encoding.RECORD], messages_bytes[Encoding.STREAM])
    return EventSizes(sampled, *(total / sampled for total in totals))
