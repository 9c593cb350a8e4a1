"""Common bases of servers: of those that always run on this machine, on a JVM, or are Tidemark's own programs.

The smallest of these programs, which answers at once, is here too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Self

from tidemark.paths import private_directory
from tidemark.services.base import Service, ServiceContext
from tidemark.services.http import fetch
from tidemark.services.programs.java import runtime_files
from tidemark.services.programs.process import Child, give, server_environment, wait_for_line
from tidemark.services.programs.provision import provision


class OwnServer(Service):
    """A server constructed from `(workspace, directory)`: it has no settings, and cannot be external."""

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory)

    def _reach(self) -> None:
        self.check()


class JavaServer(Service):
    """A server on the JVM of the environment, with the jars of its locks, and with folders `data` and `tmp`."""

    _jars: Sequence[Path] = ()

    def _program_files(self) -> tuple[Path, ...]:
        return (*self._jars, *runtime_files())

    def _provision(self) -> None:
        self._jars = [jar for name in self.locks for jar in provision(name, self.workspace)]

    def _prepare(self) -> None:
        give(private_directory(self.data_directory))
        give(private_directory(self.directory / "tmp"))


class OwnProgram(OwnServer):
    """A Python program in one file that prints the loopback port, chosen by the kernel, on which it listens."""

    program: ClassVar[str]  # its module in `services.programs`
    port_line: ClassVar[str]  # text before the port number

    def version(self) -> str:
        return "of this harness"

    def _provision(self) -> None:
        pass

    def _prepare(self) -> None:
        self.data_directory.mkdir(mode=0o700)

    @property
    def _file(self) -> Path:
        return Path(__file__).parent / "programs" / f"{self.program.rpartition('.')[2]}.py"

    def _program_files(self) -> tuple[Path, ...]:
        return (self._file,)

    def _arguments(self) -> tuple[str, ...]:
        """Return the program's arguments."""
        return ()

    def _launch(self) -> Child:
        command: list[str | Path] = [sys.executable, "-I", "-S", self._file, *self._arguments()]
        return Child.start(self.title, command, self.log_path, env=server_environment(), cwd=self.directory)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, self.port_line, 60, log_start)
        self._port = self._port_in_log(self.port_line, log_start)
        self._reach()


class NullCatalog(OwnProgram):
    """A server that answers each request at once and stores nothing: measures the load generator's own cost."""

    name: ClassVar[str] = "null-catalog"
    title: ClassVar[str] = "Server that answers at once"
    program: ClassVar[str] = "tidemark.services.programs.answer"
    port_line: ClassVar[str] = "answers on port: "

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def _reach(self) -> None:
        fetch(f"{self.uri}/v1/config", 10)
