"""Samples of a run, read from its Parquet files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidemark.errors import AnalysisError
from tidemark.runs.serde import printable

OPERATION_COLUMNS = ("start_ns", "rows")  # in operations.parquet of every workload, which may add its own
MACHINE_COLUMNS = ("second", "cpu_percent", "disk_written_bytes")  # in machine.parquet of all versions


type Groups = tuple[tuple[str, NDArray[np.float64]], ...]  # name of each process group, with one value per second


@dataclass(frozen=True, slots=True)
class Seconds:
    """Samples of the full seconds inside the window; NaN where a value could not be read.

    `disk_bytes_per_s` is None if the data's device could not be measured at all.
    """

    second: NDArray[np.float64]
    cpu_percent: NDArray[np.float64]
    disk_bytes_per_s: NDArray[np.float64] | None
    groups: Groups
    length: NDArray[np.float64]  # actual length of each sample in seconds
    memory: Groups  # bytes of memory; empty in runs of older harnesses


def column(path: Path, name: str, *, keep: bool) -> NDArray[np.int64]:
    """Return one column of a file without nulls, read-only; with `keep` it is cached in memory.

    Raises AnalysisError, naming file and column, if the file does not have it: columns depend on the workload.
    """
    return _kept(path, name) if keep else _column(path, name)


@lru_cache(maxsize=1024)
def columns_of(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    return tuple(pq.read_schema(path).names)


@lru_cache(maxsize=64)
def _kept(path: Path, name: str) -> NDArray[np.int64]:
    return _column(path, name)


@lru_cache(maxsize=8)
def words(path: Path, name: str) -> NDArray[np.str_]:
    """Return one text column, read-only; the last ones are cached, as many quantities use the same column."""
    values: NDArray[np.str_] = _column(path, name).astype(str)
    values.setflags(write=False)
    return values


def _column(path: Path, name: str) -> NDArray[np.int64]:
    there = columns_of(path)
    if name not in there:
        raise AnalysisError(f"{path}: found no column '{name}'; allowed: {', '.join(there)}")
    column = _table(path, [name]).column(0).combine_chunks()
    values: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
    values.setflags(write=False)
    return values


def _table(path: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        return pq.read_table(path, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: cannot be read as Parquet: {printable(str(error))}") from error


def read_seconds(path: Path, window_s: float) -> Seconds:
    """Return the samples in machine.parquet that end inside a window of `window_s` seconds."""
    table = _table(path)
    second = _floats(table, "second")
    inside = second <= window_s + 0.05
    length = np.diff(second, prepend=0.0)
    disk = None
    if table.column("disk_written_bytes").null_count < table.num_rows:
        disk = (_floats(table, "disk_written_bytes") / np.maximum(length, 1e-9))[inside]
    cpu, memory = (_of_groups(table, inside, form) for form in (r"cpu_(.+)_percent", r"memory_(.+)_bytes"))
    return Seconds(second[inside], _floats(table, "cpu_percent")[inside], disk, cpu, length[inside], memory)


def _of_groups(table: pa.Table, inside: NDArray[np.bool_], form: str) -> tuple[tuple[str, NDArray[np.float64]], ...]:
    """Return the columns of process groups that existed, by group name, which `form` captures from column names."""
    found = []
    for name in table.column_names:
        group = re.fullmatch(form, name)
        if group and table.column(name).null_count < table.num_rows:
            found.append((group[1], _floats(table, name)[inside]))
    return tuple(found)


def _floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = table.column(name).cast(pa.float64()).to_numpy()
    return values
