"""What a system under test is to the harness: who it is, what it needs and promises, and how it is let go.

What can be done to one is said by its kind, a subclass of `System` with a conformance suite of its own: a table of one
format, client and catalog (`tables.TableSystem`), or a catalog server (`catalogs.kind.CatalogSystem`). A system knows
nothing of Kafka, of clocks or of Snakemake. Adding one means adding one file here with a subclass of its kind; the
registry finds it, the suite tests it, and a line in config.yaml runs it.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from tidemark.runs.manifest import TypeMapping
from tidemark.services.base import Service

if TYPE_CHECKING:
    import pyarrow as pa


class Capability(StrEnum):
    """What a system declares that it can do; never found out by trying."""

    INLINING = "inlining"
    FLUSH = "flush"
    MERGE = "merge"
    THREADS = "threads"  # the client's number of threads can be set
    READ_BACK = "read-back"  # `ids` returns what was written (all but `null`)
    COMMIT_RETRY = "commit-retry"  # a commit that another writer's overtook is tried again
    READ_BY_OTHERS = "read-by-others"  # others than the client that wrote the table can read it
    BUNDLES = "bundles"  # its writers can make data files, and commit several of them at once
    MAINTENANCE = "maintenance"  # a client can keep the table small while others write it
    WRITERS = "writers"  # several processes may write the table at once, each with a client of its own
    PLANS = "plans"  # tells which files a query reads
    INFINITY = "infinity"  # floating-point columns take infinite values
    HISTORY = "history"  # `history` tells when each commit was made, and of how many rows
    ASKED = "asked"  # `asking` gives a client that never wrote to the table, and can be asked for its rows


# What the catalog is called when it was not started here.
USERS_OWN = "a server of the user's own"

# What a table that keeps its rows can do unless its system says otherwise.
TABLE = frozenset({Capability.READ_BACK, Capability.INFINITY})


@dataclass(frozen=True, slots=True)
class Context:
    """What a system is given to work with.

    `directory` is empty and the system's own: whatever it keeps on disk goes there, names of what is not part
    of the table (credentials, scratch space) beginning with a dot. `services` holds one running service for
    each class of the system's `needs_for`; `rows_per_write` is the largest number of rows that one `write` brings.
    """

    directory: Path
    services: Mapping[type[Service], Service]
    rows_per_write: int
    threads: int = 1
    compression: str = "snappy"
    tools: Mapping[str, Path] = MappingProxyType({})  # the packages of each of the system's `tools`

    @property
    def codec(self) -> str:
        """`compression` as Parquet's writers spell it, in lower case."""
        return "uncompressed" if self.compression == "none" else self.compression


def take(packages: Iterable[Path | str]) -> None:
    """Let this process import what lies in these folders, after all that its stack has."""
    sys.path += [folder for folder in map(str, packages) if folder not in sys.path]


@dataclass(frozen=True, slots=True)
class PerWrite:
    """How often something happens in a write, on average, as strace counts it: at least and at most."""

    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.least:g}" if self.least == self.most else f"{self.least:g} to {self.most:g}"


NONE_PER_WRITE = PerWrite(0, 0)
DEFAULT, FULL = "default", "full"  # levels of durability
STRACE = "strace of 20 single writes and 5 batches"


@dataclass(frozen=True, slots=True)
class Durability:
    """What has reached the disk when `write` returns, and how that is known.

    A sync is a call that returns once something is on the disk (fsync, fdatasync and their like, and each opening
    of a file that is written synchronously). tests/conformance/test_durability.py counts them, in the client and in
    each server, and holds these numbers to what it counts: a server that is not named makes none.
    """

    summary: str
    client_syncs_per_write: PerWrite = NONE_PER_WRITE
    server_syncs_per_write: Mapping[type[Service], PerWrite] = field(default_factory=dict)
    counted: str | None = STRACE  # how; None where nothing was counted, and then `remark` says why
    remark: str = ""

    @property
    def source(self) -> str:
        """How it is known, in words."""
        if self.counted is None:
            return self.remark
        servers = [f"{kind.title}: {syncs}" for kind, syncs in self.server_syncs_per_write.items()]
        numbers = ", ".join([f"client: {self.client_syncs_per_write}", *servers])
        return f"{self.counted}, syncs a write: {numbers}" + (f"; {self.remark}" if self.remark else "")


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of one system that config.yaml may change; a system with settings subclasses this.

    Fields are bool, int, str, or `X | None` of these, each with a default; `metadata={"help": ..., "choices":
    [...], "minimum": ...}` describes and bounds them; `"examples"` are values that the conformance suite tries,
    and `"follows"` names the key of the main configuration that decides where the option is left out.
    """


class System(ABC):
    """What all kinds have in common; made anew for each run, and closed after it."""

    kind: ClassVar[str]  # as messages name it: "a table of one format, client and catalog"

    name: ClassVar[str]  # as config.yaml spells it: "iceberg-pyiceberg"
    title: ClassVar[str]  # as figures spell it: "Iceberg (PyIceberg)"
    format: ClassVar[str]
    client: ClassVar[str]
    catalog: str  # who holds the commit; an option may change it
    in_thesis: ClassVar[bool] = False
    notes: tuple[str, ...] = ()  # what every table must say beside this system; an option may add to it
    needs: ClassVar[tuple[type[Service], ...]] = ()
    capabilities: frozenset[Capability] = frozenset()  # without those that hang on the client's release
    compressions: ClassVar[frozenset[str]] = frozenset({"snappy", "zstd", "none"})  # of Parquet, to use
    # Import names of the client's packages, without pyarrow, which always counts; "duckdb_extension_*" matches all.
    libraries: ClassVar[tuple[str, ...]] = ()
    # Locks in envs/tools whose packages the client needs beside those of the stack, in which they are not.
    tools: ClassVar[tuple[str, ...]] = ()
    durability: Durability  # as `catalog`
    programs_per_write: Mapping[type[Service], PerWrite] = MappingProxyType({})  # that a server starts for a commit
    Options: ClassVar[type[Options]] = Options

    def __init__(self, context: Context, options: Any) -> None:
        self.context = context
        self.options = options
        self.capabilities = type(self).capabilities | self.of_release()

    @property
    def durability_level(self) -> str:
        """DEFAULT, as the client has it, or FULL: data, metadata and commit are on the disk when `write` returns."""
        return str(getattr(self.options, "durability", DEFAULT))

    def say(self, note: str | None) -> None:
        """Add to what every table must say beside this system."""
        self.notes = (*self.notes, *([note] if note else []))

    def withdraw(self, note: str) -> None:
        """Take back a note that does not hold for the installed release."""
        self.notes = tuple(each for each in self.notes if each != note)

    @classmethod
    def needs_for(cls, options: Any) -> tuple[type[Service], ...]:
        """The services that it needs with `options`: `needs`, where no option decides about them."""
        del options
        return cls.needs

    @classmethod
    def of_release(cls) -> frozenset[Capability]:
        """Capabilities that the installed release of the client adds; an instance declares them with the others."""
        return frozenset()

    @classmethod
    def unavailable(cls, options: Any) -> str | None:
        """Why this system cannot run with what is installed here, or None when it can."""
        del options
        return None

    def type_mappings(self, schema: pa.Schema) -> list[TypeMapping]:
        """Columns of `schema` that the format forces into another type; Arrow's two layouts of text are one."""
        del schema
        return []

    def settings(self) -> Mapping[str, str]:
        """What was set, read back from the running system where it can be asked: for run.json."""
        return {}

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        """Versions of the client's libraries, asked of the libraries themselves."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Let go of connections and files; safe to call twice."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A system under the name and with the options that config.yaml gives it."""

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
        """`open` for who works with one kind alone."""
        opened = self.open(context)
        if not isinstance(opened, kind):
            raise TypeError(f"the system '{self.name}' is {self.system.kind}; wanted: {kind.kind}")
        return opened
