"""Interface of a workload, which a study implements: the operations in the windows of a series.

The frame (`series`, `session`, `run`) starts the servers, makes the machine cold and proves it, watches the window and
writes the run's files. It knows no workload by name. To the frame, every run is this sequence:

    with workload.open_window(test_bed, ...) as runner:         a new environment for one window
        window = runner.new_window()
        for _ in runner.segments(window, seconds):              prepares each segment, uncounted
            runner.execute(window, seconds)                     the only timed part
        runner.finish(window)
        result = runner.check(window, ...)                      nothing lost, duplicated or invented
        metadata = runner.describe(window)                      for run.json
"""

from __future__ import annotations

import os
import platform
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from importlib import import_module
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
    import pyarrow as pa

    from tidemark.runs.circumstances import Machine, WarmUp
    from tidemark.runs.dataset import Provenance
    from tidemark.runs.manifest import Flush, Footprint, Merge, ProducerPart, Samples, SystemPart
    from tidemark.runs.proofs import ColdProof, Oracle

ProgressCallback = Callable[[str], None]
Files = Mapping[str, tuple[Path, ...]]  # groups of files, by their names for people


class Window(Protocol):
    """Record of one window; times are in nanoseconds of a clock that stops between segments."""

    elapsed_ns: int

    @property
    def operations(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def elapsed(self) -> npt.NDArray[np.int64]:
        """Return int64[operations], the latency of each operation in order of time."""

    def budget(self) -> dict[str, int]:
        """Return the wall-clock time by activity; the parts sum to `elapsed_ns`."""

    def write_parquet(self, path: Path) -> None:
        """Write operations.parquet: one row per operation, with `start_ns`, `rows` and the workload's own columns."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Results of the checks after a window, of which the oracle is the first."""

    oracle: Oracle
    footprint: Footprint | None = None
    flush: Flush | None = None
    footprint_after_flush: Footprint | None = None
    merge: Merge | None = None


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """Descriptive parts of run.json for a window."""

    system: SystemPart
    versions: Mapping[str, str]  # of the libraries that the workload itself uses
    marks: tuple[str, ...] = ()  # caveats for readers of this run
    found: Mapping[str, Any] = field(default_factory=dict)  # results specific to this workload, as JSON values
    logical_bytes: int = 0  # size of the acknowledged rows in Arrow's format
    producer: ProducerPart | None = None
    files: Mapping[str, Samples] = field(default_factory=dict)  # further raw data, each as NAME.parquet


class Evict(StrEnum):
    """Runs of a series before which the page cache is emptied."""

    FIRST = "first"  # run 0
    EACH = "each"  # all of them, so that processes are warm and files are not
    NEVER = "never"  # none: files are read before run 0, so that only processes are new


class WindowRunner[W: Window](ABC):
    """Environment of one window: new tables, topics and connections. Only `execute` is timed.

    Unless a subclass says otherwise, it has no processes, and is described by its system.
    """

    directory: Path  # folder of the system's data on disk
    is_cancelled = False
    is_counted = True  # False in the warm-up and the probe, which end by their length alone

    def __init__(self, test_bed: TestBed, directory: Path) -> None:
        self.test_bed, self.directory = test_bed, directory

    @abstractmethod
    def new_window(self) -> W:
        """Return an empty window, with its arrays allocated."""

    def segments(self, _window: W, _until_seconds: float) -> Iterator[None]:
        """Prepare the next segment of the window, and yield; end once the window is long enough.

        Most windows are one segment. Raises ServiceError if a server died meanwhile.
        """
        yield

    @abstractmethod
    def execute(self, window: W, until_seconds: float) -> None:
        """Run the timed part, until `window` is `until_seconds` long or needs another segment."""

    def cancel(self) -> None:
        """Make `execute` return; called from another thread during a window if something that it needs has died."""
        self.is_cancelled = True

    def finish(self, window: W) -> None:  # noqa: B027 - some have nothing to end
        """End concurrent activity; raise a TidemarkError, such as StreamError, if the window is invalid."""

    @abstractmethod
    def check(self, window: W, last: bool, show: ProgressCallback) -> CheckResult:
        """Compare the system's data with what it acknowledged; raise OracleError if they differ. `last`: final run."""

    def describe(self, _window: W) -> RunMetadata:
        """Return the system's description and the versions of the libraries that the workload itself uses."""
        import pyarrow as pa

        from tidemark.measure.describe import system_part

        variant = self.test_bed.variant
        system = variant.open(Context(self.directory, {}, 1))
        return RunMetadata(system_part(variant, system, pa.schema([])), {"Python": platform.python_version()})

    def groups(self) -> Mapping[str, Group]:
        """Return the processes of this window, as opposed to those of the harness and the servers."""
        return {}

    def has_ended(self) -> bool:
        """Return True if one of these processes died; cheap enough to call while a window is open."""
        return False

    def excluded_files(self) -> Files:
        """Return files of this window that are meant to be in memory in every run, and do not affect the cold proof."""
        return {}


class Workload(ABC):
    """Work that a series repeats in each window; instantiated once per `ServerSession`.

    Importing its module must not load a client library: `start_processes` and the module `runner` do that, when the
    machine has been made cold.
    """

    name: ClassVar[str]
    measurement: ClassVar[int]  # version of what a window times: raised by hand if that changes, so that series are due
    # Module with `open_window(test_bed, name, seconds, show)`, and with `probe(test_bed, show)` if it may need one.
    runner: str
    runner_class: ClassVar[type[WindowRunner[Any]] | None] = None  # in place of `runner`, if it needs no client library
    services: ClassVar[tuple[type[Service], ...]] = ()  # that it needs, in addition to the system's
    excluded_groups: ClassVar[tuple[str, ...]] = ()  # processes whose writes are charged to it and not to the system
    takes_trips: ClassVar[bool] = True  # if False, none are acquired for it, and its runs name no dataset
    ends_by_itself: bool = False  # a window ends with its work; the spec's length is the maximum
    tools: ClassVar[tuple[str, ...]] = ()  # third-party programs that it uses, each a lock in envs/tools
    evicts: Evict = Evict.FIRST  # before which runs the page cache is emptied

    def __init__(self, spec: SeriesSpec, variant: Variant, trips: Path, private: Path) -> None:
        """Create the workload; `trips`: prepared trips, if it reads them; `private`: folder for state across series."""
        self.spec, self.variant, self.trips, self.private = spec, variant, trips, private

    @classmethod
    def likely_seconds(cls, spec: SeriesSpec) -> float:
        """Return the expected seconds of a window of `spec`, for progress estimates; 0 if it cannot run at all."""
        return spec.window_seconds

    @classmethod
    def tools_for(cls, system: type[System]) -> tuple[str, ...]:
        """Return the locks in envs/tools that it and `system` need."""
        return (*cls.tools, *system.tools)

    @classmethod
    def unavailable(cls, _spec: SeriesSpec, variant: Variant) -> str | None:
        """Return why a series cannot run with what is installed here, or not at all; None if it can."""
        return variant.system.unavailable(variant.options)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.private.parent)

    @property
    def trips_schema(self) -> pa.Schema:
        """Schema of the prepared trips, without metadata."""
        import pyarrow.parquet as pq

        return pq.read_schema(self.trips).remove_metadata()

    def inputs(self) -> Files:
        """Return the files to be made cold with those of servers and client: the trips, and the client's tools."""
        trips = {"dataset": (self.trips,)} if self.takes_trips else {}
        tools = self.variant.system.tools
        return {**trips, **{f"packages of {tool}": tool_files(tool, self.workspace) for tool in tools}}

    def prepare_directory(self, _work: Path) -> AbstractContextManager[object]:
        """Prepare the empty work folder for the servers and tables of one session, for example by a separate disk."""
        return nullcontext()

    def start_processes(self, _work: Path) -> AbstractContextManager[Any]:
        """Start the processes of one session, concurrently with the servers; it yields the test bed's `session`."""
        return nullcontext()

    def taken_over(self, session: Any) -> Any:
        """Return what `start_processes` of another series of a round yielded, for this series."""
        return session

    def open_window(
        self, test_bed: TestBed, name: str, seconds: float, show: ProgressCallback
    ) -> AbstractContextManager[WindowRunner[Any]]:
        """Create a runner in the folder `name` for a window of `seconds`; it is removed afterwards."""
        if self.runner_class is not None:
            return test_bed.opened(self.runner_class, name)
        made: AbstractContextManager[WindowRunner[Any]] = import_module(self.runner).open_window(
            test_bed, name, seconds, show
        )
        return made

    def needs_probe(self) -> bool:
        """Return True if it must `probe` the system before its first run."""
        return False

    def probe(self, test_bed: TestBed, show: ProgressCallback) -> None:
        """Determine, uncounted, what it must know of a system before the first window."""
        import_module(self.runner).probe(test_bed, show)

    @property
    def warm_up_seconds(self) -> float:
        """Length of a window of the warm-up, of which the stretches are parts."""
        return self.spec.window_seconds

    @property
    def warms_up(self) -> bool:
        """True if the system gets faster with use, so that hot runs wait until it is steady."""
        return True


@dataclass(frozen=True, slots=True)
class TestBed:
    """Objects that the runs of a session share: running servers, the workload, and facts known beforehand."""

    spec: SeriesSpec
    variant: Variant
    servers: Servers
    workload: Workload
    dataset: Provenance | None  # None if the workload reads no trips
    machine: Machine
    lock_digests: dict[str, str]
    rest_bytes: int | None  # dirty bytes on this machine when it is idle
    work: Path  # emptied after each run unless tables are kept
    series: Path  # folder of the files of its runs
    session: Any = None  # what the workload started for the session

    @contextmanager
    def folder(self, name: str) -> Iterator[Path]:
        """Create a folder for a window's tables below `work`; it is removed with the window unless tables are kept."""
        directory = private_directory(self.work / name)
        try:
            yield directory
        finally:
            if not self.spec.keep_tables:
                shutil.rmtree(directory, ignore_errors=True)

    @contextmanager
    def opened(self, kind: type[WindowRunner[Any]], name: str) -> Iterator[WindowRunner[Any]]:
        """Yield a runner of the class `kind` in a folder made for it."""
        with self.folder(name) as directory:
            yield kind(self, directory)

    def context(self, directory: Path, rows_per_write: int, **more: Any) -> Context:
        """Return the Context of a system that keeps its data in `directory`; `more` are further fields of it."""
        tools = packages(self.variant.system.tools, self.workload.workspace)
        return Context(directory, self.servers.by_class, rows_per_write, tools=tools, **more)

    def groups(self, runner: WindowRunner[Any]) -> dict[str, Group]:
        """Return the processes of each server started here, of the harness (client included), and of `runner`."""
        ours = (each for each in self.servers.by_class.values() if not each.is_external)
        groups = {each.name: Group(each.leader, ended=each.ended_seconds) for each in ours}
        return {**groups, "harness": Group(lambda: [os.getpid()], alone=True), **runner.groups()}

    def fails(self, runner: WindowRunner[Any]) -> bool:
        """Return True if something that the window of `runner` needs has died; cheap enough for an open window."""
        return self.servers.ended() or runner.has_ended()


@dataclass(frozen=True, slots=True)
class RunHistory:
    """State before a run: the cold proof, the preceding runs in words, and the warm-up."""

    proof: ColdProof
    history: str
    warm_up: WarmUp | None = None


class Done(Protocol):
    """Completed operation: a dataclass whose fields are the columns of its row."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def elapsed_ns(self) -> int: ...

    @property
    def rows(self) -> int: ...


@dataclass(slots=True)
class DoneWindow[D: Done]:
    """A `Window` whose operations are `done`, in order of time; subclasses divide their time by activity."""

    activity: ClassVar[str] = "operations"  # name of their time in the budget

    elapsed_ns: int = 0
    done: list[D] = field(default_factory=list)

    @property
    def operations(self) -> int:
        return len(self.done)

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.done)

    def elapsed(self) -> npt.NDArray[np.int64]:
        import numpy as np

        return np.array([each.elapsed_ns for each in self.done], np.int64)

    def budget(self) -> dict[str, int]:
        busy = sum(each.elapsed_ns for each in self.done)
        return {self.activity: busy, "rest": self.elapsed_ns - busy}

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist([asdict(each) for each in self.done]), path, compression="zstd")


@dataclass(slots=True, kw_only=True)
class ColumnsWindow:
    """A `Window` whose operations are the rows of `columns`; subclasses divide their time by activity."""

    compression: ClassVar[str] = "snappy"  # of operations.parquet

    elapsed_ns: int = 0
    columns: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    @property
    def operations(self) -> int:
        return len(self.columns["start_ns"])

    @property
    def rows(self) -> int:
        return int(self.columns["rows"].sum())

    @property
    def in_order(self) -> dict[str, npt.NDArray[Any]]:
        """The columns in order of time, which is their order unless a subclass sorts them."""
        return self.columns

    def elapsed(self) -> npt.NDArray[np.int64]:
        return self.in_order["elapsed_ns"]

    def write_parquet(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(self.in_order), path, compression=self.compression)
