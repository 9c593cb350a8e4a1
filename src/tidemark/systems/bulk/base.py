"""Tables that are written and read in one call each; every table is new, and made from one table in memory.

    system = variant.open_as(BulkTable, context)
    system.order(processors)                    the first message to the client's process
    system.address("table-1")                   where the client writes a table
    system.fetched("table-1", folder)           its files, where another reader can open them
    system.remove("table-1")

The client is a separate program, `client.py`, so that it can be bound to processors, use another release than the
harness, and be killed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tidemark.code import PACKAGE
from tidemark.paths import private_directory
from tidemark.runs.manifest import Footprint
from tidemark.services.base import Service, files_below
from tidemark.services.hdfs import USER, DataNode, NameNode
from tidemark.systems import duckdb_client
from tidemark.systems.base import Capability, Durability, System

CLIENT = "tidemark.systems.bulk.client"


def program() -> Path:
    """Return the file of the client's program."""
    return PACKAGE.parent.joinpath(*CLIENT.split(".")).with_suffix(".py")


class BulkTable(System):
    """One client and one location for tables."""

    kind: ClassVar[str] = "a place for whole tables"
    capabilities: frozenset[Capability] = frozenset({Capability.READ_BACK})
    durability: Durability = Durability(
        "Nothing is flushed to the disk.", counted=None, remark="as its client has it; nothing was counted"
    )
    library: ClassVar[str]  # name of the client in the program
    reads: ClassVar[bool] = True  # otherwise its client only writes, and another system reads its tables
    is_slow: ClassVar[bool] = False  # goes through slow servers: the section's `slow` sets its repetitions
    of_release_before: ClassVar[str | None] = None  # lock in envs/tools that runs the client; None: this environment
    reads_by: ClassVar[str] = "DuckDB {duckdb}"  # the reader of `relation`, and how the files reach it

    @property
    def python(self) -> Path:
        """Interpreter that runs the client."""
        if self.of_release_before is None:
            return Path(sys.executable)
        return self.context.tools[self.of_release_before].parents[2] / "bin" / "python"

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        """Return the first message to the client; `processors` are those that it may use."""
        beside = [str(self.context.tools[tool]) for tool in self.tools if tool != self.of_release_before]
        order = {"client": self.library, "codec": self.context.codec, "packages": beside}
        return {**order, "processors": sorted(processors)}

    def environment(self) -> Mapping[str, str]:
        """Return environment variables of the client in addition to those that are the same for all."""
        return {}

    def make_room(self, name: str) -> None:
        """Create what a write of the table `name` requires; not timed."""

    @abstractmethod
    def address(self, name: str) -> str:
        """Return where the client writes the table `name`."""

    @property
    def reader(self) -> str:
        """Text of `reads_by` with DuckDB's release."""
        return self.reads_by.format(duckdb=duckdb_client.DUCKDB.installed())

    @abstractmethod
    def fetched(self, name: str, folder: Path) -> Path:
        """Return the files of the table `name` on the local disk: in place, or copied into the new folder `folder`."""

    @abstractmethod
    def relation(self, place: Path) -> str:
        """Return what DuckDB selects from to read the table at `place`, which `fetched` returned."""

    extensions: ClassVar[tuple[str, ...]] = ()  # DuckDB extensions that `relation` needs

    @abstractmethod
    def listed(self, name: str) -> Mapping[str, int]:
        """Return the size in bytes of each file of the table `name`, by relative path, as its storage reports it."""

    @abstractmethod
    def counted(self, name: str) -> int:
        """Return the row count in the metadata of the table `name`; raise SystemFailure if a file is incomplete."""

    @abstractmethod
    def footprint(self, name: str) -> Footprint:
        """Return the files and bytes of the table `name`."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove the table `name`; no effect if it does not exist."""


class OnDisk(BulkTable):
    """Tables on the local disk, each in a folder of its name below the context's."""

    def place(self, name: str) -> Path:
        """Return the path of the table `name`."""
        return self.context.directory / name

    def address(self, name: str) -> str:
        return str(self.place(name))

    def fetched(self, name: str, folder: Path) -> Path:
        del folder
        return self.place(name)

    def listed(self, name: str) -> Mapping[str, int]:
        place = self.place(name)
        return {path.relative_to(place).as_posix(): path.stat().st_size for path in files_below(place)}

    def remove(self, name: str) -> None:
        shutil.rmtree(self.place(name), ignore_errors=True)


ONE_COPY = "HDFS keeps one copy of each block, on one DataNode of this machine: no network and no second copy is timed"
FROM_MEMORY = "the DataNode leaves blocks to the page cache"
FETCHED = "of files fetched over HTTP (WebHDFS)"


class OnHdfs(BulkTable):
    """Tables on HDFS, whose servers report on the files over HTTP."""

    notes: tuple[str, ...] = (ONE_COPY, FROM_MEMORY)
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode)

    @property
    def names(self) -> NameNode:
        return self.context.server(NameNode)

    def environment(self) -> Mapping[str, str]:
        return {"HADOOP_USER_NAME": USER}

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        return {**super().order(processors), "names": self.names.address}

    def path(self, name: str) -> str:
        """Return a path that is unique to the run, by the name of its folder; each session has its own servers."""
        return f"/{self.context.directory.name}/{name}"

    def address(self, name: str) -> str:
        return f"{self.names.address}{self.path(name)}"

    def fetched(self, name: str, folder: Path) -> Path:
        self.names.web.fetch(self.path(name), private_directory(folder))
        return folder

    def listed(self, name: str) -> Mapping[str, int]:
        return {each.path.as_posix(): each.size for each in self.names.web.listed(self.path(name))}

    def remove(self, name: str) -> None:
        self.names.web.remove(self.path(name))


class ParquetOnHdfs(OnHdfs):
    """Tables whose rows are in some of the Parquet files below their folders, and that store no row count."""

    @abstractmethod
    def parquet(self, place: Path) -> Sequence[Path]:
        """Return the files that hold the rows of the table at `place`, which `fetched` returned."""

    def relation(self, place: Path) -> str:
        files = ", ".join(map(duckdb_client.literal, self.parquet(place)))
        return f"read_parquet([{files}])"

    def counted(self, name: str) -> int:
        """Return the row count by the footers of the table's files, all of which are fetched."""
        import pyarrow.parquet as pq

        with tempfile.TemporaryDirectory(dir=self.context.directory) as folder:
            files = self.parquet(self.fetched(name, Path(folder, name)))
            return sum(pq.read_metadata(path).num_rows for path in files)
