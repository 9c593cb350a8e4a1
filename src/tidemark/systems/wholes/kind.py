"""Tables that are written whole: each is new, made of one table in memory by one call, and read back by another.

    system = variant.open_as(WholeSystem, context)
    system.order(processors)                    what the client's process is told first
    system.address("table-1")                   where it puts a table
    system.fetched("table-1", folder)           its files, where another reader can open them
    system.remove("table-1")

The client is a program of its own, `client.py`, so that it can be bound to processors, be of another release than what
the harness runs on, and be killed.
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
    """The file of the client's program."""
    return PACKAGE.parent.joinpath(*CLIENT.split(".")).with_suffix(".py")


class WholeSystem(System):
    """One client and one place for tables."""

    kind: ClassVar[str] = "a place for whole tables"
    capabilities: frozenset[Capability] = frozenset({Capability.READ_BACK})
    durability: Durability = Durability(
        "Nothing is flushed to the disk.", counted=None, remark="as its client has it; nothing was counted"
    )
    library: ClassVar[str]  # which of the program's clients
    reads: ClassVar[bool] = True  # otherwise its client writes alone: what it wrote is read by another system
    is_slow: ClassVar[bool] = False  # goes through servers that take their time: the section says apart how often
    of_release_before: ClassVar[str | None] = None  # the lock in envs/tools whose environment runs the client

    @property
    def python(self) -> Path:
        """The interpreter that runs the client."""
        if self.of_release_before is None:
            return Path(sys.executable)
        return self.context.tools[self.of_release_before].parents[2] / "bin" / "python"

    def order(self, processors: Collection[int]) -> dict[str, Any]:
        """What the client is told before its first table; `processors` are those that it may use."""
        beside = [str(self.context.tools[tool]) for tool in self.tools if tool != self.of_release_before]
        told = {"client": self.library, "codec": self.context.codec, "packages": beside}
        return {**told, "processors": sorted(processors)}

    def environment(self) -> Mapping[str, str]:
        """What the client's environment has beside what is the same for all."""
        return {}

    def make_room(self, name: str) -> None:
        """Make what a write of the table `name` finds there; before the time."""

    @abstractmethod
    def address(self, name: str) -> str:
        """Where the client puts the table `name`."""

    @property
    @abstractmethod
    def reader(self) -> str:
        """What `relation` is read by, and by which way its files come there."""

    @abstractmethod
    def fetched(self, name: str, folder: Path) -> Path:
        """The files of the table `name` on the local disk: where they are, or copied into the new folder `folder`."""

    @abstractmethod
    def relation(self, place: Path) -> str:
        """What DuckDB selects from to read the table that `fetched` returned the place of."""

    extensions: ClassVar[tuple[str, ...]] = ()  # of DuckDB, which `relation` needs

    @abstractmethod
    def listed(self, name: str) -> Mapping[str, int]:
        """The files of the table `name`, from its folder, with their sizes in bytes, as those say who keep them."""

    @abstractmethod
    def counted(self, name: str) -> int:
        """The rows of the table `name` by its own metadata; SystemFailure where a file that it names is not whole."""

    @abstractmethod
    def footprint(self, name: str) -> Footprint:
        """Files and bytes of the table `name`."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove the table `name`; nothing happens where there is none."""

    def close(self) -> None:
        pass
