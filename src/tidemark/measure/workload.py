"""What happens in the windows of a series: the protocol of a workload, which a study brings.

The frame (`series`, `sitting`, `run`) starts the servers, makes the machine cold and proves it, watches the window and
writes the run's files, and knows no workload by name. From its side a run is one straight line:

    with workload.staged(rig, ...) as stage:                a fresh place for one window
        window = stage.new_window()
        for _ in stage.stretches(window, seconds):          what a stretch needs is brought before it, uncounted
            stage.advance(window, seconds)                  THE timed part
        stage.finish(window)
        findings = stage.check(window, ...)                 nothing lost, nothing twice, nothing made up
        description = stage.describe(window)                for run.json
"""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from tidemark.machine.sampler import Group
from tidemark.paths import Workspace, private_directory
from tidemark.runs.spec import SeriesSpec
from tidemark.services.base import Service
from tidemark.services.servers import Servers
from tidemark.software.tools import packages, tool_files
from tidemark.systems.base import Context, System, Variant

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tidemark.runs.circumstances import Machine
    from tidemark.runs.coding.write import Samples
    from tidemark.runs.dataset import Provenance
    from tidemark.runs.manifest import Flush, Footprint, Merge, ProducerPart, SystemPart
    from tidemark.runs.proofs import Oracle

Show = Callable[[str], None]
Files = Mapping[str, tuple[Path, ...]]  # groups of files, by what people call them


class Window(Protocol):
    """What one window left behind; times in nanoseconds of a clock that stands still between stretches."""

    elapsed_ns: int

    @property
    def operations(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def elapsed(self) -> npt.NDArray[np.int64]:
        """int64[operations]: what each took, in the order of time."""

    def budget(self) -> dict[str, int]:
        """Where the wall-clock went; the parts add up to `elapsed_ns`."""

    def write_parquet(self, path: Path) -> None:
        """Write operations.parquet: a row an operation, with `start_ns`, `rows` and what is the workload's own."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found after a window, the oracle having been asked first of all."""

    oracle: Oracle
    footprint: Footprint | None = None
    flush: Flush | None = None
    footprint_after_flush: Footprint | None = None
    merge: Merge | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What run.json says of a window beside its numbers."""

    system: SystemPart
    versions: Mapping[str, str]  # of the libraries that the workload itself works with
    marks: tuple[str, ...] = ()  # what a reader must know before using this run
    found: Mapping[str, Any] = field(default_factory=dict)  # what only this workload has words for, as JSON has it
    logical_bytes: int = 0  # of what was acknowledged, as Arrow holds it
    producer: ProducerPart | None = None
    files: Mapping[str, Samples] = field(default_factory=dict)  # raw data beside the operations: NAME.parquet each


class Stage[W: Window](ABC):
    """A fresh place for one window: tables, topics, connections. Nothing of it is timed but `advance`."""

    directory: Path  # where what the system keeps on disk lies

    @abstractmethod
    def new_window(self) -> W:
        """An empty one, its arrays allocated."""

    @abstractmethod
    def stretches(self, window: W, until_seconds: float) -> Iterator[None]:
        """Bring what the next stretch of the window needs, and yield; end when the window is so long.

        Most windows are one stretch. Raises ServiceError where a server died meanwhile.
        """

    @abstractmethod
    def advance(self, window: W, until_seconds: float) -> None:
        """THE timed part: work until `window` is so long, or until it needs another stretch."""

    @abstractmethod
    def abandon(self) -> None:
        """Called in a window, from another thread, once something that it needs has died: let `advance` end."""

    @abstractmethod
    def finish(self, window: W) -> None:
        """End what goes on beside the window; StreamError or the like where the window is worth nothing."""

    @abstractmethod
    def check(self, window: W, last: bool, show: Show) -> Findings:
        """Hold the system to what it acknowledged; OracleError where it is otherwise. `last`: of its series."""

    @abstractmethod
    def describe(self, window: W) -> Description: ...

    def files_apart(self) -> Files:
        """Files of this window that are meant to be in memory in every run, cold or hot, and prove nothing."""
        return {}


class Workload(ABC):
    """What a series does again and again; made for one sitting of it.

    Importing its module must load no library of a client: that comes when it is opened, the machine being cold by then.
    """

    name: ClassVar[str]
    measurement: ClassVar[int]  # version of what a window times: raised by hand when that changes, and series are due
    services: ClassVar[tuple[type[Service], ...]] = ()  # that it needs, beside those of the system
    apart: ClassVar[tuple[str, ...]] = ()  # groups of processes whose writes are its own and no system's
    takes_trips: ClassVar[bool] = True  # otherwise none are acquired for it, and its runs name no dataset
    ends_by_itself: ClassVar[bool] = False  # a window is over with its work; the spec's length is the longest it may be
    tools: ClassVar[tuple[str, ...]] = ()  # programs of others that it works with, each a lock in envs/tools

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        """`trips`: the prepared trips, where it takes them; `private`: what it remembers from series to series."""
        self.spec, self.variant, self.trips, self.private = spec, variant, trips, private

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """How long a window of `spec` is likely to be, for who waits; 0 where it cannot run at all."""
        return spec.window_seconds

    @classmethod
    def tools_for(cls, system: type[System]) -> tuple[str, ...]:
        """The locks in envs/tools that it and `system` need."""
        return (*cls.tools, *system.tools)

    @classmethod
    def unavailable(cls, spec: SeriesSpec, variant: Variant) -> str | None:
        """Why a series cannot run with what is installed here, or not at all; None when it can."""
        del spec
        return variant.system.unavailable(variant.options)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.private.parent)

    def inputs(self) -> Files:
        """Files that it reads, to be made cold with those of servers and client: the trips, and the client's tools."""
        trips = {"dataset": (self.trips,)} if self.takes_trips else {}
        tools = self.variant.system.tools
        return {**trips, **{f"packages of {tool}": tool_files(tool, self.workspace) for tool in tools}}

    def placed(self, work: Path) -> AbstractContextManager[object]:
        """Make the empty folder `work` ready for the servers and tables of one sitting: by a disk of its own, say."""
        del work
        return nullcontext()

    @abstractmethod
    def started(self, work: Path) -> AbstractContextManager[None]:
        """Start the processes of its own, for one sitting; they may start beside the servers."""

    @abstractmethod
    def staged(self, rig: Rig, name: str, seconds: float, show: Show) -> AbstractContextManager[Stage[Any]]:
        """A stage in the folder `name` for a window of `seconds`, removed afterwards."""

    def groups(self) -> Mapping[str, Group]:
        """Its own processes, to be told from the harness and the servers."""
        return {}

    def has_ended(self) -> bool:
        """Whether a process of its own died; cheap enough to ask while a window is open."""
        return False

    def is_unknown(self) -> bool:
        """Whether it must `probe` the system before its first run."""
        return False

    def probe(self, rig: Rig, show: Show) -> None:
        """Find out, uncounted, what it has to know of a system before the first window."""
        raise NotImplementedError(f"{self.name} has nothing to find out")

    @property
    def warms_up(self) -> bool:
        """Whether the system gets faster with use, so that hot runs wait until it is steady."""
        return True


@dataclass(frozen=True, slots=True)
class Rig:
    """What the runs of a sitting share: running servers, the workload, and what is known before."""

    spec: SeriesSpec
    variant: Variant
    servers: Servers
    workload: Workload
    dataset: Provenance | None  # None where the workload takes no trips
    machine: Machine
    lock_digests: dict[str, str]
    rest_bytes: int | None  # what waits for the disk on this machine when it is at rest
    work: Path  # emptied after each run unless tables are kept
    series: Path  # where the files of its runs go

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """A new folder of a window's tables below `work`, which goes with the window unless tables are kept."""
        directory = private_directory(self.work / name)
        try:
            yield directory
        finally:
            if not self.spec.keep_tables:
                shutil.rmtree(directory, ignore_errors=True)

    def context(self, directory: Path, rows_per_write: int, **more: Any) -> Context:
        """What a system of the series is given that keeps what it has in `directory`; `more` are fields of it."""
        tools = packages(self.variant.system.tools, self.workload.workspace)
        return Context(directory, self.servers.by_class, rows_per_write, tools=tools, **more)

    def groups(self) -> dict[str, Group]:
        """The processes of each server that is ours, of the harness itself (client included), and of the workload."""
        ours = (each for each in self.servers.by_class.values() if not each.is_external)
        groups = {each.name: Group(each.leader, ended=each.ended_seconds) for each in ours}
        return {**groups, "harness": Group(lambda: [os.getpid()], alone=True), **self.workload.groups()}

    def fails(self) -> bool:
        """Whether something died that a window needs; cheap enough to ask while it is open."""
        return self.servers.ended() or self.workload.has_ended()
