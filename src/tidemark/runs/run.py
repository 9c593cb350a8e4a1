"""One measured window: its files, read and checked, and its samples, from its Parquet files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidemark.errors import AnalysisError
from tidemark.runs.dataset import Provenance
from tidemark.runs.manifest import Footprint, Manifest
from tidemark.runs.serde import Fields, printable, read

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

RUN_FILES = ("run.json", "operations.parquet", "machine.parquet")
COLD, COLD_START, FIRST, HOT = "cold", "cold start", "first run", "hot"
STATES = (
    "'Cold start': the files of servers and clients were not in the page cache before the servers started, as after a "
    "restart. 'Cold': they were not in it when the window opened either, with servers and client running. "
    "'First run': neither could be shown for run 0."
)
MOST_ROWS, MOST_COLUMNS = 200_000_000, 1_000  # limits of a file of a run: many times what windows produce
NAME = re.compile(r"[\w.-]{1,200}")  # of a column, which becomes one of the database
WORDS = re.compile(r"[\w. -]{1,200}")  # of a column of machine.parquet: groups of processes may have several words
MOST_KEPT = 500_000  # maximum number of operations for which columns stay in memory once read, 4 MB each
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


@lru_cache(maxsize=1024)
def columns_of(path: Path) -> tuple[str, ...]:
    """Return the names of the columns of a file."""
    return tuple(pq.read_schema(path).names)


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


_kept = lru_cache(maxsize=64)(_column)


def _table(path: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:  # a dataset of one file takes longer to open than to read
            return file.read(columns)
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: cannot be read as Parquet: {printable(str(error))}") from error


@lru_cache(maxsize=8)
def read_seconds(path: Path, window_s: float) -> Seconds:
    """Return the samples in machine.parquet that end inside a window of `window_s` seconds.

    The last ones are cached, as many quantities of a run use them.
    """
    table = _table(path)
    second = _floats(table, "second")
    inside = second <= window_s + 0.05
    length = np.diff(second, prepend=0.0)
    disk = None
    if table.column("disk_written_bytes").null_count < table.num_rows:
        disk = (_floats(table, "disk_written_bytes") / np.maximum(length, 1e-9))[inside]
    cpu, memory = (_of_groups(table, inside, form) for form in (r"cpu_(.+)_percent", r"memory_(.+)_bytes"))
    return Seconds(second[inside], _floats(table, "cpu_percent")[inside], disk, cpu, length[inside], memory)


def _of_groups(table: pa.Table, inside: NDArray[np.bool_], form: str) -> Groups:
    """Return the columns of process groups that existed, by group name, which `form` captures from column names."""
    return tuple(
        (group[1], _floats(table, name)[inside])
        for name in table.column_names
        if (group := re.fullmatch(form, name)) and table.column(name).null_count < table.num_rows
    )


def _floats(table: pa.Table, name: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = table.column(name).cast(pa.float64()).to_numpy()
    return values


@dataclass(frozen=True, slots=True)
class Run:
    """One measured window."""

    directory: Path
    label: str  # "ducklake/single/3fa81c2b77de/run-1", independent of the run set's folder
    manifest: Manifest

    @property
    def number(self) -> int:
        return self.manifest.run

    @property
    def repeat(self) -> int:
        """Number of its repeat of the series, from 1."""
        return self.manifest.series.repeat

    @property
    def cold(self) -> bool:
        """True for run 0, before which everything was made cold; `state` states how cold it was."""
        return self.manifest.cold

    @property
    def state(self) -> str:
        """State supported by the cold proofs: cold, cold start or first run for run 0, and hot for all others."""
        if not self.cold:
            return HOT
        opening = self.manifest.opening
        if opening is not None and opening.verdict == COLD:
            return COLD
        return COLD_START if self.manifest.cold_proof.verdict == COLD else FIRST

    @property
    def disturbed(self) -> tuple[str, ...]:
        """Reasons why it counts as disturbed; empty if it does not."""
        return self.manifest.interference.disturbed if self.manifest.interference else ()

    @property
    def footprint(self) -> Footprint:
        """Size of its table on disk; raises AnalysisError if its workload has no table."""
        return self._said(self.manifest.footprint, "footprint")

    @property
    def dataset(self) -> Provenance:
        """Provenance of the trips that it reads; raises AnalysisError if its workload reads none."""
        return self._said(self.manifest.dataset, "dataset")

    def record[T: DataclassInstance](self, kind: type[T]) -> T:
        """Return the results specific to its workload as a `kind`; raise AnalysisError, naming file and key."""
        return read(kind, Fields(str(self.directory / "run.json"), dict(self.manifest.found), "found."))

    def _said[T](self, value: T | None, key: str) -> T:
        if value is None:
            raise AnalysisError(
                f"{self.directory / 'run.json'}: key '{key}': found nothing; allowed: an object, where this is read "
                f"from a run. The workload '{self.manifest.series.workload}' has none."
            )
        return value

    @property
    def files(self) -> tuple[str, ...]:
        """Names of its files: first those that every run has, then those of its workload."""
        own = sorted(path.name for path in self.directory.glob("*.parquet") if path.name not in RUN_FILES)
        return (*RUN_FILES, *own)

    @property
    def elapsed_s(self) -> float:
        return self.manifest.elapsed_ns / 1e9

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column of operations.parquet, one value per operation in order of time; read-only.

        Raises AnalysisError, naming the file, if the workload of this run does not have the column.
        """
        path, is_small = self.directory / "operations.parquet", self.manifest.operations <= MOST_KEPT
        return _kept(path, name) if is_small else _column(path, name)

    def words(self, name: str) -> NDArray[np.str_]:
        """Return a text column of operations.parquet, as `column` does."""
        return words(self.directory / "operations.parquet", name)

    def has(self, name: str) -> bool:
        """Return True if operations.parquet of this run has the column `name`."""
        return name in columns_of(self.directory / "operations.parquet")

    def elapsed_ns(self) -> NDArray[np.int64]:
        """Return the latency of each operation in nanoseconds, in order of time."""
        return self.column("write_ns" if self.has("write_ns") else "elapsed_ns")

    def cycle_ns(self) -> NDArray[np.int64]:
        """Return the nanoseconds from the start of each operation to that of the next, or to the window's end."""
        starts = self.column("start_ns")
        return np.diff(starts, append=max(self.manifest.elapsed_ns, int(starts[-1]) + 1))

    def seconds(self) -> Seconds:
        """Return the machine's samples, without a last one that ends after the window.

        Disk bytes are None if they are not the system's: see `Disk.why_no_seconds`.
        """
        found = read_seconds(self.directory / "machine.parquet", self.elapsed_s)
        return found if self.manifest.disk.why_no_seconds is None else replace(found, disk_bytes_per_s=None)


def read_run(directory: Path, identity: str, number: int, kept: Path | None = None) -> Run:
    """Read run `number` of the series `identity`; raise AnalysisError, naming the file, if it is invalid.

    `kept` is the folder of a disturbed run that was measured again.
    """
    folder = kept or directory / f"run-{number}"
    path = folder / "run.json"
    manifest = Manifest.read(path)
    if manifest.series.id != identity or manifest.run != number:
        raise AnalysisError(
            f"{path}: names itself run {manifest.run} of '{manifest.series.id}'; "
            f"its place is run {number} of '{identity}'. Files were moved: restore them, or remove the folder."
        )
    operations = _parquet(folder / "operations.parquet", OPERATION_COLUMNS)
    if operations.metadata.num_rows != manifest.operations or manifest.operations < 1:
        raise AnalysisError(
            f"{folder / 'operations.parquet'}: found {operations.metadata.num_rows:,} operations; "
            f"run.json counts {manifest.operations:,}. Remove the folder and run 'all' again."
        )
    events = _sum(folder / "operations.parquet", operations, "rows")
    if events != manifest.events:
        raise AnalysisError(
            f"{folder / 'operations.parquet'}: found {events:,} events; run.json counts {manifest.events:,}. "
            "Remove the folder and run 'all' again."
        )
    _parquet(folder / "machine.parquet", MACHINE_COLUMNS, WORDS)
    return Run(folder, f"{identity}/{folder.relative_to(directory).as_posix()}", manifest)


def _sum(path: Path, file: pq.ParquetFile, name: str) -> int:
    try:
        return sum(pc.sum(batch.column(0)).as_py() or 0 for batch in file.iter_batches(columns=[name]))
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: column '{name}' cannot be read: {printable(str(error))}") from error


def _parquet(path: Path, columns: Sequence[str], names: re.Pattern[str] = NAME) -> pq.ParquetFile:
    """Open the file at `path` and check it: bounded size, plain types only, and numeric `columns` among them."""
    try:
        file = pq.ParquetFile(path)
        schema, rows = file.schema_arrow, file.metadata.num_rows
    except FileNotFoundError:
        raise AnalysisError(f"{path}: not there; remove the run's folder and run 'all' again") from None
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: cannot be read as Parquet: {printable(str(error))}") from error
    if len(schema.names) > MOST_COLUMNS or rows > MOST_ROWS:
        raise AnalysisError(
            f"{path}: found {rows:,} rows of {len(schema.names):,} columns; "
            f"allowed: up to {MOST_ROWS:,} of {MOST_COLUMNS}"
        )
    for each in schema:
        if not (names.fullmatch(each.name) and (_is_number(each.type) or _is_text(each.type))):
            raise AnalysisError(
                f"{path}: found the column {printable(f'{each.name} of {each.type}')[:120]}; allowed: numbers and "
                f"texts, in columns whose names are {'words of ' * (names is WORDS)}letters, digits, '_', '-' and '.'"
            )
    absent = [name for name in columns if name not in schema.names]
    if absent:
        raise AnalysisError(f"{path}: found no column {', '.join(absent)}; allowed: a file with {', '.join(columns)}")
    for name in columns:
        if not _is_number(schema.field(name).type):
            raise AnalysisError(f"{path}: column '{name}': found {schema.field(name).type}; allowed: numbers")
    return file


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))  # null: no value


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def source_runs(runs: Iterable[Run]) -> list[str]:
    """Return the labels of the runs that a table or a figure was made from, sorted and without duplicates."""
    return sorted({run.label for run in runs})
