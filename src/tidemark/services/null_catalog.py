"""A server that answers every request at once, and keeps nothing: what it costs to ask it is the load generator's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

from tidemark.paths import Workspace
from tidemark.services.http import open_url
from tidemark.services.own import OwnServer
from tidemark.services.programs.process import Child, server_environment, wait_for_line

PROGRAM = "tidemark.services.programs.answer"
PORT_LINE = "answers on port: "


class NullCatalog(OwnServer):
    """On a loopback port that the kernel picks."""

    name: ClassVar[str] = "null-catalog"
    title: ClassVar[str] = "Server that answers at once"

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._port = 0

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def version(self) -> str:
        return "of this harness"

    def _provision(self) -> None:
        pass

    def _prepare(self) -> None:
        self.data_directory.mkdir(mode=0o700)

    def _reach(self) -> None:
        with open_url(f"{self.uri}/v1/config", 10) as answer:
            answer.read()

    def _program_files(self) -> tuple[Path, ...]:
        return (self._program,)

    @property
    def _program(self) -> Path:
        return Path(__file__).parent / "programs" / f"{PROGRAM.rpartition('.')[2]}.py"

    def _launch(self) -> Child:
        command: list[str | Path] = [sys.executable, "-I", "-S", self._program]
        return Child.start(self.title, command, self.log_path, env=server_environment(), cwd=self.directory)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, PORT_LINE, 60, log_start)
        started = self.log_path.read_bytes()[log_start:].decode(errors="replace")
        self._port = int(started.split(PORT_LINE)[1].split()[0])
        self._reach()
