"""Common bases of servers: of those on a JVM, and of Tidemark's own programs.

A Java program wraps an engine and takes requests over HTTP, on loopback only. The smallest of the programs in Python,
which answers at once, is here too.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service
from tidemark.services.http import fetch
from tidemark.services.programs import java
from tidemark.services.programs.process import Child, give
from tidemark.services.programs.provision import provision

LOOPBACK = Path(__file__).parent / "engines" / "Loopback.java"  # what the Java programs have in common
REQUEST_S = 180.0  # for an answer: planning, and starting engines, happens before it


class JavaServer(Service):
    """A server on the JVM of the environment, with the jars of its locks, and with folders `data` and `tmp`."""

    _class_data: Path | None = None  # archive of the classes that it loads

    def _program_files(self) -> tuple[Path, ...]:
        return (*self._jars, *([self._class_data] if self._class_data else []), *java.runtime_files())

    def _class_options(self) -> tuple[str, ...]:
        return java.mapping(self._class_data)

    def _prepare(self) -> None:
        super()._prepare()
        give(private_directory(self.directory / "tmp"))


class JavaProgram(JavaServer):
    """A JVM with one of Tidemark's programs and the jars of its locks; unprivileged if Tidemark runs as root.

    The first lock holds the compiler and the jars that the program is compiled against.
    """

    ready_line: ClassVar[str] = "Listens on port: "
    ready_s: ClassVar[float] = 120.0
    version_pattern: ClassVar[str] = r"^Version: (\S+)"
    source: ClassVar[Path]  # holds the class of the same name in package tidemark; next to Loopback.java
    heap_mb: ClassVar[int]
    logging: ClassVar[str] = java.LOGGING
    # Packages of java.base that engines access by reflection: those that the start scripts of Flink and of Spark open.
    opened: ClassVar[tuple[str, ...]] = (
        "java.lang",
        "java.lang.reflect",
        "java.io",
        "java.net",
        "java.nio",
        "java.util",
        "java.util.concurrent",
        "java.util.concurrent.atomic",
        "sun.nio.ch",
    )
    java_options: ClassVar[tuple[str, ...]] = ()  # in addition to the common options
    _launcher = Path()

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        super().provide(workspace)
        cls._compiled(workspace)

    @classmethod
    def _compiled(cls, workspace: Workspace) -> Path:
        """Return the jar with the compiled program, which is built once."""
        jars = provision(cls.locks[0], workspace)
        return java.compiled(workspace, f"{cls.source.stem}.jar", (LOOPBACK, cls.source), jars)

    def _java_home(self) -> Path:
        """Return the home of the JVM that runs the program."""
        return java.HOME

    def _ask(self, method: str, path: str, content: str | None = None, timeout_s: float = REQUEST_S) -> str:
        """Return the response body; raise ServiceError if the server refuses the request or does not answer."""
        data = None if content is None else content.encode()
        request = urllib.request.Request(f"{self.uri}/{path}", data, method=method)
        try:
            return fetch(request, timeout_s).decode()
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            raise ServiceError(f"{self.title} refused to {method} /{path}: {text or error}") from error
        except OSError as error:
            raise ServiceError(f"{self.title} does not answer: {error}; its log is {self.log_path}.") from error

    def _program_files(self) -> tuple[Path, ...]:
        return (*self._jars, self._launcher, *java.runtime_files(self._java_home()))

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
        (self.directory / java.LOGGING_FILE).write_text(self.logging)
        options = [*java.COMMON_OPTIONS, f"-Xmx{self.heap_mb}m", "-Djava.io.tmpdir=tmp", "-XX:+ExitOnOutOfMemoryError"]
        options += [f"-Dlog4j2.configurationFile={java.LOGGING_FILE}", *self.java_options]
        options += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in self.opened]
        command: list[str | Path] = [self._java_home() / "bin" / "java", *options]
        command += ["-cp", java.class_path([self._launcher, *self._jars]), f"tidemark.{self.source.stem}"]
        return self._serve([*command, *self._arguments()], HOME=str(self.directory), **self._environment())


class OwnProgram(Service):
    """A Python program in one file that prints the loopback port, chosen by the kernel, on which it listens."""

    program: ClassVar[str]  # its module in `services.programs`

    def version(self) -> str:
        return "of this harness"

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
        return Child.start(self.title, command, self.log_path)


class NullCatalog(OwnProgram):
    """A server that answers each request at once and stores nothing: measures the load generator's own cost."""

    name: ClassVar[str] = "null-catalog"
    title: ClassVar[str] = "Server that answers at once"
    program: ClassVar[str] = "tidemark.services.programs.answer"
    ready_line: ClassVar[str] = "answers on port: "

    def _reach(self) -> None:
        fetch(f"{self.uri}/v1/config", 10)
