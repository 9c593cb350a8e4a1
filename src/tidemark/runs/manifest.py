"""Types of run.json: everything that is recorded of a run, except its samples; and writing of a run's directory.

Run files of older schema versions are upgraded to the current one before they are decoded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tidemark.paths import sync_directory, write_atomically
from tidemark.runs.circumstances import Disk, Harness, Interference, Machine, WarmUp
from tidemark.runs.dataset import Provenance
from tidemark.runs.proofs import ColdProof, Oracle
from tidemark.runs.serde import Fields, Pairs, read, to_json

SCHEMA_VERSION = 2
READ_VERSIONS = (1, SCHEMA_VERSION)
DEFAULT_DURABILITY, FULL_DURABILITY = "default", "full"
ALMOST = 0.9  # share of a window's intended length that counts as full: clocks and a last operation may shorten it
FIRST_STUDY = FIRST_WORKLOAD = "streams"  # study and workload of files that name none
OLD_DISK = (
    "run files of version 1 charge the system with the stream's log, which reached the disk in the same window; "
    "measure again"
)
# Keys introduced by version 2, which files of version 1 lack.
NEW_IN_2 = ("tidemark", "opening", "interference")
NEW_OF_THE_DISK = tuple(each.name for each in fields(Disk) if each.name not in ("device", "reason", "written_by"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPart:
    """Series that a run belongs to; settings that its workload does not have are None."""

    id: str  # workload, system, mode and fingerprint; the folder below results/runs
    study: str = FIRST_STUDY  # study that asked for it
    workload: str = FIRST_WORKLOAD  # kind of work in its windows
    system: str  # name of the system in the configuration
    mode: str  # single, batch, or the workload's own
    batch_size: int | None = None  # events per write
    stack: str  # releases that it was measured with
    protocol: str  # name of the sizes
    position: int  # place in the order of all series, from 0
    repeat: int = 1  # number of the repeat, from 1
    sweep: str  # sweep that varied a setting; main: none
    threads: int | None = None  # threads that the client may use
    cpus: int | None = None  # processors that the client was bound to; null: all
    encoding: str | None = None  # encoding of events in the topic
    overlap: bool | None = None  # true if the next batch was read during a write
    read_ahead: int | None = None  # maximum number of events per poll


@dataclass(frozen=True, slots=True)
class TypeMapping:
    """Column whose type the format does not support, and the type stored instead."""

    column: str  # name of the column
    given: str  # its type in the trips, as Arrow spells it
    stored: str  # its type in the table
    reason: str  # why they differ


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPart:
    """System under test, as described by its own class."""

    name: str  # name in the configuration
    base: str  # registered system of which it is a variant
    title: str  # name in results
    format: str  # table format; none: nothing is stored
    client: str  # library that writes
    catalog: str  # what holds a commit
    in_thesis: bool  # true if the first study measured it
    notes: tuple[str, ...]  # what readers of its numbers must know
    options: Pairs[Any] = field(hash=False)  # options of the configuration, defaults filled in
    settings: Pairs[str]  # settings that the client was given
    capabilities: tuple[str, ...]  # abilities besides writing, such as flush and merge
    durability: str  # where data and commit are when a write returns
    durability_level: str = DEFAULT_DURABILITY  # default, full, or a level of a kind of system
    durability_source: str  # where that is documented
    type_mappings: tuple[TypeMapping, ...]  # columns that are stored with another type

    @property
    def is_null_baseline(self) -> bool:
        """True for the system that stores nothing, so that its runs measure the harness."""
        return self.format == "none"

    @property
    def is_bare(self) -> bool:
        """True if it writes files without a table format: the baseline of cost for the same rows."""
        return self.format == "Parquet"


@dataclass(frozen=True, slots=True)
class Flush:
    """Flush of inlined rows into Parquet files; `seconds` is the duration of the client's call alone."""

    seconds: float  # duration of the client's call
    rows: int  # rows that left the catalog
    data_files: int  # files that it wrote
    data_bytes: int  # size of these files


@dataclass(frozen=True, slots=True)
class Merge:
    """Compaction of small files into larger ones, the old ones removed; `seconds` as for a flush."""

    seconds: float  # duration of the client's call
    files_before: int  # data files before it
    files_after: int  # data files after it
    bytes_before: int  # size of the data files before it
    bytes_after: int  # size of the data files after it


@dataclass(frozen=True, slots=True)
class Footprint:
    """Size of a table on disk, including old versions and files waiting for removal.

    `catalog_bytes` is the growth of the catalog's database since it was empty; None if it cannot be read, and
    `reason` states why.
    """

    data_files: int  # data files, old versions included
    data_bytes: int  # size of the data files
    metadata_files: int  # logs, manifests and snapshots
    metadata_bytes: int  # size of the metadata files
    catalog_bytes: int | None  # growth of the catalog's database; null: not known
    reason: str | None = None  # why this growth is not known

    @property
    def files(self) -> int:
        """Data and metadata files."""
        return self.data_files + self.metadata_files

    @property
    def bytes(self) -> int:
        """Bytes of data and metadata files."""
        return self.data_bytes + self.metadata_bytes


def together(parts: Sequence[Footprint]) -> Footprint:
    """Sum several tables' footprints; catalog bytes are None because the tables share one catalog."""
    if len(parts) == 1:
        return parts[0]
    counts = zip(*((p.data_files, p.data_bytes, p.metadata_files, p.metadata_bytes) for p in parts), strict=True)
    data_files, data_bytes, metadata_files, metadata_bytes = (sum(each) for each in counts)
    return Footprint(data_files, data_bytes, metadata_files, metadata_bytes, None, "several tables share the catalog")


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """Work of a producer for one topic."""

    events: int  # events sent to the topic
    seconds: float  # duration of sending
    cpu_s: float  # processor time of the producer
    topped_up: int  # events produced while the window was open


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPart(Produced):
    """Producer of a run, and the final size of its topic."""

    mode: str  # ahead: before the window; beside: during it
    laps: float  # passes over the dataset
    stretches: int = 1  # parts of the window; the topic is refilled between them
    topic_bytes: int | None = None  # size of the topic's log at the end

    @classmethod
    def of(
        cls, mode: str, produced: Produced, dataset_rows: int, stretches: int, topic_bytes: int | None
    ) -> ProducerPart:
        sent = {each.name: getattr(produced, each.name) for each in fields(Produced)}
        return cls(**sent, mode=mode, laps=produced.events / dataset_rows, stretches=stretches, topic_bytes=topic_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """run.json of one run; fields that version 1 or the run's workload does not have are None."""

    schema_version: int = SCHEMA_VERSION  # version of this file's format
    tidemark: Harness | None  # measuring code; null in version 1
    series: SeriesPart  # series that the run belongs to
    run: int  # number of the run; 0 is the cold start
    cold: bool  # true for run 0
    started_at: str  # date and time with zone, before the table is made
    window_s: float  # length that was requested, at most
    elapsed_ns: int  # length of the window on a clock that stops between its parts
    operations: int  # number of operations
    events: int  # number of acknowledged rows
    first_write_ns: int | None = None  # latency of the first operation
    system: SystemPart  # system under test
    versions: Pairs[str]  # versions of programs and libraries, by name
    lock_digests: Pairs[str]  # SHA-256 of each lock, by path
    dataset: Provenance | None = None  # trips; null if the workload reads none
    machine: Machine  # machine that it ran on
    cold_proof: ColdProof  # files in the page cache before the servers of a cold run start, or before a hot run
    opening: ColdProof | None  # files in the page cache when the window opens
    warm_up: WarmUp | None = None  # uncounted warm-up before the run; null if there was none
    time_budget_ns: Pairs[int]  # time of the window by activity; the sum is elapsed_ns
    marks: tuple[str, ...]  # caveats for readers of this run
    interference: Interference | None  # other work on the machine during the window
    producer: ProducerPart | None = None  # producer of the topic; null if there is none
    sampler_cpu_s: float  # processor time of watching the machine
    disk: Disk  # bytes that reached the disk
    oracle: Oracle  # comparison of the table with what was acknowledged
    flush: Flush | None = None  # flush of inlined rows, after the window
    merge: Merge | None = None  # compaction of small files, after the last window
    footprint: Footprint | None = None  # size of the table after the window
    footprint_after_flush: Footprint | None = None  # size of the table after the flush
    logical_bytes: int = 0  # size of the acknowledged rows in Arrow's format
    history: str  # preceding runs on the same servers, in words
    found: Pairs[Any] = field(default=(), hash=False)  # results specific to its workload
    config: Pairs[Any] = field(hash=False)  # its spec.json; the workload's settings are keys of their own

    @property
    def harness(self) -> Harness | None:
        return self.tidemark

    @property
    def producer_mode(self) -> str:
        return self.producer.mode if self.producer else "none"

    @property
    def is_timed_out(self) -> bool:
        """True if its window ended by the clock; one that ends with its work may be shorter."""
        return self.elapsed_ns >= ALMOST * 1e9 * self.window_s

    @property
    def commits_wanted(self) -> int:
        """Number of commits that ends its window; 0 if only its length does."""
        return int(dict(self.config).get("commits") or 0)

    @property
    def window_text(self) -> str:
        """Description of what ends its window."""
        if self.commits_wanted:
            return f"{self.commits_wanted:,} commits and at most {self.window_s:.3g} s"
        return f"{self.window_s:.3g} s" if self.is_timed_out else "as long as their requests take"

    @property
    def stretches(self) -> int:
        """Number of parts in which the window was measured."""
        return self.producer.stretches if self.producer else 1

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Read run.json at `path`, of any known version; raise AnalysisError, naming file and key, if it is invalid."""
        f = Fields.read(path)
        f.check_version(*READ_VERSIONS)
        return read(cls, Fields(str(path), brought_up(f.values)))


class Samples(Protocol):
    """Samples of a window, one row each: its operations, or the machine's seconds."""

    def write_parquet(self, path: Path) -> None:
        """Write the samples to `path`, a new file."""


NOTHING: Mapping[str, Samples] = MappingProxyType({})


def write_run(
    directory: Path, operations: Samples, seconds: Samples, manifest: Manifest, more: Mapping[str, Samples] = NOTHING
) -> None:
    """Create `directory` with all of its files atomically, by renaming a temporary one.

    `more` maps names to the workload's own samples. `operations` has at least the columns of
    `samples.OPERATION_COLUMNS`, and `seconds` those of
    `samples.MACHINE_COLUMNS`.
    """
    beside = directory.with_name(f".{directory.name}.writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    for name, samples in {"operations": operations, "machine": seconds, **more}.items():
        path = beside / f"{name}.parquet"
        samples.write_parquet(path)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    write_atomically(beside / "run.json", to_json(manifest))
    sync_directory(beside)
    beside.rename(directory)
    sync_directory(directory.parent)


def brought_up(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of run.json with renamed keys updated, and version 1 converted to version 2.

    Misplaced values are left unchanged: decoding reports them.
    """
    made = dict(values)
    if isinstance(made.get("series"), dict):
        made["series"] = _renamed(made["series"])
    if made.get("schema_version") != 1:
        return made
    if isinstance(disk := made.get("disk"), dict):
        # The disk counters of version 1 include the stream's log.
        known: dict[str, Any] = {
            "device": disk.get("device"),
            "reason": disk.get("reason") or OLD_DISK,
            "written_by": {},
        }
        made["disk"] = dict.fromkeys(NEW_OF_THE_DISK) | known
    return dict.fromkeys(NEW_IN_2) | made


def plan_brought_up(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of plan.json with renamed keys updated, and global settings copied into each series."""
    made = dict(values)
    config = made.get("config")
    if not isinstance(config, dict) or not isinstance(made.get("series"), list):
        return made
    made["config"] = _renamed(config)
    made["series"] = [_series(each, config) if isinstance(each, dict) else each for each in made["series"]]
    return made


def _series(values: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    ahead = config.get("read_ahead", 1) if values.get("mode") == "single" else 1
    lacking = {"repeats": values.get("id"), "title": values.get("system"), "base": values.get("system")}
    return lacking | {"read_ahead": ahead} | _renamed(values)


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with the key of a sweep, which was called study."""
    return {"sweep" if name == "study" and "sweep" not in values else name: value for name, value in values.items()}
