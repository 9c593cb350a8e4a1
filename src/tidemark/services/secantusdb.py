"""SecantusDB: speaks MongoDB's wire protocol over WiredTiger, in Python. A stand-in: MongoDB is in no package registry.

Its speed says nothing of MongoDB's. What it shows is a catalog on documents that are compared and swapped, where it
otherwise has SQL's transactions. It is young, and asks its clients, which are on this machine, for no password.
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
    """The server of `envs/tools/secantusdb.lock` with its own settings.

    It flushes its log where a client asks for that, as Nessie does.
    """

    name: ClassVar[str] = "secantusdb"
    title: ClassVar[str] = "SecantusDB (a stand-in for MongoDB)"
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "address already in use")

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._program = Path()
        self._port = 0

    @property
    def uri(self) -> str:
        """How clients of MongoDB are told where it is."""
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
        # Where it was before, if it ran: its clients know that place.
        self._port = self._port if is_free(self._port) else free_ports(1)[0]
        command: list[str | Path] = [self._program, "--host", "127.0.0.1", "--port", str(self._port)]
        command += ["--storage-path", self.data_directory, "--standalone"]
        return self._serve(command, HOME=str(self.directory), PYTHONDONTWRITEBYTECODE="1")

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, f"listening on 127.0.0.1:{self._port}", READY_S, log_start)
