"""One measured window: its files, read and checked, and its samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidemark.errors import AnalysisError
from tidemark.runs.coding.fields import printable
from tidemark.runs.dataset import Provenance
from tidemark.runs.manifest import Footprint, Manifest
from tidemark.runs.samples import MACHINE_COLUMNS, OPERATION_COLUMNS, Seconds, column, columns_of, read_seconds, words

RUN_FILES = ("run.json", "operations.parquet", "machine.parquet")
COLD, COLD_START, FIRST, HOT = "cold", "cold start", "first run", "hot"
STATES = (
    "'Cold start': the files of servers and clients were not in the page cache before the servers started, as after a "
    "restart. 'Cold': they were not in it when the window opened either, with servers and client running. "
    "'First run': neither could be shown for run 0."
)
MOST_ROWS, MOST_COLUMNS = 200_000_000, 1_000  # of a file of a run: many times what windows bring
NAME = re.compile(r"[\w. -]{1,200}")  # of a column: a word, or words, as some groups of processes have
MOST_KEPT = 500_000  # operations of a run whose columns stay in memory, 4 MB each, once they were read


@dataclass(frozen=True, slots=True)
class Run:
    """One measured window."""

    directory: Path
    label: str  # "ducklake/single/3fa81c2b77de/run-1", whatever folder the run set lies in
    manifest: Manifest

    @property
    def number(self) -> int:
        return self.manifest.run

    @property
    def repeat(self) -> int:
        """Which repeat of its series it belongs to, from 1."""
        return self.manifest.repeat

    @property
    def cold(self) -> bool:
        """Whether it is run 0, the one before which everything was made cold; `state` says how cold it was."""
        return self.manifest.cold

    @property
    def state(self) -> str:
        """What a run may be called by its proofs: cold, cold start or first run for run 0, and hot for all others."""
        if not self.cold:
            return HOT
        opening = self.manifest.opening
        if opening is not None and opening.verdict == COLD:
            return COLD
        return COLD_START if self.manifest.cold_proof.verdict == COLD else FIRST

    @property
    def disturbed(self) -> tuple[str, ...]:
        """Why it counts as disturbed; empty if it does not."""
        return self.manifest.interference.disturbed if self.manifest.interference else ()

    @property
    def footprint(self) -> Footprint:
        """What its table takes on disk; AnalysisError where its workload has no table."""
        return self._said(self.manifest.footprint, "footprint")

    @property
    def dataset(self) -> Provenance:
        """The trips that it was fed with; AnalysisError where its workload takes none."""
        return self._said(self.manifest.dataset, "dataset")

    def _said[T](self, value: T | None, key: str) -> T:
        if value is None:
            raise AnalysisError(
                f"{self.directory / 'run.json'}: key '{key}': found nothing; allowed: an object, where this is read "
                f"from a run. The workload '{self.manifest.series.workload}' has none."
            )
        return value

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files: those of all runs, and then what its workload keeps beside them."""
        own = sorted(path.name for path in self.directory.glob("*.parquet") if path.name not in RUN_FILES)
        return (*RUN_FILES, *own)

    @property
    def elapsed_s(self) -> float:
        return self.manifest.elapsed_ns / 1e9

    def column(self, name: str) -> NDArray[np.int64]:
        """A column of operations.parquet, a value an operation, in the order of time; read-only.

        AnalysisError, naming the file, for one that the workload of this run does not have.
        """
        return column(self.directory / "operations.parquet", name, keep=self.manifest.operations <= MOST_KEPT)

    def words(self, name: str) -> NDArray[np.str_]:
        """A column of text of operations.parquet, as `column`."""
        return words(self.directory / "operations.parquet", name)

    def has(self, name: str) -> bool:
        """Whether the workload of this run has a column of operations.parquet."""
        return name in columns_of(self.directory / "operations.parquet")

    def elapsed_ns(self) -> NDArray[np.int64]:
        """What each operation took, in the order of time."""
        return self.column("write_ns" if self.has("write_ns") else "elapsed_ns")

    def cycle_ns(self) -> NDArray[np.int64]:
        """Nanoseconds from the start of each operation to that of the next, or to the window's end."""
        starts = self.column("start_ns")
        return np.diff(starts, append=max(self.manifest.elapsed_ns, int(starts[-1]) + 1))

    def seconds(self) -> Seconds:
        """The machine's samples. A last, partial one that ends after the window is left out.

        Bytes are left out where they are not the system's: see `Disk.why_no_seconds`.
        """
        found = read_seconds(self.directory / "machine.parquet", self.elapsed_s)
        return found if self.manifest.disk.why_no_seconds is None else replace(found, disk_bytes_per_s=None)


def read_run(directory: Path, identity: str, number: int, kept: Path | None = None) -> Run:
    """Run `number` of the series `identity`; AnalysisError, naming the file, for what is wrong with it.

    `kept` is the folder of one that was disturbed, and measured once more.
    """
    folder = kept or directory / f"run-{number}"
    path = folder / "run.json"
    manifest = Manifest.read(path)
    if manifest.series_id != identity or manifest.run != number:
        raise AnalysisError(
            f"{path}: names itself run {manifest.run} of '{manifest.series_id}'; "
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
    _parquet(folder / "machine.parquet", MACHINE_COLUMNS)
    return Run(folder, f"{identity}/{folder.relative_to(directory).as_posix()}", manifest)


def _sum(path: Path, file: pq.ParquetFile, name: str) -> int:
    try:
        return sum(pc.sum(batch.column(0)).as_py() or 0 for batch in file.iter_batches(columns=[name]))
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: column '{name}' cannot be read: {printable(str(error))}") from error


def _parquet(path: Path, columns: Sequence[str]) -> pq.ParquetFile:
    """The file at `path`: not more rows and columns than runs have, plain ones, and `columns`, numbers, among them."""
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
        if not (NAME.fullmatch(each.name) and (_is_number(each.type) or _is_text(each.type))):
            raise AnalysisError(
                f"{path}: found the column {printable(f'{each.name} of {each.type}')[:120]}; allowed: numbers and "
                "texts, in columns whose names are letters, digits, ' ', '_', '-' and '.'"
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
    """Labels of the runs that a table or a figure was made from, each once, in order."""
    return sorted({run.label for run in runs})
