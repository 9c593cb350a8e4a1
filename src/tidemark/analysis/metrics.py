"""The quantities that can be asked of a run, their units, and how those of them that need no resampling are made."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis.blocks import BlockSample
from tidemark.analysis.run import Run
from tidemark.analysis.statistics import (
    Replicates,
    generator,
    interquartile_range,
    known,
    median,
    ratio_of_sums,
    theil_sen,
)


class Metric(StrEnum):
    """What can be asked of a run. The unit of each is in `UNITS`."""

    WRITE_MEDIAN = "write median"
    WRITE_IQR = "write IQR"
    WRITE_P90 = "write p90"
    WRITE_P99 = "write p99"
    WRITE_P999 = "write p99.9"
    WRITE_MAX = "write maximum"
    READ_MEDIAN = "read median"  # poll, per operation: of a batch, or of an event its share of one go
    READ_IQR = "read IQR"
    READ_P99 = "read p99"
    READ_PER_EVENT = "read per event"
    DISK_MEDIAN = "disk median"  # MB written to the data's device in a second
    DISK_IQR = "disk IQR"
    CPU_MEDIAN = "CPU median"
    EVENTS = "events"
    HARNESS_RATE = "harness throughput"  # events / window, the thesis's definition
    SYSTEM_RATE = "system throughput"  # events / time inside write
    GROWTH = "growth"  # of the write time, per 1,000 commits
    RELATIVE_GROWTH = "relative growth"  # the same as a share of the run's median write time
    FLUSH = "flush"
    MERGE = "merge"
    FILE_BYTES = "bytes per data file"
    STORED_PER_EVENT = "stored bytes per event"  # data, metadata and catalog before any flush
    WRITE_AMPLIFICATION = "write amplification"  # bytes that the system is charged with per Arrow byte acknowledged
    FIRST_WRITE = "first write"  # of the window: in run 0, the first one after a cold start


UNITS = {
    Metric.WRITE_MEDIAN: "ms",
    Metric.WRITE_IQR: "ms",
    Metric.WRITE_P90: "ms",
    Metric.WRITE_P99: "ms",
    Metric.WRITE_P999: "ms",
    Metric.WRITE_MAX: "ms",
    Metric.READ_MEDIAN: "ms",
    Metric.READ_IQR: "ms",
    Metric.READ_P99: "ms",
    Metric.READ_PER_EVENT: "µs",
    Metric.DISK_MEDIAN: "MB/s",
    Metric.DISK_IQR: "MB/s",
    Metric.CPU_MEDIAN: "%",
    Metric.EVENTS: "events",
    Metric.HARNESS_RATE: "events/s",
    Metric.SYSTEM_RATE: "events/s",
    Metric.GROWTH: "ms/1,000 commits",
    Metric.RELATIVE_GROWTH: "1/1,000 commits",
    Metric.FLUSH: "s",
    Metric.MERGE: "s",
    Metric.FILE_BYTES: "bytes",
    Metric.STORED_PER_EVENT: "bytes/event",
    Metric.WRITE_AMPLIFICATION: "",
    Metric.FIRST_WRITE: "ms",
}
QUANTILES = {
    Metric.WRITE_MEDIAN: ("write_ns", 0.5),
    Metric.WRITE_P90: ("write_ns", 0.9),
    Metric.WRITE_P99: ("write_ns", 0.99),
    Metric.WRITE_P999: ("write_ns", 0.999),
    Metric.READ_MEDIAN: ("poll_ns", 0.5),
    Metric.READ_P99: ("poll_ns", 0.99),
}


class Absent(Exception):
    """A run or series cannot say this, for the reason that is the message. Tables show it as missing."""


SECONDS: dict[Metric, tuple[str, Callable[[BlockSample], Replicates], float]] = {
    Metric.DISK_MEDIAN: ("disk", median, 1e-6),
    Metric.DISK_IQR: ("disk", interquartile_range, 1e-6),
    Metric.CPU_MEDIAN: ("cpu", median, 1.0),
}
RANGES = {Metric.WRITE_IQR: "write_ns", Metric.READ_IQR: "poll_ns"}


def _maximum(run: Run) -> Replicates:
    write = run.column("write_ns")
    return Replicates(math.log(max(int(write.max()), 1) / 1e6), None, len(write))


def _read_per_event(run: Run) -> Replicates:
    rows = run.column("rows")
    return ratio_of_sums(run.column("poll_ns"), rows * 1000, generator(run.label, "read per event"))


def _rate(run: Run, nanoseconds: NDArray[Any], name: str) -> Replicates:
    rows = run.column("rows").astype(np.int64) * 1_000_000_000
    return ratio_of_sums(rows, nanoseconds, generator(run.label, name))


def _growth(run: Run) -> Replicates:
    if run.manifest.operations < 20:
        raise Absent(f"needs 20 commits, the run has {run.manifest.operations:,}")
    return theil_sen(run.column("write_ns"), generator(run.label, "growth")).scaled(1e-6)


def _flush(run: Run) -> Replicates:
    if run.manifest.flush is None:
        raise Absent("nothing is inlined, so there is nothing to flush")
    return known(run.manifest.flush.seconds)


def _merge(run: Run) -> Replicates:
    if run.manifest.merge is None:
        raise Absent("no merge of small files was timed in this run")
    return known(run.manifest.merge.seconds)


def _file_bytes(run: Run) -> Replicates:
    footprint = run.manifest.footprint
    if footprint.data_files == 0:
        raise Absent("there are no data files before the flush")
    return known(footprint.data_bytes / footprint.data_files)


def _stored(run: Run) -> Replicates:
    footprint = run.manifest.footprint
    if footprint.catalog_bytes is None:
        raise Absent(f"catalog not measurable: {footprint.reason}")
    whole = footprint.data_bytes + footprint.metadata_bytes + footprint.catalog_bytes
    if whole == 0:
        raise Absent("nothing is stored")
    return known(whole / run.manifest.events)


def _amplification(run: Run) -> Replicates:
    """Bytes that reached the device for the system, in the window and by its sync, by Arrow bytes acknowledged.

    What the broker and the producer wrote is taken out; the system's servers and the file system's bookkeeping are in.
    """
    disk = run.manifest.disk
    if (why := disk.why_not_charged) is not None:
        raise Absent(f"not measurable: {why}")
    charged = disk.charged_bytes
    if run.manifest.logical_bytes == 0 or not charged:
        raise Absent("nothing was written")
    return known(charged / run.manifest.logical_bytes)


def _first_write(run: Run) -> Replicates:
    first = run.manifest.first_write_ns
    if first is None:
        raise Absent("run files of version 1 do not say how long the first write took")
    return known(max(first, 1) / 1e6)


OTHERS: dict[Metric, Callable[[Run], Replicates]] = {
    Metric.WRITE_MAX: _maximum,
    Metric.READ_PER_EVENT: _read_per_event,
    Metric.EVENTS: lambda run: known(run.manifest.events),
    Metric.HARNESS_RATE: lambda run: _rate(run, run.cycle_ns(), "harness rate"),
    Metric.SYSTEM_RATE: lambda run: _rate(run, np.maximum(run.column("write_ns"), 1), "system rate"),
    Metric.GROWTH: _growth,
    Metric.FLUSH: _flush,
    Metric.MERGE: _merge,
    Metric.FILE_BYTES: _file_bytes,
    Metric.STORED_PER_EVENT: _stored,
    Metric.WRITE_AMPLIFICATION: _amplification,
    Metric.FIRST_WRITE: _first_write,
}
