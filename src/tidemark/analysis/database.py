"""The metrics database: every run of a run set in one DuckDB file, to be asked in SQL."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.analysis import resampled
from tidemark.analysis.measures import Measures
from tidemark.analysis.metrics import Metric
from tidemark.analysis.pool import spread
from tidemark.analysis.run import Run
from tidemark.analysis.runs import RunSet
from tidemark.analysis.statistics import Replicates
from tidemark.progress import Progress

SCHEMA_VERSION = 2
MACHINE = ("second", "cpu_percent", "disk_written_bytes", "foreign_percent", "steal_percent")
VIEWS = """
CREATE VIEW throughput AS
SELECT r.run_id, s.system, s.mode, s.batch_size, s.stack, s.study, r.run, r.cold, r.events,
       r.events / (r.elapsed_ns / 1e9) AS harness_events_per_s,
       r.events / (o.write_ns / 1e9) AS system_events_per_s
FROM runs r
JOIN series s USING (series_id)
JOIN (SELECT run_id, sum(write_ns) AS write_ns FROM operations GROUP BY run_id) o USING (run_id);

CREATE VIEW write_times AS
SELECT r.run_id, s.system, s.mode, s.batch_size, s.stack, s.study, r.run, r.cold, count(*) AS operations,
       quantile_cont(o.write_ns, 0.5) / 1e6 AS median_ms,
       (quantile_cont(o.write_ns, 0.75) - quantile_cont(o.write_ns, 0.25)) / 1e6 AS iqr_ms,
       quantile_cont(o.write_ns, 0.9) / 1e6 AS p90_ms,
       quantile_cont(o.write_ns, 0.99) / 1e6 AS p99_ms,
       quantile_cont(o.write_ns, 0.999) / 1e6 AS p999_ms,
       max(o.write_ns) / 1e6 AS max_ms
FROM operations o
JOIN runs r USING (run_id)
JOIN series s USING (series_id)
GROUP BY ALL;
"""


def build_database(results: Path) -> Path:
    """Make results/metrics.duckdb from the run files and return its path; beside it, what was resampled of each run.

    Tables: series, runs, operations (one row an operation), machine (one row a second); views: throughput,
    write_times. It is built under another name and renamed, so that a reader never sees half of it.
    """
    run_set = RunSet.load(results)
    path = results / "metrics.duckdb"
    beside = results / f".metrics.{os.getpid()}.duckdb"
    beside.unlink(missing_ok=True)
    try:
        with duckdb.connect(str(beside)) as connection:
            connection.execute("SET preserve_insertion_order = true")
            _series(connection, run_set)
            _runs(connection, run_set.runs)
            _samples(connection, run_set.runs)
            connection.execute(VIEWS)
        resampled.write(run_set, _resample(run_set))
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
        beside.with_name(beside.name + ".wal").unlink(missing_ok=True)
    return path


def _resample(run_set: RunSet) -> dict[tuple[Metric, str], Replicates]:
    """Every metric of every run: the longest part of the analysis, done once and on all cores."""
    found: dict[tuple[Metric, str], Replicates] = {}
    runs = run_set.runs
    modules = ("tidemark.analysis.database",)
    with (
        spread(_all_of, runs, prepare=_take, given=(run_set,), modules=modules) as results,
        Progress("resampling", len(runs), " runs") as progress,
    ):
        for done, each in enumerate(results):
            found |= each
            progress.update(done + 1, runs[done].label)
    return found


_taken: list[Measures] = []  # of this process, when it is one of those that resample


def _take(run_set: RunSet) -> None:
    _taken[:] = [Measures(run_set)]


def _all_of(run: Run) -> dict[tuple[Metric, str], Replicates]:
    return _taken[0].all_of(run)


def _series(connection: duckdb.DuckDBPyConnection, run_set: RunSet) -> None:
    """A row a repeat, which is what a run's `series_id` names."""
    repeats = [(series, repeat) for series in run_set.series for repeat in series.repeats]
    columns: dict[str, list[object]] = {"series_id": [repeat.id for _, repeat in repeats]}
    for name in ("system", "title", "mode", "batch_size", "threads", "protocol", "stack", "study"):
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
    parts = ("poll", "decode", "assemble", "write", "bookkeeping", "wait_for_producer", "rest")
    for run_id, run in enumerate(runs):
        m, budget = run.manifest, dict(run.manifest.time_budget_ns)
        row = [run_id, run.label, m.series_id, m.run, m.cold, m.started_at, m.elapsed_ns, m.operations, m.events]
        row += [m.logical_bytes, *(budget.get(part) for part in parts)]
        row += [m.cold_proof.verdict, m.cold_proof.resident_share, m.cold_proof.boot_id, m.oracle.verdict]
        row += [m.flush.seconds if m.flush else None, m.merge.seconds if m.merge else None]
        f = m.footprint
        row += [f.data_files, f.data_bytes, f.metadata_files, f.metadata_bytes, f.catalog_bytes]
        row += [m.dataset.name, m.dataset.sha256, m.dataset.synthetic]
        opening, disk, other = m.opening, m.disk, m.interference
        row += [run.state, opening.verdict if opening else None, opening.resident_share if opening else None]
        row += [m.first_write_ns, disk.window_bytes, disk.sync_bytes, disk.sync_seconds, disk.stream_bytes]
        row += [disk.charged_bytes, disk.left_bytes]
        row += [other.foreign_cores, other.steal_cores, other.kernel_cores] if other else [None, None, None]
        row += [list(run.disturbed), m.harness.digest if m.harness else None, m.machine.identity]
        connection.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(row))})", row)


def _samples(connection: duckdb.DuckDBPyConnection, runs: tuple[Run, ...]) -> None:
    """DuckDB reads each run's Parquet itself: tens of millions of operations pass no Python."""
    connection.execute(
        """
        CREATE TABLE operations (run_id INTEGER, operation BIGINT, first_id BIGINT, rows INTEGER, poll_ns BIGINT,
            decode_ns BIGINT, assemble_ns BIGINT, write_ns BIGINT, start_ns BIGINT);
        CREATE TABLE machine (run_id INTEGER, second DOUBLE, cpu_percent DOUBLE, disk_written_bytes BIGINT,
            foreign_percent DOUBLE, steal_percent DOUBLE);
        """
    )
    for run_id, run in enumerate(runs):
        connection.execute(
            "INSERT INTO operations SELECT ?, file_row_number, first_id, rows, poll_ns, decode_ns, assemble_ns, "
            "write_ns, start_ns FROM read_parquet(?, file_row_number = true)",
            [run_id, str(run.directory / "operations.parquet")],
        )
        # Version 1 has fewer columns.
        present = pq.read_schema(run.directory / "machine.parquet").names
        there = [name for name in MACHINE if name in present]
        connection.execute(
            f"INSERT INTO machine BY NAME SELECT ? AS run_id, {', '.join(there)} FROM read_parquet(?)",
            [run_id, str(run.directory / "machine.parquet")],
        )
