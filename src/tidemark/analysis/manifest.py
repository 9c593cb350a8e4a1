"""What run.json says, as types: all that is known of a run beside its samples."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.analysis.circumstances import Disk, Harness, Interference, WarmUp
from tidemark.analysis.fields import Fields
from tidemark.analysis.proofs import ColdProof, Oracle
from tidemark.errors import AnalysisError

SCHEMA_VERSIONS = (1, 2)
DEFAULT_DURABILITY = "default"


@dataclass(frozen=True, slots=True)
class TypeMapping:
    column: str
    given: str
    stored: str
    reason: str

    @classmethod
    def parse(cls, f: Fields) -> TypeMapping:
        return cls(f.text("column"), f.text("given"), f.text("stored"), f.text("reason"))


@dataclass(frozen=True, slots=True)
class System:
    name: str
    title: str
    format: str
    client: str
    catalog: str
    in_thesis: bool
    notes: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]
    capabilities: tuple[str, ...]
    durability: str
    durability_source: str
    durability_level: str  # "default", or "full" where each commit was made to reach the disk
    type_mappings: tuple[TypeMapping, ...]

    @property
    def is_harness(self) -> bool:
        """Whether this is the system that stores nothing, so that what is measured is the harness."""
        return self.format == "none"

    @classmethod
    def parse(cls, f: Fields) -> System:
        return cls(
            f.text("name"),
            f.text("title"),
            f.text("format"),
            f.text("client"),
            f.text("catalog"),
            f.flag("in_thesis", False),
            f.texts("notes"),
            f.pairs("options"),
            f.pairs("settings"),
            f.texts("capabilities"),
            f.text("durability", "not stated"),
            f.text("durability_source", "not stated"),
            f.text("durability_level", DEFAULT_DURABILITY),
            tuple(TypeMapping.parse(item) for item in f.parts("type_mappings")),
        )


@dataclass(frozen=True, slots=True)
class Dataset:
    source: str
    synthetic: bool
    name: str
    rows: int
    sha256: str
    columns: tuple[tuple[str, str], ...]

    @property
    def label(self) -> str:
        """As every figure and table names it."""
        kind = "SYNTHETIC dataset " if self.synthetic else ""
        return f"{kind}{self.name} ({self.rows:,} trips, sha256 {self.sha256[:8]})"

    @classmethod
    def parse(cls, f: Fields) -> Dataset:
        columns = tuple((item.text("name"), item.text("type")) for item in f.parts("columns"))
        return cls(f.text("source"), f.flag("synthetic"), f.text("name"), f.integer("rows"), f.text("sha256"), columns)


@dataclass(frozen=True, slots=True)
class Machine:
    os: str
    kernel: str
    cpu_model: str
    cores: int
    threads: int
    memory_bytes: int
    disk_device: str | None
    disk_model: str | None
    file_system: str | None
    virtualised: str | None
    identity: str | None  # of processor, kernel, memory, disk and a salted machine id

    @classmethod
    def parse(cls, f: Fields) -> Machine:
        cores = f.integer("cores")
        return cls(
            f.text("os"),
            f.text("kernel"),
            f.text("cpu_model"),
            cores,
            f.integer("threads", cores),
            f.integer("memory_bytes"),
            f.maybe_text("disk_device"),
            f.maybe_text("disk_model"),
            f.maybe_text("file_system"),
            f.maybe_text("virtualised"),
            f.maybe_text("identity"),
        )


@dataclass(frozen=True, slots=True)
class Flush:
    seconds: float
    rows: int
    data_bytes: int

    @classmethod
    def parse(cls, f: Fields) -> Flush:
        return cls(f.number("seconds"), f.integer("rows"), f.integer("data_bytes"))


@dataclass(frozen=True, slots=True)
class Merge:
    seconds: float
    files_before: int
    files_after: int

    @classmethod
    def parse(cls, f: Fields) -> Merge:
        return cls(f.number("seconds"), f.integer("files_before"), f.integer("files_after"))


@dataclass(frozen=True, slots=True)
class Footprint:
    """Files and bytes of a table; `catalog_bytes` is None where nobody could look."""

    data_files: int
    data_bytes: int
    metadata_files: int
    metadata_bytes: int
    catalog_bytes: int | None
    reason: str | None

    @classmethod
    def parse(cls, f: Fields) -> Footprint:
        return cls(
            data_files=f.integer("data_files"),
            data_bytes=f.integer("data_bytes"),
            metadata_files=f.integer("metadata_files"),
            metadata_bytes=f.integer("metadata_bytes"),
            catalog_bytes=f.maybe_integer("catalog_bytes"),
            reason=f.maybe_text("reason"),
        )


@dataclass(frozen=True, slots=True)
class Manifest:
    """run.json of one run, of version 1 or 2. What version 1 does not have is None, or as it always was then."""

    version: int
    harness: Harness | None
    series_id: str
    repeat: int
    read_ahead: int | None
    run: int
    cold: bool
    started_at: str
    window_s: float
    elapsed_ns: int
    operations: int
    events: int
    system: System
    versions: tuple[tuple[str, str], ...]
    lock_digests: tuple[tuple[str, str], ...]
    dataset: Dataset
    machine: Machine
    cold_proof: ColdProof  # before the servers started
    opening: ColdProof | None  # when the window opened
    first_write_ns: int | None
    time_budget_ns: tuple[tuple[str, int], ...]
    marks: tuple[str, ...]
    producer_mode: str
    stretches: int  # pieces that the window was measured in
    disk: Disk
    interference: Interference | None
    warm_up: WarmUp | None
    oracle: Oracle
    flush: Flush | None
    merge: Merge | None
    footprint: Footprint
    footprint_after_flush: Footprint | None
    logical_bytes: int
    history: str
    config: tuple[tuple[str, str], ...]  # of its series: encoding, producer, overlap, ...

    @classmethod
    def parse(cls, f: Fields, source: str) -> Manifest:
        version = f.integer("schema_version")
        if version not in SCHEMA_VERSIONS:
            allowed = " and ".join(map(str, SCHEMA_VERSIONS))
            raise AnalysisError(
                f"{source}: key 'schema_version': found {version}; allowed: {allowed}. "
                "Analyse it with the version of Tidemark that measured it."
            )
        new = version > 1
        return cls(
            version=version,
            harness=Harness.parse(f.part("tidemark")) if new else None,
            series_id=f.part("series").text("id"),
            repeat=f.part("series").integer("repeat", 1),
            read_ahead=f.part("series").maybe_integer("read_ahead"),
            run=f.integer("run"),
            cold=f.flag("cold"),
            started_at=f.text("started_at"),
            window_s=f.number("window_s"),
            elapsed_ns=f.integer("elapsed_ns"),
            operations=f.integer("operations"),
            events=f.integer("events"),
            system=System.parse(f.part("system")),
            versions=f.pairs("versions"),
            lock_digests=f.pairs("lock_digests"),
            dataset=Dataset.parse(f.part("dataset")),
            machine=Machine.parse(f.part("machine")),
            cold_proof=ColdProof.parse(f.part("cold_proof")),
            opening=ColdProof.parse(f.part("opening")) if new else None,
            first_write_ns=f.integer("first_write_ns") if new else None,
            time_budget_ns=f.counts("time_budget_ns"),
            marks=f.texts("marks"),
            producer_mode=f.part("producer").text("mode"),
            stretches=f.part("producer").integer("stretches", 1),
            disk=Disk.parse(f.part("disk"), version),
            interference=Interference.parse(f.part("interference")) if new else None,
            warm_up=f.maybe_part("warm_up", WarmUp.parse),
            oracle=Oracle.parse(f.part("oracle")),
            flush=f.maybe_part("flush", Flush.parse),
            merge=f.maybe_part("merge", Merge.parse),
            footprint=Footprint.parse(f.part("footprint")),
            footprint_after_flush=f.maybe_part("footprint_after_flush", Footprint.parse),
            logical_bytes=f.integer("logical_bytes"),
            history=f.text("history", ""),
            config=f.pairs("config"),
        )
