"""Tidemark's own Java programs: each server wraps an engine and takes requests over HTTP, on loopback only."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.http import fetch
from tidemark.services.own import JavaServer, OwnServer
from tidemark.services.programs.java import (
    COMMON_OPTIONS,
    HOME,
    LOGGING,
    LOGGING_FILE,
    class_path,
    compiled,
    runtime_files,
)
from tidemark.services.programs.process import Child, wait_for_line
from tidemark.services.programs.provision import provision

LOOPBACK = Path(__file__).with_name("Loopback.java")
PORT_LINE = "Listens on port: "
READY_S = 120.0
REQUEST_S = 180.0  # for an answer: planning, and starting engines, happens before it


class JavaProgram(OwnServer, JavaServer):
    """A JVM with one of Tidemark's programs and the jars of its locks; unprivileged if Tidemark runs as root.

    The first lock holds the compiler and the jars that the program is compiled against.
    """

    source: ClassVar[Path]  # holds the class of the same name in package tidemark; next to Loopback.java
    heap_mb: ClassVar[int]
    logging: ClassVar[str] = LOGGING
    opened: ClassVar[tuple[str, ...]] = ()  # packages of java.base that the engine accesses by reflection
    java_options: ClassVar[tuple[str, ...]] = ()  # in addition to the common options

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._launcher = Path()

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        super().provide(workspace)
        cls._compiled(workspace)

    @classmethod
    def _compiled(cls, workspace: Workspace) -> Path:
        """Return the jar with the compiled program, which is built once."""
        return compiled(workspace, f"{cls.source.stem}.jar", (LOOPBACK, cls.source), provision(cls.locks[0], workspace))

    def _java_home(self) -> Path:
        """Return the home of the JVM that runs the program."""
        return HOME

    def version(self) -> str:
        return self._version_in_log(r"^Version: (\S+)")

    def _ask(self, method: str, path: str, content: str | None = None, timeout_s: float = REQUEST_S) -> str:
        """Return the response body; raise ServiceError if the server refuses the request or does not answer."""
        data = None if content is None else content.encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/{path}", data, method=method)
        try:
            return fetch(request, timeout_s).decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise ServiceError(f"{self.title} refused to {method} /{path}: {text or error}") from error
        except OSError as error:
            raise ServiceError(f"{self.title} does not answer: {error}; its log is {self.log_path}.") from error

    def _program_files(self) -> tuple[Path, ...]:
        return (*self._jars, self._launcher, *runtime_files(self._java_home()))

    def _provision(self) -> None:
        super()._provision()
        self._launcher = self._compiled(self.workspace)

    def _arguments(self) -> tuple[str, ...]:
        """Return the program's arguments; called before each start."""
        return ()

    def _environment(self) -> Mapping[str, str]:
        """Return environment variables in addition to the common ones."""
        return {}

    def _launch(self) -> Child:
        (self.directory / LOGGING_FILE).write_text(self.logging)
        options = [*COMMON_OPTIONS, f"-Xmx{self.heap_mb}m", "-Djava.io.tmpdir=tmp", "-XX:+ExitOnOutOfMemoryError"]
        options += [f"-Dlog4j2.configurationFile={LOGGING_FILE}", *self.java_options]
        options += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in self.opened]
        command: list[str | Path] = [
            self._java_home() / "bin" / "java",
            *options,
            "-cp",
            class_path([self._launcher, *self._jars]),
        ]
        command += [f"tidemark.{self.source.stem}", *self._arguments()]
        return self._serve(command, HOME=str(self.directory), **self._environment())

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, PORT_LINE, READY_S, log_start)
        self._port = self._port_in_log(PORT_LINE, log_start)
