"""Tables that are written and read in one call each; every table is new, and made from one table in memory.

    system = variant.open_as(WholeSystem, context)
    system.order(processors)                    the first message to the client's process
    system.address("table-1")                   where the client writes a table
    system.fetched("table-1", folder)           its files, where another reader can open them
    system.remove("table-1")

The client is a separate program, `client.py`, so that it can be bound to processors, use another release than the
harness, and be killed.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from tidemark.code import PACKAGE
from tidemark.runs.manifest import Footprint
from tidemark.systems.base import Capability, Durability, System

CLIENT = "tidemark.systems.wholes.client"


def program() -> Path:
    """Return the file of the client's program."""
    return PACKAGE.parent.joinpath(*CLIENT.split(".")).with_suffix(".py")


class WholeSystem(System):
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

    @property
    def python(self) -> Path:
        """Interpreter that runs the client."""
        if self.of_release_before is None:
            return Path(sys.executable)
        return self.context.tools[self.of_release_before].parents[2] / "bin" / "python"

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        """Return the first message to the client; `processors` are those that it may use."""
        beside = [str(self.context.tools[tool]) for tool in self.tools if tool != self.of_release_before]
        told = {"client": self.library, "codec": self.context.codec, "packages": beside}
        return {**told, "processors": sorted(processors)}

    def environment(self) -> Mapping[str, str]:
        """Return environment variables of the client in addition to those that are the same for all."""
        return {}

    def make_room(self, name: str) -> None:
        """Create what a write of the table `name` requires; not timed."""

    @abstractmethod
    def address(self, name: str) -> str:
        """Return where the client writes the table `name`."""

    @property
    @abstractmethod
    def reader(self) -> str:
        """Name of the reader of `relation`, and how the files reach it."""

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

    def close(self) -> None:
        pass
