"""The run files of one configuration, read and checked: the only thing that the analysis knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tidemark.analysis.fields import Fields
from tidemark.analysis.manifest import Dataset, Machine, Manifest
from tidemark.analysis.samples import Seconds, column, read_seconds
from tidemark.errors import AnalysisError

OPERATION_COLUMNS = ("first_id", "rows", "poll_ns", "decode_ns", "assemble_ns", "write_ns", "start_ns")
MACHINE_COLUMNS = ("second", "cpu_percent", "disk_written_bytes")
RUN_FILES = ("run.json", "operations.parquet", "machine.parquet")
MAIN = "main"
MOST_KEPT = 500_000  # operations of a run whose columns stay in memory, 4 MB each, once they were read
# As the thesis shows them, then what it wanted to show, then the rest by name.
ORDER = (
    "ducklake",
    "ducklake-inlined",
    "ducklake-inlined-postgres",
    "iceberg-pyiceberg",
    "iceberg-duckdb",
    "delta-rs",
    "delta-duckdb",
)


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
    def cold(self) -> bool:
        return self.manifest.cold

    @property
    def elapsed_s(self) -> float:
        return self.manifest.elapsed_ns / 1e9

    def column(self, name: str) -> NDArray[np.int64]:
        """One of OPERATION_COLUMNS, a value an operation, in the order of time; read-only."""
        return column(self.directory / "operations.parquet", name, keep=self.manifest.operations <= MOST_KEPT)

    def cycle_ns(self) -> NDArray[np.int64]:
        """Nanoseconds from the start of each operation to that of the next, or to the window's end."""
        starts = self.column("start_ns")
        return np.diff(starts, append=max(self.manifest.elapsed_ns, int(starts[-1]) + 1))

    def seconds(self) -> Seconds:
        """The machine's samples. A last, partial one that ends after the window is left out."""
        return read_seconds(self.directory / "machine.parquet", self.elapsed_s)


@dataclass(frozen=True, slots=True)
class Series:
    """One system in one mode; `runs` are those that count, whatever `status` says of the rest."""

    id: str
    system: str
    title: str
    mode: str
    batch_size: int
    threads: int
    protocol: str
    stack: str
    study: str
    position: int
    status: str
    reason: str | None
    runs: tuple[Run, ...]

    @property
    def cold_run(self) -> Run | None:
        return next((run for run in self.runs if run.cold), None)

    @property
    def hot_runs(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.cold)

    @property
    def is_harness(self) -> bool:
        return self.runs[0].manifest.system.is_harness if self.runs else self.system == "null"

    @property
    def mode_title(self) -> str:
        return "single" if self.mode == "single" else f"batch of {self.batch_size:,}"

    def run(self, number: int) -> Run | None:
        return next((run for run in self.runs if run.number == number), None)

    def missing(self, number: int | None = None) -> str:
        """Why there is no run, or not that run."""
        if self.reason:
            return self.reason.splitlines()[0]
        return "no run" if number is None else f"the protocol '{self.protocol}' has no run {number}"


@dataclass(frozen=True, slots=True)
class RunSet:
    """The series of one configuration with the runs that were measured for them."""

    results: Path
    config: Fields
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()  # where the machine could not give what the configuration asked for

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(run for series in self.series for run in series.runs)

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """Each dataset that runs used, once; one in a sound run set."""
        return tuple({run.manifest.dataset.sha256: run.manifest.dataset for run in self.runs}.values())

    @property
    def machines(self) -> tuple[Machine, ...]:
        return tuple(dict.fromkeys(run.manifest.machine for run in self.runs))

    @property
    def stacks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(series.stack for series in self.series))

    @property
    def stack(self) -> str:
        """The stack that the thesis's tables and figures are made for."""
        return "thesis" if "thesis" in self.stacks else self.stacks[0]

    def select(
        self, *, mode: str | None = None, study: str = MAIN, stack: str | None = None, harness: bool = True
    ) -> tuple[Series, ...]:
        """Series of one study, in the order in which tables list them."""
        wanted = stack or self.stack
        found = [
            series
            for series in self.series
            if series.study == study
            and series.stack == wanted
            and mode in (None, series.mode)
            and (harness or not series.is_harness)
        ]
        return tuple(sorted(found, key=_place))

    def find(self, system: str, mode: str) -> Series | None:
        """The main series of a system in a mode."""
        return next((series for series in self.select(mode=mode) if series.system == system), None)

    @classmethod
    def load(cls, results: Path) -> RunSet:
        """Read results/plan.json and the runs of its series.

        AnalysisError, naming the file, for what is absent, unreadable or at odds with itself. A series that
        failed or was not run stays, with its reason.
        """
        path = results / "plan.json"
        plan = Fields.read(path)
        series = tuple(_series(results, item) for item in plan.parts("series"))
        if not series:
            raise AnalysisError(f"{path}: key 'series': found none; allowed: at least one")
        return cls(results, plan.part("config"), series, plan.texts("notes"))


def _place(series: Series) -> tuple[int, int, str, int]:
    known = ORDER.index(series.system) if series.system in ORDER else len(ORDER)
    return (series.is_harness, known, series.system, series.batch_size)


def _series(results: Path, item: Fields) -> Series:
    relative = PurePosixPath(item.text("directory"))
    # The plan names folders from the workspace's root; an archive's results may lie under another name.
    directory = (
        results.joinpath(*relative.parts[relative.parts.index("runs") :])
        if "runs" in relative.parts
        else (results / relative)
    )
    outcome = Fields.read(directory / "outcome.json")
    status = outcome.text("status")
    if status not in ("complete", "failed", "not-run"):
        raise AnalysisError(
            f"{directory / 'outcome.json'}: key 'status': found '{status}'; allowed: complete, failed, not-run"
        )
    identity = item.text("id")
    runs = tuple(_run(directory, identity, number) for number in outcome.integers("runs"))
    if status == "complete" and not runs:
        raise AnalysisError(f"{directory / 'outcome.json'}: the series is complete, but 'runs' names none")
    system = item.text("system")
    batch = item.text("mode") != "single"
    return Series(
        id=identity,
        system=system,
        title=item.text("title", system),
        mode="batch" if batch else "single",
        batch_size=item.integer("batch_size", 1),
        threads=item.integer("threads", 1),
        protocol=item.text("protocol"),
        stack=item.text("stack"),
        study=item.text("study", MAIN),
        position=item.integer("position", 0),
        status=status,
        reason=outcome.maybe_text("reason"),
        runs=runs,
    )


def _run(directory: Path, identity: str, number: int) -> Run:
    folder = directory / f"run-{number}"
    path = folder / "run.json"
    manifest = Manifest.parse(Fields.read(path), str(path))
    if manifest.series_id != identity or manifest.run != number:
        raise AnalysisError(
            f"{path}: says that it is run {manifest.run} of '{manifest.series_id}'; "
            f"its place is run {number} of '{identity}'. Files were moved: restore them, or remove the folder."
        )
    operations = _parquet(folder / "operations.parquet", OPERATION_COLUMNS)
    if operations.metadata.num_rows != manifest.operations or manifest.operations < 1:
        raise AnalysisError(
            f"{folder / 'operations.parquet'}: found {operations.metadata.num_rows:,} operations; "
            f"run.json counts {manifest.operations:,}. Remove the folder and run 'all' again."
        )
    events = pc.sum(operations.read(columns=["rows"]).column(0)).as_py()
    if events != manifest.events:
        raise AnalysisError(
            f"{folder / 'operations.parquet'}: found {events:,} events; run.json counts {manifest.events:,}. "
            "Remove the folder and run 'all' again."
        )
    _parquet(folder / "machine.parquet", MACHINE_COLUMNS)
    return Run(folder, f"{identity}/run-{number}", manifest)


def _parquet(path: Path, columns: Sequence[str]) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(path)
    except FileNotFoundError:
        raise AnalysisError(f"{path}: not there; remove the run's folder and run 'all' again") from None
    except (OSError, pa.ArrowInvalid) as error:
        raise AnalysisError(f"{path}: cannot be read as Parquet: {error}") from error
    absent = [name for name in columns if name not in file.schema_arrow.names]
    if absent:
        raise AnalysisError(f"{path}: found no column {', '.join(absent)}; allowed: a file with {', '.join(columns)}")
    return file


def source_runs(runs: Iterable[Run]) -> list[str]:
    """Labels of the runs that a table or a figure was made from, each once, in order."""
    return sorted({run.label for run in runs})
