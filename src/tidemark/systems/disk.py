"""Counts and sizes of files, and the ids stored in them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.fs import FileSystem


def count_and_bytes(files: Iterable[Path]) -> tuple[int, int]:
    """Return the number of files, and their total size in bytes."""
    sizes = [path.stat().st_size for path in files]
    return len(sizes), sum(sizes)


def and_pyarrow(lists_files: str) -> str:
    """Return the name of a reader that lists a table's files by `lists_files` and reads them with PyArrow."""
    return f"{lists_files} and PyArrow {version('pyarrow')} (the Parquet files)"


def read_ids(files: Iterable[PurePath], file_system: FileSystem | None = None) -> pa.ChunkedArray:
    """Return the `id` column (int64) of Parquet files; reads no other column, as there may be 20,000 one-row files.

    `file_system` holds the files; None for the local one.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    chunks: list[pa.Array] = []
    for path in files:
        with pq.ParquetFile(str(path), filesystem=file_system) as file:
            chunks += file.read(columns=["id"]).column(0).chunks
    return pa.chunked_array(chunks, pa.int64())
