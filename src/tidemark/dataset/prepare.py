"""Preparation of raw trips as one file for events: an id column first, and the same types for every month."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.dataset.files import replacing
from tidemark.dataset.model import Column, TripFile, open_parquet, plain_type
from tidemark.dataset.source import Acquired, say
from tidemark.errors import DatasetError
from tidemark.paths import write_atomically
from tidemark.progress import Progress
from tidemark.runs.dataset import PreparedColumn, Provenance

ROW_GROUP_ROWS = 131_072
ID = "id"


def prepare(acquired: Acquired, target: Path, rows: int | None = None) -> Provenance:
    """Write the first `rows` trips (all by default) to `target` and their provenance next to it; return the latter.

    Columns: `id` (int64, 0..n-1, in the order of the files and their rows), then those of the months of
    2025 that any of the files has, null where a file lacks one. Memory is constant. Raises DatasetError for
    truncated or corrupt pages and for values that do not fit a column's type; then no file is left behind.
    """
    columns = tuple(
        column for column in acquired.files[0].kind.columns if any(column in file.columns for file in acquired.files)
    )
    schema = pa.schema([(ID, pa.int64()), *((column.name, plain_type(column)) for column in columns)])
    total = acquired.rows if rows is None else min(rows, acquired.rows)
    departures = _departures(acquired, columns, total)
    for note in departures:
        say(note)
    provenance = Provenance(
        source=acquired.source,
        synthetic=acquired.synthetic,
        name=acquired.name,
        kind=acquired.kind,
        rows=total,
        sha256=acquired.sha256,
        columns=tuple(PreparedColumn(field.name, str(field.type)) for field in schema),
        notes=acquired.notes + departures,
        raw=acquired.raw,
        first_id=0,
        last_id=total - 1,
    )
    with (
        replacing(target) as sink,
        pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer,
        Progress("preparing trips", total, " rows") as progress,
    ):
        done = 0
        for table in _batches(acquired.files, columns, schema):
            table = table.slice(0, total - done)
            ids = pa.array(np.arange(done, done + table.num_rows, dtype=np.int64))
            writer.write_table(table.add_column(0, schema.field(ID), ids), row_group_size=ROW_GROUP_ROWS)
            done += table.num_rows
            progress.update(done)
            if done == total:
                break
        if done != total:
            raise DatasetError(f"{acquired.files[-1].path}: found {done:,} rows; the footers name {total:,}.")
    write_atomically(target.with_name("dataset.json"), provenance.to_json())
    return provenance


def _departures(acquired: Acquired, columns: tuple[Column, ...], total: int) -> tuple[str, ...]:
    """Return notes for readers of results on the differences between these trips and the files."""
    notes = []
    if total < acquired.rows:
        notes.append(f"the first {total:,} of {acquired.rows:,} rows")
    for file in acquired.files:
        if file.unknown:
            notes.append(f"{file.path.name}: columns that are not known were left out: {', '.join(file.unknown)}")
        absent = [column.name for column in columns if column not in file.columns]
        if absent:
            notes.append(f"{file.path.name}: null, for want of the column: {', '.join(absent)}")
    return tuple(notes)


def _batches(files: tuple[TripFile, ...], columns: tuple[Column, ...], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows of the files, in order, with the columns of `schema` except the id: each table a row group."""
    plain = schema.remove(0)
    for trips in files:
        names = [name for column in columns if (name := trips.name_of(column)) is not None]
        with open_parquet(trips.path) as file:
            try:
                for batch in file.iter_batches(ROW_GROUP_ROWS, columns=names):
                    yield pa.table([_column(batch, trips, column) for column in columns], schema=plain)
            except (pa.ArrowException, OSError) as error:
                raise DatasetError(
                    f"{trips.path}: truncated or corrupt: a page cannot be read: {error}. Get the file again."
                ) from error


def _column(batch: pa.RecordBatch, trips: TripFile, column: Column) -> pa.Array:
    name, kind = trips.name_of(column), plain_type(column)
    if name is None:
        return pa.nulls(batch.num_rows, kind)
    try:
        return batch.column(name).cast(kind)
    except pa.ArrowInvalid as error:
        raise DatasetError(
            f"{trips.path}: column '{name}' holds a value that does not fit the type {kind}: {error}."
        ) from error
