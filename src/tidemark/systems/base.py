"""Interface of a system under test to the harness: its identity, requirements, guarantees and shutdown.

The operations of a system are defined by its kind, a subclass of `System` with its own conformance suite: a table
of one format, client and catalog (`tables.TableSystem`), or a catalog server (`catalogs.base.CatalogSystem`). A system
does not depend on Kafka, clocks or Snakemake. To add one, add one file here with a subclass of its kind: the registry
finds it, the suite tests it, and a line in config.yaml runs it.
"""

from __future__ import annotations

import sys
from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from tidemark.runs.manifest import TypeMapping
from tidemark.services.base import Service

if TYPE_CHECKING:
    import pyarrow as pa


class Capability(StrEnum):
    """Capability that a system declares; it is never detected by trying."""

    INLINING = "inlining"
    FLUSH = "flush"
    MERGE = "merge"
    THREADS = "threads"  # the client's number of threads can be set
    READ_BACK = "read-back"  # `ids` returns what was written (all but `null`)
    COMMIT_RETRY = "commit-retry"  # the client retries a commit that lost to another writer's
    READ_BY_OTHERS = "read-by-others"  # clients other than the one that wrote the table can read it
    BUNDLES = "bundles"  # its writers can create data files, and commit several of them at once
    MAINTENANCE = "maintenance"  # a client can run maintenance while others write to the table
    WRITERS = "writers"  # several processes may write to the table at once, each with its own client
    PLANS = "plans"  # reports how many data files a query reads
    INFINITY = "infinity"  # floating-point columns accept infinite values
    HISTORY = "history"  # `history` returns the time and the row count of each commit
    ADD_COLUMN = "add-column"  # a column can be added to a table that has rows
    ASKED = "asked"  # `open_reader` returns a client that never wrote to the table and can query its rows


# Description of a server that Tidemark did not start.
USERS_OWN = "a server of the user's own"

# Capabilities of a table that stores its rows, unless its system declares others.
TABLE = frozenset({Capability.READ_BACK, Capability.INFINITY})
# Of a table that other clients can read, and that several processes may write; it has a history of its commits.
OPEN_TABLE = TABLE | {Capability.READ_BY_OTHERS, Capability.WRITERS, Capability.HISTORY}


@dataclass(frozen=True, slots=True)
class Context:
    """Resources that the harness gives to a system.

    `directory` is empty and private to the system: everything it keeps on disk goes there; names of files that are not
    part of the table (credentials, scratch space) begin with a dot. `services` holds one running service for each class
    in the system's `needs_for`; `rows_per_write` is the largest number of rows in one `write`.
    """

    directory: Path
    services: Mapping[type[Service], Service]
    rows_per_write: int
    threads: int = 1
    compression: str = "snappy"
    tools: Mapping[str, Path] = MappingProxyType({})  # the package folder of each of the system's `tools`
    answer_s: int | None = None  # the longest wait of a `TableSystem.waiting` client for an answer; None: its default

    def server[S: Service](self, kind: type[S]) -> S:
        """Return the running server of class `kind`, which the system must list in `needs_for`."""
        return cast(S, self.services[kind])

    @property
    def codec(self) -> str:
        """`compression` in the spelling of Parquet writers, in lower case."""
        return "uncompressed" if self.compression == "none" else self.compression


def take(packages: Iterable[Path | str]) -> None:
    """Append these folders to `sys.path`, after the packages of the stack, so that they can be imported from."""
    sys.path += [folder for folder in map(str, packages) if folder not in sys.path]


@dataclass(frozen=True, slots=True)
class PerWrite:
    """Range of the average number of events per write, as strace counts them: minimum and maximum."""

    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.least:g}" if self.least == self.most else f"{self.least:g} to {self.most:g}"


NONE_PER_WRITE = PerWrite(0, 0)
DEFAULT, FULL = "default", "full"  # levels of durability
STRACE = "strace of 20 single writes and 5 batches"


@dataclass(frozen=True, slots=True)
class Durability:
    """Data that is on the disk when `write` returns, and how this is known.

    A sync is a call that returns once something is on the disk: fsync, fdatasync and similar calls, and each open of a
    file for synchronous writes. tests/conformance/test_durability.py counts them, in the client and in each server, and
    checks these numbers against its counts: a server that is not named makes none.
    """

    summary: str
    client_syncs_per_write: PerWrite = NONE_PER_WRITE
    server_syncs_per_write: Mapping[type[Service], PerWrite] = field(default_factory=dict)
    counted: str | None = STRACE  # how it was counted; None if nothing was counted, and then `remark` gives the reason
    remark: str = ""

    @property
    def source(self) -> str:
        """Description of how the durability is known."""
        if self.counted is None:
            return self.remark
        servers = [f"{kind.title}: {syncs}" for kind, syncs in self.server_syncs_per_write.items()]
        numbers = ", ".join([f"client: {self.client_syncs_per_write}", *servers])
        return f"{self.counted}, syncs a write: {numbers}" + (f"; {self.remark}" if self.remark else "")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one system that config.yaml can change; a system with settings subclasses this.

    Fields are bool, int, str, or `X | None` of these, each an `option`.
    """


def option(default: Any, text: str, **limits: Any) -> Any:
    """Return a field of `Options` with this default, described by `text`.

    `limits` are `choices` and `minimum`; `examples`, values that the conformance suite tries; and `follows`, the key of
    the main configuration that sets the option if it is omitted.
    """
    return field(default=default, metadata={"help": text, **limits})


class System(ABC):
    """Base class of all kinds; the harness creates a new instance for each run and closes it afterwards."""

    kind: ClassVar[str]  # as messages name it: "a table of one format, client and catalog"

    name: ClassVar[str]  # as config.yaml spells it: "iceberg-pyiceberg"
    title: ClassVar[str]  # as figures spell it: "Iceberg (PyIceberg)"
    format: ClassVar[str]
    client: ClassVar[str]
    catalog: str  # component that records the commit; an option may change it
    in_thesis: ClassVar[bool] = False
    notes: tuple[str, ...] = ()  # notes that every table of results prints with this system; an option may add to them
    needs: ClassVar[tuple[type[Service], ...]] = ()
    capabilities: frozenset[Capability] = frozenset()  # without those that depend on the client's release
    compressions: ClassVar[frozenset[str]] = frozenset({"snappy", "zstd", "none"})  # Parquet codecs that it can use
    packages: ClassVar[Mapping[str, str]] = MappingProxyType({})  # whose versions are reported, by the name in reports
    # Import names of the client's packages, without pyarrow, which always counts; "duckdb_extension_*" is a pattern.
    libraries: ClassVar[tuple[str, ...]] = ()
    # Locks in envs/tools with packages that the client needs in addition to those of the stack.
    tools: ClassVar[tuple[str, ...]] = ()
    durability: Durability  # an option may change it, as with `catalog`
    programs_per_write: Mapping[type[Service], PerWrite] = MappingProxyType({})  # that a server starts per commit
    Options: ClassVar[type[Options]] = Options

    def __init__(self, context: Context, options: Any) -> None:
        self.context = context
        self.options = options
        self.capabilities = type(self).capabilities | self.of_release()

    @property
    def durability_level(self) -> str:
        """DEFAULT (as the client has it), or FULL: data, metadata and commit are on the disk when `write` returns."""
        return str(getattr(self.options, "durability", DEFAULT))

    def say(self, note: str | None) -> None:
        """Add a note that every table of results prints with this system; None adds nothing."""
        self.notes = (*self.notes, *([note] if note else []))

    def withdraw(self, note: str) -> None:
        """Remove a note that does not apply to the installed release."""
        self.notes = tuple(each for each in self.notes if each != note)

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        """Return the services that it needs with `options`; by default `needs`, which no option changes."""
        del options
        return cls.needs

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        """Return the capabilities that the installed client release adds; an instance declares them with the others."""
        return frozenset()

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        """Return why this system cannot run with the installed software, or None if it can."""
        del options
        return None

    def type_mappings(self, schema: pa.Schema) -> list[TypeMapping]:
        """Return the columns that the format stores as another type; Arrow's two string layouts count as one type."""
        del schema
        return []

    def settings(self) -> Mapping[str, str]:
        """Return the settings in effect for run.json, read back from the running system where possible."""
        return {}

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Return the versions of the client's libraries."""
        return {name: version(package) for name, package in cls.packages.items()}

    def close(self) -> None:  # noqa: B027 - some hold nothing
        """Close connections and files; safe to call twice."""

    def drop(self) -> None:  # noqa: B027 - most keep everything in their folder
        """Remove what holds the tables outside of the system's folder; called after `close`, if they are not kept."""


@dataclass(frozen=True, slots=True)
class Variant:
    """System with the name and the options that config.yaml gives it."""

    name: str
    system: type[System]
    options: Any = field(default_factory=Options)
    title: str = ""

    @property
    def needs(self) -> tuple[type[Service], ...]:
        return self.system.needs_for(self.options)

    def open(self, context: Context) -> System:
        return self.system(context, self.options)

    def open_as[Kind: System](self, kind: type[Kind], context: Context) -> Kind:
        """Open the system as one of `kind`; raise TypeError if it is of another kind."""
        opened = self.open(context)
        if not isinstance(opened, kind):
            raise TypeError(f"the system '{self.name}' is {self.system.kind}; wanted: {kind.kind}")
        return opened
