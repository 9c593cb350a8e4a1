"""Counting files, and reading the ids that they hold."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def count_and_bytes(files: Iterable[Path]) -> tuple[int, int]:
    """How many files, and their sizes together."""
    sizes = [path.stat().st_size for path in files]
    return len(sizes), sum(sizes)


def read_ids(files: Iterable[Path]) -> pa.ChunkedArray:
    """The `id` column (int64) of Parquet files, of which nothing else is read: there may be 20,000 of one row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    chunks: list[pa.Array] = []
    for path in files:
        with pq.ParquetFile(path) as file:
            chunks += file.read(columns=["id"]).column(0).chunks
    return pa.chunked_array(chunks, pa.int64())
