"""Metrics database: all runs of a run set in one DuckDB file, for SQL queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.analysis import resampled
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import MetricSet
from tidemark.analysis.parallel import spread
from tidemark.analysis.statistics import BootstrapEstimate
from tidemark.errors import AnalysisError, is_disk_full
from tidemark.progress import Progress
from tidemark.runs.run import Run, columns_of
from tidemark.runs.runset import RunSet
from tidemark.runs.serde import printable
from tidemark.runs.spec import STAGES

MACHINE = ("second", "cpu_percent", "disk_written_bytes", "foreign_percent", "steal_percent")


def write_database(run_set: RunSet, quantities: Mapping[str, MetricSet], views: Sequence[str]) -> Path:
    """Write metrics.duckdb to the results folder and return its path; also store each run's resampled `quantities`.

    Tables: series, runs, operations (one row per operation), machine (one row per second). `views` are SQL statements
    that create the studies' views. It is built under a temporary name and renamed, so readers never see a partial file.
    """
    results = run_set.results
    path = results / "metrics.duckdb"
    beside = results / f".metrics.{os.getpid()}.duckdb"
    beside.unlink(missing_ok=True)
    try:
        with duckdb.connect(str(beside)) as connection:
            connection.execute("SET preserve_insertion_order = true")
            _series(connection, run_set)
            _runs(connection, run_set.runs)
            _samples(connection, run_set.runs)
            for view in views:
                connection.execute(view)
        resampled.write(run_set, quantities, _resample(run_set, quantities))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
        beside.with_name(beside.name + ".wal").unlink(missing_ok=True)
    return path


def _resample(run_set: RunSet, quantities: Mapping[str, MetricSet]) -> dict[tuple[str, str], BootstrapEstimate]:
    """Compute every quantity of every run: the longest part of the analysis, done once and on all cores."""
    found: dict[tuple[str, str], BootstrapEstimate] = {}
    runs = run_set.runs
    modules = ("tidemark.analysis.database",)
    with (
        spread(_all_of, runs, prepare=_take, given=(run_set, quantities), modules=modules) as results,
        Progress("resampling", len(runs), " runs") as progress,
    ):
        for done, each in enumerate(results):
            found |= each
            progress.update(done + 1, runs[done].label)
    return found


_taken: dict[str, Measures] = {}  # by study, in a worker process


def _take(run_set: RunSet, quantities: Mapping[str, MetricSet]) -> None:
    _taken.clear()
    _taken.update({study: Measures(run_set.of(study), quantities[study]) for study in run_set.studies})


def _all_of(run: Run) -> resampled.Resampled:
    return _taken[run.manifest.series.study].all_of(run)


def _series(connection: duckdb.DuckDBPyConnection, run_set: RunSet) -> None:
    """Create the table `series` with one row per repeat, which a run's `series_id` refers to."""
    repeats = [(series, repeat) for series in run_set.series for repeat in series.repeats]
    columns: dict[str, list[object]] = {"series_id": [repeat.id for _, repeat in repeats]}
    for name in ("study", "workload", "system", "title", "mode", "batch_size", "threads", "protocol", "stack", "sweep"):
        columns[name] = [getattr(series, name) for series, _ in repeats]
    columns["repeat"] = [repeat.number for _, repeat in repeats]
    for name in ("position", "status", "reason"):
        columns[name] = [getattr(repeat, name) for _, repeat in repeats]
    whole = ("batch_size", "threads", "repeat", "position")
    schema = pa.schema([(name, pa.int32() if name in whole else pa.string()) for name in columns])
    given = pa.table(columns, schema)
    connection.register("given", given)
    connection.execute("CREATE TABLE series AS SELECT * FROM given")
    connection.unregister("given")


def _runs(connection: duckdb.DuckDBPyConnection, runs: tuple[Run, ...]) -> None:
    connection.execute(
        """
        CREATE TABLE runs (
            run_id INTEGER, label VARCHAR, series_id VARCHAR, run INTEGER, cold BOOLEAN, started_at TIMESTAMPTZ,
            elapsed_ns BIGINT, operations BIGINT, events BIGINT, logical_bytes BIGINT,
            poll_ns BIGINT, decode_ns BIGINT, assemble_ns BIGINT, write_ns BIGINT, bookkeeping_ns BIGINT,
            wait_for_producer_ns BIGINT, rest_ns BIGINT,
            cold_verdict VARCHAR, resident_share DOUBLE, boot_id VARCHAR, oracle_verdict BOOLEAN,
            flush_s DOUBLE, merge_s DOUBLE,
            data_files BIGINT, data_bytes BIGINT, metadata_files BIGINT, metadata_bytes BIGINT, catalog_bytes BIGINT,
            dataset VARCHAR, dataset_sha256 VARCHAR, synthetic BOOLEAN,
            state VARCHAR, opening_verdict VARCHAR, opening_resident_share DOUBLE, first_write_ns BIGINT,
            disk_window_bytes BIGINT, disk_sync_bytes BIGINT, disk_sync_seconds DOUBLE, disk_stream_bytes BIGINT,
            disk_charged_bytes BIGINT, disk_left_bytes BIGINT,
            foreign_cores DOUBLE, steal_cores DOUBLE, kernel_cores DOUBLE, disturbed VARCHAR[],
            harness VARCHAR, machine VARCHAR
        )
        """
    )
    for run_id, run in enumerate(runs):
        m, budget = run.manifest, dict(run.manifest.time_budget_ns)
        row = [run_id, run.label, m.series.id, m.run, m.cold, m.started_at, m.elapsed_ns, m.operations, m.events]
        row += [m.logical_bytes, *(budget.get(part) for part in STAGES)]
        row += [m.cold_proof.verdict, m.cold_proof.resident_share, m.cold_proof.boot_id, m.oracle.verdict]
        row += [m.flush.seconds if m.flush else None, m.merge.seconds if m.merge else None]
        f = m.footprint
        row += [f.data_files, f.data_bytes, f.metadata_files, f.metadata_bytes, f.catalog_bytes] if f else [None] * 5
        row += [m.dataset.name, m.dataset.sha256, m.dataset.synthetic] if m.dataset else [None] * 3
        opening, disk, other = m.opening, m.disk, m.interference
        row += [run.state, opening.verdict if opening else None, opening.resident_share if opening else None]
        row += [m.first_write_ns, disk.window_bytes, disk.sync_bytes, disk.sync_seconds, disk.stream_bytes]
        row += [disk.charged_bytes, disk.left_bytes]
        row += [other.foreign_cores, other.steal_cores, other.kernel_cores] if other else [None, None, None]
        row += [list(run.disturbed), m.harness.digest if m.harness else None, m.machine.identity]
        connection.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(row))})", row)


def _samples(connection: duckdb.DuckDBPyConnection, runs: tuple[Run, ...]) -> None:
    """Load each run's Parquet with DuckDB: tens of millions of operations never pass through Python."""
    columns = _columns(runs)
    types = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
    connection.execute(f"CREATE TABLE operations (run_id INTEGER, operation BIGINT, {types})")
    connection.execute(
        "CREATE TABLE machine (run_id INTEGER, second DOUBLE, cpu_percent DOUBLE, disk_written_bytes BIGINT, "
        "foreign_percent DOUBLE, steal_percent DOUBLE)"
    )
    for run_id, run in enumerate(runs):
        try:
            _samples_of(connection, run_id, run)
        except duckdb.Error as error:
            if is_disk_full(error):
                raise
            raise AnalysisError(
                f"{run.directory}: its Parquet files cannot be read: {printable(str(error))}"
            ) from error


def _samples_of(connection: duckdb.DuckDBPyConnection, run_id: int, run: Run) -> None:
    connection.execute(
        "INSERT INTO operations BY NAME SELECT ? AS run_id, file_row_number AS operation, "
        "* EXCLUDE (file_row_number) FROM read_parquet(?, file_row_number = true)",
        [run_id, str(run.directory / "operations.parquet")],
    )
    # Format version 1 has fewer columns.
    present = pq.read_schema(run.directory / "machine.parquet").names
    there = [name for name in MACHINE if name in present]
    connection.execute(
        f"INSERT INTO machine BY NAME SELECT ? AS run_id, {', '.join(there)} FROM read_parquet(?)",
        [run_id, str(run.directory / "machine.parquet")],
    )


def _columns(runs: tuple[Run, ...]) -> dict[str, str]:
    """Return the columns of operations.parquet over all workloads and their parts, with their SQL types."""
    found: dict[str, str] = {}
    paths = [run.directory / "operations.parquet" for run in runs]
    for path in {columns_of(path): str(path) for path in paths}.values():
        for name, kind, *_ in duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall():
            found.setdefault(name, kind)
    return found
