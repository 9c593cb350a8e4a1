"""Servers that always run on this machine, for one series; and those that are Tidemark's own programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar, Self

from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceContext
from tidemark.services.programs.process import Child, server_environment, wait_for_line


class OwnServer(Service):
    """A server constructed from `(workspace, directory)`: it has no settings, and cannot be external."""

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory)

    @property
    def is_external(self) -> bool:
        return False

    def _reach(self) -> None:
        self.check()


class OwnProgram(OwnServer):
    """A Python program in one file that prints the loopback port, chosen by the kernel, on which it listens."""

    program: ClassVar[Path]
    port_line: ClassVar[str]  # text before the port number

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._port = 0

    def version(self) -> str:
        return "of this harness"

    def _provision(self) -> None:
        pass

    def _prepare(self) -> None:
        self.data_directory.mkdir(mode=0o700)

    def _program_files(self) -> tuple[Path, ...]:
        return (self.program,)

    def _arguments(self) -> tuple[str, ...]:
        """Return the program's arguments."""
        return ()

    def _launch(self) -> Child:
        command: list[str | Path] = [sys.executable, "-I", "-S", self.program, *self._arguments()]
        return Child.start(self.title, command, self.log_path, env=server_environment(), cwd=self.directory)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, self.port_line, 60, log_start)
        started = self.log_path.read_bytes()[log_start:].decode(errors="replace")
        self._port = int(started.split(self.port_line)[1].split()[0])
        self._reach()
