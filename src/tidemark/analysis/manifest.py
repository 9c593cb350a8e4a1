"""What run.json says, as types: all that is known of a run beside its samples."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.analysis.fields import Fields
from tidemark.analysis.proofs import ColdProof, Oracle
from tidemark.errors import AnalysisError

SCHEMA_VERSION = 1


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
        )


@dataclass(frozen=True, slots=True)
class Disk:
    """The device under the data. `late_bytes`: what a sync right after the window still brought to it."""

    device: str | None
    reason: str | None
    late_bytes: int | None

    @classmethod
    def parse(cls, f: Fields) -> Disk:
        return cls(f.maybe_text("device"), f.maybe_text("reason"), f.maybe_integer("written_after_window_bytes"))


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
    """run.json of one run."""

    series_id: str
    repeat: int
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
    cold_proof: ColdProof
    time_budget_ns: tuple[tuple[str, int], ...]
    marks: tuple[str, ...]
    producer_mode: str
    disk: Disk
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
        if version != SCHEMA_VERSION:
            raise AnalysisError(
                f"{source}: key 'schema_version': found {version}; allowed: {SCHEMA_VERSION}. "
                "Analyse it with the version of Tidemark that measured it."
            )
        return cls(
            series_id=f.part("series").text("id"),
            repeat=f.part("series").integer("repeat", 1),
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
            time_budget_ns=f.counts("time_budget_ns"),
            marks=f.texts("marks"),
            producer_mode=f.part("producer").text("mode"),
            disk=Disk.parse(f.part("disk")),
            oracle=Oracle.parse(f.part("oracle")),
            flush=f.maybe_part("flush", Flush.parse),
            merge=f.maybe_part("merge", Merge.parse),
            footprint=Footprint.parse(f.part("footprint")),
            footprint_after_flush=f.maybe_part("footprint_after_flush", Footprint.parse),
            logical_bytes=f.integer("logical_bytes"),
            history=f.text("history", ""),
            config=f.pairs("config"),
        )
