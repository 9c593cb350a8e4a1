"""What every server has in common: started in a clean directory, checked, stopped, its files named."""

from __future__ import annotations

import os
import shutil
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import ClassVar, Self

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.outside import Made, ledger_of, say_kept
from tidemark.services.programs.process import Child, server_environment, unprivileged_account
from tidemark.services.programs.provision import provision

START_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """Files whose share in the page cache tells whether a server is cold."""

    program: tuple[Path, ...]
    data: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a service is made of: a folder of its own, the configuration, and running servers, by their kinds."""

    workspace: Workspace
    directory: Path
    config: ServicesConfig
    running: Mapping[type[Service], Service] = MappingProxyType({})

    def server[S: Service](self, kind: type[S]) -> S:
        """The one of `kind`, which the service `needs`."""
        found = self.running[kind]
        assert isinstance(found, kind)
        return found


def files_below(folder: Path) -> tuple[Path, ...]:
    """Regular files below `folder`, sorted; those that a running server removes meanwhile are left out."""
    found = []
    for parent, _, names in os.walk(folder):
        found += [path for name in names if (path := Path(parent, name)).is_file() and not path.is_symlink()]
    return tuple(sorted(found))


class Service(ABC):
    """A server: ours, started below `directory`, or somebody else's, known by an address in the settings.

    A subclass takes `(workspace, directory, settings)`. `directory` belongs to the service alone and must lie
    in the workspace's private folder: what an earlier, killed run left there is removed by the first `start`.
    Ports may be drawn anew by every start, so addresses are to be asked for after it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[tuple[type[Service], ...]] = ()  # servers that must run before this one
    locks: ClassVar[tuple[str, ...]] = ()  # folders of envs/jars whose locks name what ours runs from
    tools: ClassVar[tuple[str, ...]] = ()  # locks of envs/tools that ours runs from; the pipeline makes them before
    # Where the configuration's `services` give the address of one that runs already; None: it is always ours.
    address_key: ClassVar[str | None] = None
    has_client: ClassVar[bool] = False  # a program of ours goes before one that runs already, from the same locks
    visits: ClassVar[bool] = False  # it connects to other servers of a series from wherever it runs
    is_instrument: ClassVar[bool] = False  # no part of any system: nobody asks what its end would cost
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    stop_timeout_s: ClassVar[float] = 15.0
    discard_signal: ClassVar[signal.Signals] = signal.SIGKILL  # ends it where its data goes as well
    # What a log says when somebody took a port between our choice and the server's bind.
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use",)

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        self.workspace = workspace
        self.directory = directory
        self._child: Child | None = None
        self._prepared = False
        self._verified = False
        self._is_awaited = False  # launched, and not yet known to answer
        self._log_start = 0
        self._ended_seconds = 0.0
        self._made: list[Made] = []  # on a server that is not ours, and not dropped yet

    @classmethod
    @abstractmethod
    def from_config(cls, around: Surroundings) -> Self:
        """The service as the configuration wants it, and where and on which servers `around` says."""

    @classmethod
    def address_in(cls, config: ServicesConfig) -> str | None:
        """Where `config` says that one runs already; None where ours is to be started."""
        return None if cls.address_key is None else getattr(config, cls.address_key)

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        """Fetch and verify what ours runs from, and make of it what is made once.

        Afterwards a series writes nothing below the cache, which may then be read-only.
        """
        for name in cls.locks:
            provision(name, workspace)

    @property
    def log_path(self) -> Path:
        return self.directory / f"{self.name}.log"

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    @property
    @abstractmethod
    def is_external(self) -> bool:
        """Whether somebody else runs it: then it is never started or stopped, and its files are not seen."""

    @property
    def is_elsewhere(self) -> bool:
        """Whether somebody else's server does its work, be it asked to by a client of ours."""
        return self.is_external

    @abstractmethod
    def version(self) -> str:
        """The version that the running server gives itself."""

    @abstractmethod
    def _provision(self) -> None:
        """Verify the program's files against their lock, fetching what is missing; before each start."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make the data directory; once in the life of `directory`."""

    @abstractmethod
    def _launch(self) -> Child:
        """Start the program on free ports; called again when a port was taken meanwhile."""

    def _serve(self, command: Sequence[str | Path], **environment: str) -> Child:
        """The process of `command`, in the server's folder, as nobody when we are root; its log has what it says."""
        return Child.start(
            self.title,
            command,
            self.log_path,
            env=server_environment(**environment),
            cwd=self.directory,
            account=unprivileged_account(),
        )

    @abstractmethod
    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        """Return once it answers; `log_start` is where in the log this start begins."""

    @abstractmethod
    def _reach(self) -> None:
        """Talk to an external server; any exception says why that failed."""

    @abstractmethod
    def _program_files(self) -> tuple[Path, ...]:
        """Binaries and libraries that it runs from."""

    def start(self) -> None:
        """Start it and wait until it answers; ServiceError, with the end of its log, when it does not.

        DiskFull where that log says so.

        Starting again after `stop` uses the same data. An external server is only reached for.
        """
        if self.is_external:
            self._reach_or_fail()
            return
        if not self._is_awaited:
            self.launch()
        try:
            self._wait_or_try_other_ports()
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Start it and do not wait; `start` does, and must be called. An external server is left alone."""
        if self.is_external:
            return
        if self._child is not None:
            raise ServiceError(f"{self.title} in {self.directory} was started already.")
        self.prepare()
        self._verified = False
        self._launch_on_free_ports()

    def prepare(self) -> None:
        """Verify the program and make its data directory, without starting it; `start` does it otherwise.

        Between the two the machine can be made cold: the program was verified, and nothing of it runs yet.
        """
        if self.is_external:
            return
        if not self._prepared:
            self._clear()
        if not self._verified:
            self._provision()
            self._verified = True
        if not self._prepared:
            self._prepare()
            self._prepared = True

    def _launch_on_free_ports(self) -> None:
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        self._child = self._launch()
        self._is_awaited = True

    def _wait_or_try_other_ports(self) -> None:
        for attempt in range(1, START_ATTEMPTS + 1):
            assert self._child is not None
            try:
                self._wait_until_ready(self._child, self._log_start)
                self._is_awaited = False
                return
            except ServiceError:
                ended = self._child.poll() is not None
                said = self.log_path.read_bytes()[self._log_start :].decode(errors="replace")
                self.stop()
                lost_race = ended and any(phrase in said for phrase in self.port_taken)
                if not lost_race or attempt == START_ATTEMPTS:
                    raise
            self._launch_on_free_ports()

    def stop(self) -> None:
        """End it and everything it started; nothing happens when it does not run. Data and log stay."""
        self._end(self.stop_signal)

    def _end(self, how: signal.Signals) -> None:
        child, self._child = self._child, None
        self._is_awaited = False
        if child is not None:
            self._ended_seconds += child.cpu_seconds()
            child.stop(how, self.stop_timeout_s)

    def kill(self) -> None:
        """End it and everything it started at once, as a crash would; data and log stay. Any thread may call."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it and start it again on the same data."""
        self.stop()
        self.start()

    def remove_data(self) -> None:
        """End it and give the disk space of its data back; the log stays, the next start is a clean one.

        On somebody else's, what was made through this object is dropped, and nothing else.
        """
        if self.is_elsewhere:
            for made in tuple(self._made):
                try:
                    self.drop(made.name)
                except Exception as error:
                    say_kept(f"{self.title}: {made.name}", error, ledger_of(self.workspace).path)
        if not self.is_external:
            self._end(self.discard_signal)
            self._prepared = False
            shutil.rmtree(self.data_directory, ignore_errors=True)

    def drop(self, name: str) -> None:
        """Remove what `name` says was made on the server; nothing happens when it is not there."""
        raise NotImplementedError(f"nothing is made on {self.title}")

    def host_and_port(self) -> tuple[str, int]:
        """Where clients connect to, for who stands between them and it."""
        raise NotImplementedError(f"{self.title} has no one place that clients connect to")

    def address_outside(self) -> dict[str, str]:
        """How an external one is found again, by `at` of tidemark.services.leftovers; without secrets."""
        raise NotImplementedError(f"nothing is made on {self.title}")

    def _note(self, name: str) -> None:
        """To be called before `name` is made on the server: were it not ours, it would be left there by a kill."""
        if self.is_elsewhere:
            made = Made(self.name, self.address_outside(), name)
            ledger_of(self.workspace).note(made)
            self._made.append(made)

    def _strike(self, name: str) -> None:
        """To be called once `name` is gone, or was refused."""
        for made in [each for each in self._made if each.name == name]:
            self._made.remove(made)
            ledger_of(self.workspace).dropped(made)

    def check(self) -> None:
        """Raise ServiceError, with the end of the log, if it should run and does not."""
        if self.is_external:
            self._reach_or_fail()
        elif self._child is None:
            raise ServiceError(f"{self.title} is not running; its log is {self.log_path}.")
        else:
            self._child.check()

    def has_ended(self) -> bool:
        """Whether it was started here and runs no longer; an external one is not asked."""
        return self._child is not None and self._child.poll() is not None

    def pids(self) -> list[int]:
        """Its process and all that descend from it; empty for an external one."""
        return [] if self._child is None else self._child.pids()

    def leader(self) -> list[int]:
        """The one process that we started, which costs no look at all others; empty for an external one."""
        return [] if self._child is None else [self._child.pid]

    def ended_seconds(self) -> float:
        """Processor time of those of its processes that were ended from here."""
        return self._ended_seconds

    def files(self) -> ServiceFiles:
        """What it runs from and what it stores; empty for an external one."""
        if self.is_external:
            return ServiceFiles((), ())
        return ServiceFiles(self._program_files(), files_below(self.data_directory))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _clear(self) -> None:
        private = self.workspace.private.resolve()
        if not self.directory.resolve().is_relative_to(private):
            raise ServiceError(f"{self.directory} is not in {private}; a server's directory must be.")
        if self.directory.exists():
            shutil.rmtree(self.directory)
        private_directory(self.directory)

    def _reach_or_fail(self) -> None:
        try:
            self._reach()
        except Exception as error:
            raise ServiceError(
                f"{self.title} cannot be reached at the address that the configuration gives: {error}. "
                "Check the address, or remove it to have one started here."
            ) from error
