"""A run's directory: three files, written beside a temporary name and renamed when they are whole."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidemark.machine.cold import ColdProof
from tidemark.machine.inventory import Inventory
from tidemark.machine.sampler import Series
from tidemark.machine.watch import DiskPart, Interference
from tidemark.measure.loop import Samples
from tidemark.measure.oracle import Verdict
from tidemark.measure.warmup import WarmUp
from tidemark.paths import sync_directory, write_atomically
from tidemark.stream.producer import Produced
from tidemark.systems.base import Flush, Footprint, Merge

SCHEMA_VERSION = 2
ROWS_AT_ONCE = 1 << 20
OPERATIONS = pa.schema(
    [
        ("first_id", pa.int64()),
        ("rows", pa.int32()),
        ("poll_ns", pa.int64()),
        ("decode_ns", pa.int64()),
        ("assemble_ns", pa.int64()),
        ("write_ns", pa.int64()),
        ("start_ns", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class SeriesPart:
    id: str
    system: str
    mode: str
    batch_size: int
    stack: str
    protocol: str
    position: int
    repeat: int
    study: str
    threads: int
    cpus: int | None
    encoding: str
    overlap: bool
    read_ahead: int


@dataclass(frozen=True, slots=True)
class TidemarkPart:
    """By what the run was measured."""

    version: str
    format: int
    harness: str  # digest of the code that measures


@dataclass(frozen=True, slots=True)
class SystemPart:
    name: str
    base: str
    title: str
    format: str
    client: str
    catalog: str
    in_thesis: bool
    notes: tuple[str, ...]
    options: dict[str, Any]
    settings: dict[str, str]
    capabilities: tuple[str, ...]
    durability: str
    durability_level: str  # default | full
    durability_source: str
    type_mappings: tuple[dict[str, str], ...]


@dataclass(frozen=True, slots=True)
class FlushPart:
    seconds: float
    rows: int
    data_files: int
    data_bytes: int

    @classmethod
    def of(cls, flush: Flush, seconds: float) -> FlushPart:
        return cls(seconds, flush.rows, flush.data_files, flush.data_bytes)


@dataclass(frozen=True, slots=True)
class MergePart:
    seconds: float
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int

    @classmethod
    def of(cls, merge: Merge, seconds: float) -> MergePart:
        return cls(seconds, merge.files_before, merge.files_after, merge.bytes_before, merge.bytes_after)


@dataclass(frozen=True, slots=True)
class ProducerPart:
    mode: str
    events: int
    seconds: float
    cpu_s: float
    topped_up: int
    laps: float  # how often the dataset was gone through
    stretches: int  # that the window was measured in, the topic being refilled between them
    topic_bytes: int

    @classmethod
    def of(cls, mode: str, produced: Produced, dataset_rows: int, stretches: int, topic_bytes: int) -> ProducerPart:
        laps = produced.events / dataset_rows
        return cls(
            mode, produced.events, produced.seconds, produced.cpu_s, produced.topped_up, laps, stretches, topic_bytes
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a run that is no time series: run.json."""

    schema_version: int
    tidemark: TidemarkPart
    series: SeriesPart
    run: int
    cold: bool
    started_at: str
    window_s: float
    elapsed_ns: int
    operations: int
    events: int
    first_write_ns: int
    system: SystemPart
    versions: dict[str, str]
    lock_digests: dict[str, str]
    dataset: dict[str, Any]
    machine: Inventory
    cold_proof: ColdProof  # before the servers of a cold run start, or right before a hot one
    opening: ColdProof  # when the window opens
    warm_up: WarmUp | None
    time_budget_ns: dict[str, int]
    marks: tuple[str, ...]  # what a reader must know before using this run
    interference: Interference
    producer: ProducerPart
    sampler_cpu_s: float
    disk: DiskPart
    oracle: Verdict
    flush: FlushPart | None
    merge: MergePart | None
    footprint: Footprint
    footprint_after_flush: Footprint | None
    logical_bytes: int
    history: str
    config: dict[str, Any]


def operations_table(samples: Samples, first: int, count: int) -> pa.Table:
    """Operations `first` .. `first` + `count` - 1 as rows of operations.parquet."""
    size = samples.rows_per_operation
    columns = [
        pa.array(np.arange(first, first + count, dtype=np.int64) * size),
        pa.array(np.full(count, size, np.int32)),
    ]
    names = ("poll", "decode", "assemble", "write", "start")
    columns += [pa.array(samples.column(name)[first : first + count]) for name in names]
    return pa.Table.from_arrays(columns, schema=OPERATIONS)


def write_operations(path: Path, samples: Samples) -> None:
    """Write operations.parquet a million rows at a time: 10 million take no more memory than they have already."""
    with pq.ParquetWriter(
        path,
        OPERATIONS,
        compression="zstd",
        use_dictionary=False,
        column_encoding=dict.fromkeys(OPERATIONS.names, "DELTA_BINARY_PACKED"),
    ) as writer:
        for first in range(0, samples.count, ROWS_AT_ONCE):
            writer.write_table(operations_table(samples, first, min(ROWS_AT_ONCE, samples.count - first)))


def machine_table(series: Series) -> pa.Table:
    """One row a second; a group of processes that did not exist is null throughout."""
    columns: dict[str, pa.Array] = {
        "second": pa.array(series.second, pa.float64()),
        "cpu_percent": pa.array(series.cpu_percent, pa.float64()),
        "steal_percent": pa.array(series.steal_percent, pa.float64()),
        "foreign_percent": pa.array(series.foreign_percent, pa.float64()),
        "disk_written_bytes": pa.array(series.disk_written_bytes, pa.int64()),
    }
    for name, percents in series.groups.items():
        columns[f"cpu_{name}_percent"] = pa.array(percents, pa.float64())
    return pa.table(columns)


def write_run(directory: Path, samples: Samples, series: Series, manifest: Manifest) -> None:
    """Make `directory` with its three files, all of it at once."""
    beside = directory.with_name(f".{directory.name}.writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    write_operations(beside / "operations.parquet", samples)
    pq.write_table(machine_table(series), beside / "machine.parquet", compression="zstd")
    write_atomically(beside / "run.json", json.dumps(asdict(manifest), indent=1) + "\n")
    for name in ("operations.parquet", "machine.parquet"):
        with (beside / name).open("rb") as file:
            os.fsync(file.fileno())
    sync_directory(beside)
    beside.rename(directory)
    sync_directory(directory.parent)
