"""Programs of ours in Java, one a server, that stand before an engine and are asked over HTTP, on loopback alone."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.http import open_url
from tidemark.services.kafka_properties import LOGGING, LOGGING_FILE
from tidemark.services.own import OwnServer
from tidemark.services.programs.compiled import compiled
from tidemark.services.programs.java import COMMON_OPTIONS, HOME, class_path, runtime_files
from tidemark.services.programs.process import Child, give, wait_for_line
from tidemark.services.programs.provision import provision

LOOPBACK = Path(__file__).with_name("Loopback.java")
PORT_LINE = "Listens on port: "
READY_S = 120.0
REQUEST_S = 180.0  # that an answer may take: plans are made, and engines started, before


class JavaProgram(OwnServer):
    """A JVM with one program of ours and the jars of its locks; as nobody when we are root, else as whoever we are.

    The first of the locks has what the program is compiled against, and the compiler.
    """

    source: ClassVar[Path]  # a class of the file's name in the package tidemark, beside Loopback.java
    heap_mb: ClassVar[int]
    logging: ClassVar[str] = LOGGING
    opened: ClassVar[tuple[str, ...]] = ()  # packages of java.base that the engine enters by reflection
    java_options: ClassVar[tuple[str, ...]] = ()  # beside what all have

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._jars: list[Path] = []
        self._launcher = Path()
        self._port = 0

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        super().provide(workspace)
        cls._compiled(workspace)

    @classmethod
    def _compiled(cls, workspace: Workspace) -> Path:
        """The jar with the program, made once."""
        return compiled(workspace, f"{cls.source.stem}.jar", (LOOPBACK, cls.source), provision(cls.locks[0], workspace))

    def _java_home(self) -> Path:
        """The JVM that it runs on."""
        return HOME

    def version(self) -> str:
        named = re.findall(r"^Version: (\S+)", self.log_path.read_text(errors="replace"), re.MULTILINE)
        if not named:
            raise ServiceError(f"{self.title} named no version in {self.log_path}.")
        return str(named[-1])

    def _ask(self, method: str, path: str, content: str | None = None, timeout_s: float = REQUEST_S) -> str:
        """What it answers; ServiceError, with its reasons, where it refuses or does not answer."""
        data = None if content is None else content.encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}/{path}", data, method=method)
        try:
            with open_url(request, timeout_s) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
            raise ServiceError(f"{self.title} refused to {method} /{path}: {said or error}") from error
        except OSError as error:
            raise ServiceError(f"{self.title} does not answer: {error}; its log is {self.log_path}.") from error

    def _program_files(self) -> tuple[Path, ...]:
        return (*self._jars, self._launcher, *runtime_files(self._java_home()))

    def _provision(self) -> None:
        self._jars = [jar for name in self.locks for jar in provision(name, self.workspace)]
        self._launcher = self._compiled(self.workspace)

    def _prepare(self) -> None:
        give(private_directory(self.data_directory))
        give(private_directory(self.directory / "tmp"))

    def _arguments(self) -> tuple[str, ...]:
        """What the program is told; called before each start."""
        return ()

    def _environment(self) -> Mapping[str, str]:
        """What it finds in its environment, beside what all have."""
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
        started = self.log_path.read_bytes()[log_start:].decode(errors="replace")
        self._port = int(started.split(PORT_LINE)[1].split()[0])
