"""Base of all servers: start in a clean directory, health check, stop, and the list of their files."""

from __future__ import annotations

import copy
import os
import re
import shutil
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self

from tidemark.config import ServicesConfig
from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.outside import Made, ledger_of, say_kept
from tidemark.services.programs.process import Child, give, server_environment, unprivileged_account, wait_for_line
from tidemark.services.programs.provision import provision

START_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class ServiceFiles:
    """Files whose share in the page cache shows whether a server is cold."""

    program: tuple[Path, ...]
    data: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Inputs for constructing a service: its own folder, the configuration, and running servers by class."""

    workspace: Workspace
    directory: Path
    config: ServicesConfig
    running: Mapping[type[Service], Service] = MappingProxyType({})

    def server[S: Service](self, kind: type[S]) -> S:
        """Return the running server of class `kind`, which must be listed in the service's `needs`."""
        found = self.running[kind]
        assert isinstance(found, kind)
        return found


def files_below(folder: Path) -> tuple[Path, ...]:
    """Return regular files below `folder`, sorted; files that a running server removes meanwhile are left out."""
    found: list[Path] = []
    folders = [os.fspath(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found.append(Path(entry.path))
    return tuple(sorted(found))


class Service(ABC):
    """A server: started by Tidemark below `directory`, or external, at an address given in the configuration.

    A subclass takes `(workspace, directory)`, and its own settings or that address. `directory` is used by this service
    only and must be in the workspace's private folder; the first `start` removes what an earlier, killed run left
    there. Each start may choose other ports, so read addresses after it.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[tuple[type[Service], ...]] = ()  # servers that must run before this one
    locks: ClassVar[tuple[str, ...]] = ()  # folders of envs/jars whose locks pin the jars of a server started here
    tools: ClassVar[tuple[str, ...]] = ()  # likewise the locks of envs/tools; the pipeline installs them first
    # Key in the configuration's `services` with the address of an external server; None: always started here.
    address_key: ClassVar[str | None] = None
    has_client: ClassVar[bool] = False  # runs a local client of an external server, from the same locks
    visits: ClassVar[bool] = False  # connects to other servers of a series from the machine that it runs on
    has_one_port: ClassVar[bool] = False  # clients connect to its `_port` alone
    is_instrument: ClassVar[bool] = False  # measurement tool, not part of any system: never killed by fault experiments
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    discard_signal: ClassVar[signal.Signals] = signal.SIGKILL  # stops it when its data is discarded too
    # Log messages that mean that another process took a port between its choice and the server's bind.
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use",)
    ready_line: ClassVar[str]  # in the log of a server that is ready; before its port, if that is chosen by the kernel
    ready_s: ClassVar[float] = 60.0
    version_pattern: ClassVar[str]  # finds lines of the log; the group in the last one is the server's version
    role: ClassVar[str] = "server"  # in messages

    def __init__(self, workspace: Workspace, directory: Path, address: str | None = None) -> None:
        self.workspace = workspace
        self.directory = directory
        self.external_at = address  # of an external server
        self._jars: Sequence[Path] = ()
        self._port = 0  # of the last start, on loopback
        self._child: Child | None = None
        self._prepared = False
        self._verified = False
        self._is_awaited = False  # launched, not yet known to answer
        self._log_start = 0
        self._ended_seconds = 0.0
        self._made: list[Made] = []  # on an external server, not yet dropped

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        """Return the service for the configuration, with the directory and servers in `around`."""
        return cls(around.workspace, around.directory, cls.address_in(around.config))

    @classmethod
    def address_in(cls, config: ServicesConfig) -> str | None:
        """Return the address of an external server in `config`, or None if the server is to be started here."""
        return None if cls.address_key is None else getattr(config, cls.address_key)

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        """Fetch and verify the files that the server runs from, and build what is built once.

        After this a series writes nothing below the cache, so the cache may be read-only.
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
    def uri(self) -> str:
        """Address for clients of a server that is reached over HTTP, without a trailing slash."""
        return (self.external_at or f"http://127.0.0.1:{self._port}").rstrip("/")

    @property
    def is_external(self) -> bool:
        """True if the server is external: it is never started or stopped, and its files are not visible."""
        return self.external_at is not None

    @property
    def is_elsewhere(self) -> bool:
        """True if an external server does the work, including when a Tidemark client passes requests to it."""
        return self.is_external

    def version(self) -> str:
        """Return the version that the running server reports; raise ServiceError if its log names none."""
        if self.is_external:
            return f"not reported by the {self.role}"
        named = re.findall(self.version_pattern, self.log_path.read_text(errors="replace"), re.MULTILINE)
        if not named:
            raise ServiceError(f"{self.title} named no version in {self.log_path}.")
        return str(named[-1])

    def _provision(self) -> None:
        """Verify the program's files against their lock and fetch missing ones; called before each start."""
        self._jars = [jar for name in self.locks for jar in provision(name, self.workspace)]

    def _prepare(self) -> None:
        """Create the data directory; called once in the life of `directory`."""
        give(private_directory(self.data_directory))

    @abstractmethod
    def _launch(self) -> Child:
        """Start the program on free ports; called again if another process took one of them."""

    def _serve(self, command: Sequence[str | Path], **environment: str) -> Child:
        """Start `command` in the server's folder, unprivileged if Tidemark is root; log its output to `log_path`."""
        return self._begin(self.title, command, self.log_path, environment)

    def _run(self, what: str, log: str, command: Sequence[str | Path], limit_s: float, **environment: str) -> None:
        """Run `command`, called `what` in messages, to its end, otherwise as `_serve` does, with the file `log`."""
        self._begin(what, command, self.directory / log, environment).run_to_end(limit_s)

    def _begin(
        self,
        what: str,
        command: Sequence[str | Path],
        log: Path,
        environment: Mapping[str, str],
        folder: Path | None = None,
    ) -> Child:
        env, account = server_environment(**environment), unprivileged_account()
        return Child.start(what, command, log, env=env, cwd=folder or self.directory, account=account)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        """Return once the server answers; `log_start` is the byte of the log at which this start begins."""
        wait_for_line(child, self.ready_line, self.ready_s, log_start)
        if self.ready_line.endswith("port: "):
            said = self.log_path.read_bytes()[log_start:].decode(errors="replace")
            self._port = int(said.split(self.ready_line)[1].split()[0])
        self._reach()

    def _reach(self) -> None:
        """Contact the server; any exception gives the reason for a failure. One that can be external overrides this."""
        self.check()

    @abstractmethod
    def _program_files(self) -> tuple[Path, ...]:
        """Return the binaries and libraries that the server runs from."""

    def start(self) -> None:
        """Start the server and wait until it answers; raise ServiceError, with the end of its log, if it does not.

        Raise DiskFull if the log reports a full disk. Starting again after `stop` uses the same data. For an external
        server, only check that it answers.
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
        """Start the server without waiting; `start` must follow, and waits. Does nothing for an external server."""
        if self.is_external:
            return
        if self._child is not None:
            raise ServiceError(f"{self.title} in {self.directory} was started already.")
        self.prepare()
        self._verified = False
        self._launch_on_free_ports()

    def prepare(self) -> None:
        """Verify the program and create its data directory without starting it; `start` does this otherwise.

        Between `prepare` and `start` the page cache can be dropped: the program is verified and nothing of it runs yet.
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
                text = self.log_path.read_bytes()[self._log_start :].decode(errors="replace")
                self.stop()
                lost_race = ended and any(phrase in text for phrase in self.port_taken)
                if not lost_race or attempt == START_ATTEMPTS:
                    raise
            self._launch_on_free_ports()

    def stop(self) -> None:
        """Stop the server and all its processes; do nothing if it is not running. Data and log stay."""
        self._end(self.stop_signal)

    def _end(self, how: signal.Signals) -> None:
        child, self._child = self._child, None
        self._is_awaited = False
        if child is not None:
            self._ended_seconds += child.cpu_seconds()
            child.stop(how)

    def kill(self) -> None:
        """Kill the server and all its processes, like a crash; data and log stay. Callable from any thread."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the server and start it on the same data."""
        self.stop()
        self.start()

    def remove_data(self) -> None:
        """Stop the server and delete its data; the log stays, and the next start is a clean one.

        On an external server, drop only what was created through this object.
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
        """Drop the object `name` from the server; do nothing if it does not exist."""
        raise NotImplementedError(f"nothing is made on {self.title}")

    def host_and_port(self) -> tuple[str, int]:
        """Return the address that clients connect to, for use by proxies."""
        if not self.has_one_port:
            raise NotImplementedError(f"{self.title} has no one place that clients connect to")
        return "127.0.0.1", self._port

    def by_way_of(self, port: int) -> Self:
        """Return a copy that clients reach at `port` of this machine's loopback, where a proxy listens."""
        copied = copy.copy(self)
        copied._port = port
        return copied

    def address_outside(self) -> dict[str, str | None]:
        """Return the keys of `ServicesConfig` with which the server is reached again, without secrets."""
        assert self.address_key is not None
        return {self.address_key: self.external_at}

    def _note(self, name: str) -> None:
        """Record `name` before it is created, because a killed run would leave it on an external server."""
        if self.is_elsewhere:
            made = Made(self.name, self.address_outside(), name)
            ledger_of(self.workspace).note(made)
            self._made.append(made)

    def _strike(self, name: str) -> None:
        """Remove `name` from the record; call once it is dropped or was refused."""
        for made in [each for each in self._made if each.name == name]:
            self._made.remove(made)
            ledger_of(self.workspace).dropped(made)

    def settle(self) -> None:  # noqa: B027 - most do nothing by themselves
        """Do now what the server would do by itself at some later time; nothing for most servers."""

    def check(self) -> None:
        """Raise ServiceError, with the end of the log, if the server should be running and is not."""
        if self.is_external:
            self._reach_or_fail()
        elif self._child is None:
            raise ServiceError(f"{self.title} is not running; its log is {self.log_path}.")
        else:
            self._child.check()

    def has_ended(self) -> bool:
        """Return True if the server was started here and has exited; an external server is not contacted."""
        return self._child is not None and self._child.poll() is not None

    def pids(self) -> list[int]:
        """Return the ids of its process and all descendants; empty for an external server."""
        return [] if self._child is None else self._child.pids()

    def leader(self) -> list[int]:
        """Return the id of the process started here, without scanning for descendants; empty if external."""
        return [] if self._child is None else [self._child.pid]

    def ended_seconds(self) -> float:
        """Return the CPU seconds of its processes that were stopped through this object."""
        return self._ended_seconds

    def files(self) -> ServiceFiles:
        """Return the program and data files; empty for an external server."""
        if self.is_external:
            return ServiceFiles((), ())
        return ServiceFiles(self._program_files(), files_below(self.data_directory))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
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
