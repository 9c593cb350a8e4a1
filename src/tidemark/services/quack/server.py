"""Quack: a DuckDB in a process of its own, which serves catalogs to other DuckDBs over HTTP, on loopback.

DuckDB's extension of that name comes as a wheel for 1.5.5 and later. One process serves each catalog from a file and a
port of its own: DuckLake, which asks for the rows that it inlined without naming a schema, needs the file to itself.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing.connection import Client
from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.base import files_below
from tidemark.services.own import OwnServer
from tidemark.services.programs.process import Child, free_ports, is_free, server_environment, wait_for_line

HOST = "127.0.0.1"
PROGRAM = Path(__file__).with_name("serve.py")
LIBRARIES = ("_duckdb", "duckdb_extension_httpfs", "duckdb_extension_quack")  # what it runs from, beside Python
READY_S = 60.0


@dataclass(frozen=True, slots=True)
class QuackCatalog:
    """A DuckDB file that is served."""

    port: int
    path: Path
    token: str = field(repr=False)

    @property
    def address(self) -> str:
        return f"quack:{HOST}:{self.port}"

    def secret(self) -> str:
        """SQL by which a DuckDB with the extension loaded may use it."""
        return f"CREATE SECRET tidemark_quack (TYPE quack, TOKEN '{self.token}', SCOPE '{self.address}')"

    def size(self) -> int:
        """Bytes of the file and its log."""
        return sum(path.stat().st_size for path in self.path.parent.glob(f"{self.path.name}*"))


class Quack(OwnServer):
    """Every catalog has the same token, which is made for one life of the server's directory."""

    name: ClassVar[str] = "quack"
    title: ClassVar[str] = "Quack server"
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "Failed to bind")

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._port = 0
        self._token = ""

    def version(self) -> str:
        return version("duckdb-extension-quack")

    def make_catalog(self) -> QuackCatalog:
        """An empty one, served from now on."""
        port = free_ports(1)[0]
        try:
            with Client((HOST, self._port), authkey=self._token.encode()) as asked:
                asked.send(port)
                asked.recv()
        except (OSError, EOFError) as error:
            raise ServiceError(f"{self.title} serves no further catalog; its log is {self.log_path}.") from error
        return QuackCatalog(port, self.data_directory / f"{port}.duckdb", self._token)

    def _provision(self) -> None:
        missing = [name for name in LIBRARIES if importlib.util.find_spec(name) is None]
        if missing:
            raise ServiceError(f"{self.title}: {', '.join(missing)} is not in this environment.")

    def _prepare(self) -> None:
        self.data_directory.mkdir(mode=0o700)
        self._token = secrets.token_hex(16)
        secret = os.open(self._secret, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(secret, "w") as file:
            file.write(self._token)

    @property
    def _secret(self) -> Path:
        return self.directory / ".token"

    def _program_files(self) -> tuple[Path, ...]:
        found = [PROGRAM]
        for name in LIBRARIES:
            spec = importlib.util.find_spec(name)
            assert spec is not None
            for folder in spec.submodule_search_locations or ():
                found += files_below(Path(folder))
            found += [Path(spec.origin)] if spec.origin and Path(spec.origin).is_file() else []
        return tuple(dict.fromkeys(found))

    def _launch(self) -> Child:
        # Where it was before, if it ran.
        self._port = self._port if is_free(self._port) else free_ports(1)[0]
        command: list[str | Path] = [sys.executable, "-I", PROGRAM, self.data_directory, str(self._port), self._secret]
        return Child.start(self.title, command, self.log_path, env=server_environment(), cwd=self.directory)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, f"serves by way of port {self._port}", READY_S, log_start)
