"""Metrics of the study: writes, reads, disk, throughput, growth, maintenance and footprint."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemark.analysis import ages, metrics, statistics
from tidemark.analysis.ages import AGES, YOUNG
from tidemark.analysis.metrics import HIGHER, LOWER, Metric, MetricSet, NotAvailable, Quantile, Share, require
from tidemark.analysis.statistics import BootstrapEstimate, generator, known
from tidemark.runs.run import Groups, Run

MILLION = 1e6
FIRST_COMMITS = 100  # of the rate that is compared between systems
WRITER, SERVERS, STREAM = "writer", "servers", "stream"  # owners of processes: see `_party`
STREAM_GROUPS = ("kafka", "producer")  # as named by the workload


def _maximum(run: Run) -> BootstrapEstimate:
    write = run.column("write_ns")
    return BootstrapEstimate(math.log(max(int(write.max()), 1) / 1e6), None, len(write))


def _read_per_event(run: Run) -> BootstrapEstimate:
    rows = run.column("rows")
    return statistics.ratio_of_sums(run.column("poll_ns"), rows * 1000, generator(run.label, "read per event"))


def _events(run: Run) -> BootstrapEstimate:
    return known(run.manifest.events)


def _rate(run: Run, nanoseconds: NDArray[Any], name: str) -> BootstrapEstimate:
    rows = run.column("rows").astype(np.int64) * 1_000_000_000
    return statistics.ratio_of_sums(rows, nanoseconds, generator(run.label, name))


def _harness_rate(run: Run) -> BootstrapEstimate:
    return _rate(run, run.cycle_ns(), "harness rate")


def _system_rate(run: Run) -> BootstrapEstimate:
    return _rate(run, np.maximum(run.column("write_ns"), 1), "system rate")


def _growth(run: Run) -> BootstrapEstimate:
    require(run.manifest.operations >= 20, f"needs 20 commits, the run has {run.manifest.operations:,}")
    return statistics.theil_sen(run.column("write_ns"), generator(run.label, "growth")).scaled(1e-6)


def _flush(run: Run) -> BootstrapEstimate:
    return known(require(run.manifest.flush, "nothing is inlined, so there is nothing to flush").seconds)


def _merge(run: Run) -> BootstrapEstimate:
    return known(require(run.manifest.merge, "no merge of small files was timed in this run").seconds)


def _file_bytes(run: Run) -> BootstrapEstimate:
    files = require(run.footprint.data_files, "there are no data files before the flush")
    return known(run.footprint.data_bytes / files)


def _stored(run: Run) -> BootstrapEstimate:
    footprint = run.footprint
    if footprint.catalog_bytes is None:
        raise NotAvailable(f"catalog not measurable: {footprint.reason}")
    whole = require(footprint.bytes + footprint.catalog_bytes, "nothing is stored")
    return known(whole / run.manifest.events)


def _amplification(run: Run) -> BootstrapEstimate:
    """Return bytes written to the device for the system, in the window and by its sync, per acknowledged Arrow byte.

    Bytes of the broker and the producer are excluded; the system's servers and file-system metadata are included.
    """
    disk = run.manifest.disk
    if (why := disk.why_not_charged) is not None:
        raise NotAvailable(f"not measurable: {why}")
    charged = disk.charged_bytes
    if run.manifest.logical_bytes == 0 or not charged:
        raise NotAvailable("nothing was written")
    return known(charged / run.manifest.logical_bytes)


def _on_disk(run: Run) -> BootstrapEstimate:
    """Return the share of the written bytes that were on the device when the window ended, in %, before the sync."""
    disk = run.manifest.disk
    if (why := disk.why_no_seconds) is not None:
        raise NotAvailable(f"not measurable: {why}")
    written = disk.window_bytes or 0
    return _percent(written, written + (disk.sync_bytes or 0), "bytes on the disk yet")


def _first_write(run: Run) -> BootstrapEstimate:
    first = run.manifest.first_write_ns
    if first is None:
        raise NotAvailable("run files of version 1 do not say how long the first write took")
    return known(max(first, 1) / 1e6)


def _flush_per_row(run: Run) -> BootstrapEstimate:
    flush = run.manifest.flush
    if flush is None or flush.rows == 0:
        raise NotAvailable("nothing is inlined, so there is nothing to flush")
    return known(flush.seconds / flush.rows * 1e6)


def _merge_per_row(run: Run) -> BootstrapEstimate:
    merge = require(run.manifest.merge, "no merge of small files was timed in this run")
    return known(merge.seconds / run.manifest.events * 1e6)


def _files_per_commit(run: Run) -> BootstrapEstimate:
    return _counted(run.footprint.files / run.manifest.operations, "files")


def _of_footprint(run: Run, name: str, what: str) -> BootstrapEstimate:
    return _counted(getattr(run.footprint, name), what)


def _files_left(run: Run) -> BootstrapEstimate:
    """Return data and metadata files per million events, before inlined rows are flushed."""
    require(not run.manifest.system.is_null_baseline, "nothing is stored")
    files = require(run.footprint.files, "0 files: its rows are in the catalog until they are flushed")
    return known(files / run.manifest.events * MILLION)


def _at_age(run: Run, age: int) -> BootstrapEstimate:
    return ages.at_age(run.column("write_ns"), age, generator(run.label, f"age {age}"))


def _total(run: Run, commits: int) -> BootstrapEstimate:
    return ages.total(run.column("write_ns"), commits)


def _growth_to(run: Run, age: int) -> BootstrapEstimate:
    return ages.growth(run.column("write_ns"), age, generator(run.label, f"growth to {age}"))


def _decode(run: Run) -> BootstrapEstimate:
    decoded = dict(run.manifest.time_budget_ns).get("decode", 0)
    return _counted(decoded / run.manifest.events / 1000, "events to decode")


def _rate_of_first(run: Run) -> BootstrapEstimate:
    require(not run.manifest.system.is_null_baseline, "nothing is written")
    rng = generator(run.label, "rate of the first commits")
    return ages.rate(run.column("rows"), run.column("write_ns"), FIRST_COMMITS, rng)


def _of_window(run: Run, part: str, what: str) -> BootstrapEstimate:
    """Return the share of the window inside a part of its budget, in %: for `write`, harness over system throughput."""
    return _percent(dict(run.manifest.time_budget_ns).get(part, 0), run.manifest.elapsed_ns, what)


def _party(group: str) -> str:
    """Return the owner of a group of processes: the writer, the system's servers, or the stream."""
    return WRITER if group == "harness" else STREAM if group in STREAM_GROUPS else SERVERS


def _of(run: Run, party: str, groups: Groups) -> NDArray[np.float64]:
    """Return the sum over a party's groups, one value per second. Raises NotAvailable if the party was not observed."""
    require(groups, "the harness that measured it did not look")
    names = {name for name, _ in groups if _party(name) == party}
    if not names and party == SERVERS:
        given = dict(run.manifest.config).get("services") or {}
        if any(value is not None for key, value in given.items() if key.endswith("_address")):
            raise NotAvailable("a server that was not started here is not watched")
        raise NotAvailable("it has no server")
    return metrics.sum_of_groups(groups, names)


def _cpu(run: Run, party: str) -> BootstrapEstimate:
    seconds = run.seconds()
    cores = _of(run, party, seconds.groups) / 100
    used = float(np.average(cores, weights=seconds.length)) * run.elapsed_s
    return _counted(used / run.manifest.events * MILLION, "ticks of the processor's clock")


def _memory(run: Run, party: str) -> BootstrapEstimate:
    return _counted(float(_of(run, party, run.seconds().memory).max()) / MILLION, "bytes")


def _counted(value: float, what: str) -> BootstrapEstimate:
    if value <= 0:
        raise NotAvailable(f"there are no {what}")
    return known(value)


def _percent(part: int, whole: int, what: str) -> BootstrapEstimate:
    return replace(_counted(100 * part / max(whole, 1), what), bounds=(0.0, 100.0))


WRITE_MEDIAN = Metric(
    "write median", "ms", "Median write", Quantile("write_ns", 0.5), LOWER, "write", "Writes", ("slower", "faster")
)
WRITE_IQR = Metric("write IQR", "ms", "Write IQR", metrics.InterquartileRange("write_ns"), LOWER)
WRITE_P90 = Metric("write p90", "ms", "Write p90", Quantile("write_ns", 0.9), LOWER)
WRITE_P99 = Metric("write p99", "ms", "Write p99", Quantile("write_ns", 0.99), LOWER, "p99")
WRITE_P999 = Metric("write p99.9", "ms", "Write p99.9", Quantile("write_ns", 0.999), LOWER)
WRITE_MAX = Metric("write maximum", "ms", "Write maximum", _maximum, LOWER)
# Poll time per operation: of a batch, or of an event its share of one read.
READ_MEDIAN = Metric("read median", "ms", "Read median", Quantile("poll_ns", 0.5), LOWER)
READ_IQR = Metric("read IQR", "ms", "Read IQR", metrics.InterquartileRange("poll_ns"), LOWER)
READ_P99 = Metric("read p99", "ms", "Read p99", Quantile("poll_ns", 0.99), LOWER)
READ_PER_EVENT = Metric("read per event", "µs", "Read per event", _read_per_event, LOWER)
# The same work in every window of an encoding, whichever system writes: it shows how fast the machine was.
DECODE_PER_EVENT = Metric("decode per event", "µs", "Decode per event", _decode, LOWER, "decode")
# MB written to the data's device per second.
DISK_MEDIAN = Metric("disk median", "MB/s", "Disk median", metrics.PerSecond("disk", statistics.median, 1e-6))
DISK_IQR = Metric("disk IQR", "MB/s", "Disk IQR", metrics.PerSecond("disk", statistics.interquartile_range, 1e-6))
CPU_MEDIAN = Metric("CPU median", "%", "CPU median", metrics.PerSecond("cpu", statistics.median))
CPU_IQR = Metric("CPU IQR", "%", "CPU IQR", metrics.PerSecond("cpu", statistics.interquartile_range))
EVENTS = Metric("events", "events", "Events", _events, HIGHER)
# Events by the length of the window, which is the thesis's definition; and by the time inside `write`.
HARNESS_RATE = Metric(
    "harness throughput", "events/s", "Harness throughput", _harness_rate, HIGHER, "rate", "Throughputs"
)
SYSTEM_RATE = Metric("system throughput", "events/s", "System throughput", _system_rate, HIGHER, "system_rate")
# Properties of the system, whatever the length of the window; the window must have reached the age.
RATE_OF_FIRST = Metric(
    "rate of the first 100 commits", "events/s", "Events/s, commits 1 to 100", _rate_of_first, HIGHER, "rate_100"
)
WRITE_AT = {
    age: Metric(f"write at age {age}", "ms", f"Commit {age:,}", partial(_at_age, age=age), LOWER, f"age_{age}")
    for age in AGES
}
GROWTH_TO = {
    age: Metric(
        f"growth to age {age}", "x", f"Commit {age:,} over commit {YOUNG}", partial(_growth_to, age=age), LOWER,
        f"growth_{age}",
    )
    for age in AGES[1:]
}  # fmt: skip
# Of commits 51 to 100 of all hot runs together: the one hundredth that is slowest needs 20 windows.
WRITE_TAIL = {
    percent: Metric(
        f"write p{percent} of commits 51 to 100", "ms", f"Write p{percent}, commits 51 to 100",
        metrics.PooledQuantile("write_ns", percent / 100, 51, 100), LOWER, f"p{percent}_100",
    )
    for percent in (95, 99)
}  # fmt: skip
HARNESS_SHARE = Metric(
    "share of write", "%", "Share of the window inside write", partial(_of_window, part="write", what="writes"), HIGHER
)
GROWTH = Metric(
    "growth", "ms/1,000 commits", "Growth per 1,000 commits", _growth, LOWER, "growth",
    signed=True, scale=WRITE_MEDIAN, heading_unit="ms",
)  # fmt: skip
RELATIVE_GROWTH = Metric("relative growth", "1/1,000 commits", "Growth", Share(GROWTH), LOWER, "growth", signed=True)
FLUSH = Metric("flush", "s", "Flush", _flush, LOWER)
MERGE = Metric("merge", "s", "Merge", _merge, LOWER)
FILE_BYTES = Metric("bytes per data file", "bytes", "Bytes per data file", _file_bytes)
# Data, metadata and catalog before any flush.
STORED_PER_EVENT = Metric("stored bytes per event", "bytes/event", "Stored bytes per event", _stored, LOWER)
WRITE_AMPLIFICATION = Metric("write amplification", "", "Write amplification", _amplification, LOWER)
ON_DISK = Metric("on the disk at the end", "%", "On the disk at the end", _on_disk, HIGHER)
# First write of the window; in run 0, the first one after a cold start.
FIRST_WRITE = Metric("first write", "ms", "First write", _first_write, LOWER)
# Time inside `write` of the first commits, by which a cold start is compared with a hot one.
FIRST_SECONDS = {
    commits: Metric(
        f"write time of the first {commits}", "s", f"Commits 1 to {commits}", partial(_total, commits=commits)
    )
    for commits in (1, 20, 100)
}
# State of the table before inlined rows are flushed.
FLUSH_PER_ROW = Metric("flush per row", "µs", "Flush per row", _flush_per_row, LOWER)
MERGE_PER_ROW = Metric("merge per row", "µs", "Merge per row", _merge_per_row, LOWER)
POLLING = Metric("share of polling", "%", "Share of polling", partial(_of_window, part="poll", what="polls"), LOWER)
FILES_PER_COMMIT = Metric("files per commit", "files/commit", "Files per commit", _files_per_commit, LOWER)
DATA_FILES, DATA_BYTES, METADATA_BYTES = (
    Metric(f"{part} {unit}", unit, f"{part.capitalize()} {unit}",
           partial(_of_footprint, name=f"{part}_{unit}", what=f"{part} files"))
    for part, unit in (("data", "files"), ("data", "bytes"), ("metadata", "bytes"))
)  # fmt: skip

FILES_LEFT = Metric("files left", "files/million events", "Files left", _files_left, LOWER)
# Seconds of CPU time per million events. The writer's process contains the client and the timed loop.
WRITER_CPU, SERVERS_CPU, STREAM_CPU = (
    Metric(f"{party} CPU", "s/million events", f"CPU time, {party}", partial(_cpu, party=party), LOWER)
    for party in (WRITER, SERVERS, STREAM)
)
# Highest resident memory in any second.
WRITER_MEMORY, SERVERS_MEMORY = (
    Metric(f"{party} memory", "MB", f"Peak memory, {party}", partial(_memory, party=party), LOWER)
    for party in (WRITER, SERVERS)
)

QUANTITIES = MetricSet(
    all=(
        WRITE_MEDIAN, WRITE_IQR, WRITE_P90, WRITE_P99, WRITE_P999, WRITE_MAX,
        READ_MEDIAN, READ_IQR, READ_P99, READ_PER_EVENT, DECODE_PER_EVENT, DISK_MEDIAN, DISK_IQR, CPU_MEDIAN, CPU_IQR,
        RATE_OF_FIRST, *WRITE_AT.values(), *GROWTH_TO.values(), *WRITE_TAIL.values(), HARNESS_SHARE,
        EVENTS, HARNESS_RATE, SYSTEM_RATE, GROWTH, RELATIVE_GROWTH, FLUSH, MERGE,
        FILE_BYTES, STORED_PER_EVENT, WRITE_AMPLIFICATION, ON_DISK, FIRST_WRITE,
        FLUSH_PER_ROW, MERGE_PER_ROW, POLLING, FILES_PER_COMMIT, DATA_FILES, DATA_BYTES, METADATA_BYTES,
        FILES_LEFT, WRITER_CPU, SERVERS_CPU, STREAM_CPU, WRITER_MEMORY, SERVERS_MEMORY,
    ),
    headline=(WRITE_MEDIAN, RATE_OF_FIRST, WRITE_AT[YOUNG], WRITE_AT[100], GROWTH_TO[100], HARNESS_RATE),
    code=("studies/streams/metrics.py",),
    same_work=DECODE_PER_EVENT,
)  # fmt: skip
