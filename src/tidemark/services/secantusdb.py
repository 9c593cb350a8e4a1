"""SecantusDB: MongoDB's wire protocol over WiredTiger, in Python. A substitute: no package registry has MongoDB.

Its speed says nothing about MongoDB's. It shows a catalog on documents with compare-and-swap where other backends use
SQL transactions. It is an early project, and requires no password from its clients, which are on this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import files_below
from tidemark.services.own import OwnServer
from tidemark.services.programs.process import (
    Child,
    free_ports,
    give,
    is_free,
    wait_for_line,
)
from tidemark.services.programs.tools import tool_environment, tool_program

TOOL = "secantusdb"
READY_S = 60.0


class SecantusDB(OwnServer):
    """The server of `envs/tools/secantusdb.lock` with its default settings.

    It flushes its log when a client requests that, as Nessie does.
    """

    name: ClassVar[str] = "secantusdb"
    title: ClassVar[str] = "SecantusDB (a stand-in for MongoDB)"
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "address already in use")

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._program = Path()

    @property
    def uri(self) -> str:
        """Connection string for MongoDB clients."""
        return f"mongodb://127.0.0.1:{self._port}"

    @property
    def _packages(self) -> Path:
        return tool_environment(TOOL, self.workspace) / "lib"

    def version(self) -> str:
        named = [path.name for path in self._packages.glob("python*/site-packages/*.dist-info")]
        found = [name.split("-")[1] for name in named if name.lower().startswith(f"{TOOL}-")]
        if len(found) != 1:
            raise ServiceError(f"{self.title}: {self._packages} holds {len(found)} of it; expected one.")
        return found[0].removesuffix(".dist")

    def _program_files(self) -> tuple[Path, ...]:
        return files_below(self._packages)

    def _provision(self) -> None:
        self._program = tool_program(TOOL, "secantusd-py", self.workspace)

    def _prepare(self) -> None:
        give(private_directory(self.data_directory))

    def _launch(self) -> Child:
        # Reuse the previous port if it is free: its clients know that address.
        self._port = self._port if is_free(self._port) else free_ports(1)[0]
        command: list[str | Path] = [self._program, "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--storage-path", self.data_directory, "--standalone"]
        return self._serve(command, HOME=str(self.directory), PYTHONDONTWRITEBYTECODE="1")

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, f"listening on 127.0.0.1:{self._port}", READY_S, log_start)
