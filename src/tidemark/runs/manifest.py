"""What run.json says, as types: all that is known of a run beside its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidemark.errors import AnalysisError
from tidemark.runs.circumstances import Disk, Harness, Interference, Machine, WarmUp
from tidemark.runs.coding.fields import Fields
from tidemark.runs.coding.older import brought_up
from tidemark.runs.coding.shapes import Pairs, read
from tidemark.runs.dataset import Provenance
from tidemark.runs.proofs import ColdProof, Oracle

SCHEMA_VERSION = 2
READ_VERSIONS = (1, SCHEMA_VERSION)
DEFAULT_DURABILITY, FULL_DURABILITY = "default", "full"
ALMOST = 0.9  # of a window's intended length, which clocks and what is under way at its end may take from it
FIRST_STUDY = FIRST_WORKLOAD = "streams"  # whose runs they are, and what they did, where files do not say it


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPart:
    """The series that a run belongs to. What a workload has no word for is None."""

    id: str
    study: str = FIRST_STUDY
    workload: str = FIRST_WORKLOAD
    system: str
    mode: str
    batch_size: int | None = None
    stack: str
    protocol: str
    position: int
    repeat: int = 1
    sweep: str
    threads: int | None = None
    cpus: int | None = None
    encoding: str | None = None
    overlap: bool | None = None
    read_ahead: int | None = None


@dataclass(frozen=True, slots=True)
class TypeMapping:
    """A column whose type the format cannot hold as it is, and the type that it holds instead."""

    column: str
    given: str
    stored: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemPart:
    """The system that was measured, as it said itself."""

    name: str
    base: str
    title: str
    format: str
    client: str
    catalog: str
    in_thesis: bool
    notes: tuple[str, ...]
    options: Pairs[Any] = field(hash=False)  # of any type that JSON has
    settings: Pairs[str]
    capabilities: tuple[str, ...]
    durability: str
    durability_level: str = DEFAULT_DURABILITY  # or "full", or what a kind of system calls its own
    durability_source: str
    type_mappings: tuple[TypeMapping, ...]

    @property
    def is_harness(self) -> bool:
        """Whether this is the system that stores nothing, so that what is measured is the harness."""
        return self.format == "none"

    @property
    def is_bare(self) -> bool:
        """Whether it writes files with no table format around them: the least that the same rows take."""
        return self.format == "Parquet"


@dataclass(frozen=True, slots=True)
class Flush:
    """Inlined rows that a flush moved into Parquet files; `seconds` is the client's call alone."""

    seconds: float
    rows: int
    data_files: int
    data_bytes: int


@dataclass(frozen=True, slots=True)
class Merge:
    """Small files that a merge replaced by larger ones, with the old ones removed; `seconds` as for a flush."""

    seconds: float
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class Footprint:
    """What the table takes on disk, old versions and files waiting for removal included.

    `catalog_bytes` is what the catalog's database grew by since it was empty; None where nobody can look, and
    `reason` says why.
    """

    data_files: int
    data_bytes: int
    metadata_files: int
    metadata_bytes: int
    catalog_bytes: int | None
    reason: str | None = None


def together(parts: Sequence[Footprint]) -> Footprint:
    """Several tables as one, but for what of their catalogs nobody can tell apart."""
    if len(parts) == 1:
        return parts[0]
    counts = zip(*((p.data_files, p.data_bytes, p.metadata_files, p.metadata_bytes) for p in parts), strict=True)
    data_files, data_bytes, metadata_files, metadata_bytes = (sum(each) for each in counts)
    return Footprint(data_files, data_bytes, metadata_files, metadata_bytes, None, "several tables share the catalog")


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """What a producer did for one topic."""

    events: int
    seconds: float
    cpu_s: float
    topped_up: int  # events that were produced while the window was open


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPart(Produced):
    """The producer of a run, and what became of its topic."""

    mode: str  # ahead | beside
    laps: float  # how often the dataset was gone through
    stretches: int = 1  # that the window was measured in, the topic being refilled between them
    topic_bytes: int | None = None

    @classmethod
    def of(
        cls, mode: str, produced: Produced, dataset_rows: int, stretches: int, topic_bytes: int | None
    ) -> ProducerPart:
        return cls(
            mode=mode,
            events=produced.events,
            seconds=produced.seconds,
            cpu_s=produced.cpu_s,
            topped_up=produced.topped_up,
            laps=produced.events / dataset_rows,
            stretches=stretches,
            topic_bytes=topic_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """run.json of one run. What files of version 1 do not say is None, and so is what not every workload has."""

    schema_version: int = SCHEMA_VERSION
    tidemark: Harness | None
    series: SeriesPart
    run: int
    cold: bool
    started_at: str
    window_s: float
    elapsed_ns: int
    operations: int
    events: int
    first_write_ns: int | None = None
    system: SystemPart
    versions: Pairs[str]
    lock_digests: Pairs[str]
    dataset: Provenance | None = None
    machine: Machine
    cold_proof: ColdProof  # before the servers of a cold run start, or right before a hot one
    opening: ColdProof | None  # when the window opens
    warm_up: WarmUp | None = None
    time_budget_ns: Pairs[int]
    marks: tuple[str, ...]  # what a reader must know before using this run
    interference: Interference | None
    producer: ProducerPart | None = None
    sampler_cpu_s: float
    disk: Disk
    oracle: Oracle
    flush: Flush | None = None
    merge: Merge | None = None
    footprint: Footprint | None = None
    footprint_after_flush: Footprint | None = None
    logical_bytes: int = 0
    history: str  # the runs before it on the same servers, in words
    found: Pairs[Any] = field(default=(), hash=False)  # what only its workload has words for
    config: Pairs[Any] = field(hash=False)  # what its series was told: its spec.json

    @property
    def version(self) -> int:
        return self.schema_version

    @property
    def harness(self) -> Harness | None:
        return self.tidemark

    @property
    def series_id(self) -> str:
        return self.series.id

    @property
    def repeat(self) -> int:
        return self.series.repeat

    @property
    def read_ahead(self) -> int | None:
        return self.series.read_ahead

    @property
    def producer_mode(self) -> str:
        return self.producer.mode if self.producer else "none"

    @property
    def is_timed_out(self) -> bool:
        """Whether its window was over by the clock; one that was over with its work has a length of its own."""
        return self.elapsed_ns >= ALMOST * 1e9 * self.window_s

    @property
    def stretches(self) -> int:
        """Pieces that the window was measured in."""
        return self.producer.stretches if self.producer else 1

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """run.json at `path`, of any version that is known; AnalysisError, naming file and key, for anything else."""
        f = Fields.read(path)
        version = f.integer("schema_version")
        if version not in READ_VERSIONS:
            allowed = " and ".join(map(str, READ_VERSIONS))
            raise AnalysisError(
                f"{path}: key 'schema_version': found {version}; allowed: {allowed}. "
                "Analyse it with the version of Tidemark that measured it."
            )
        return read(cls, Fields(str(path), brought_up(f.values)))
