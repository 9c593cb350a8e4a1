"""Quack: DuckDB in a separate process that serves catalogs to other DuckDB instances over HTTP on loopback.

The DuckDB extension `quack` is available as a wheel for 1.5.5 and later. One process serves each catalog from its own
file and port: DuckLake queries inlined rows without naming a schema, and therefore needs the file to itself.
"""

from __future__ import annotations

import importlib.util
import secrets
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from multiprocessing.connection import Client
from pathlib import Path
from typing import ClassVar

from tidemark.errors import ServiceError
from tidemark.services.base import Service, files_below
from tidemark.services.programs.process import Child, free_ports, same_or_free

HOST = "127.0.0.1"
PROGRAM = Path(__file__).parent / "programs" / "serve_quack.py"
LIBRARIES = ("_duckdb", "duckdb_extension_httpfs", "duckdb_extension_quack")  # needed in addition to Python


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
        """Return the SQL statement that lets a DuckDB with the extension loaded use the catalog."""
        return f"CREATE SECRET tidemark_quack (TYPE quack, TOKEN '{self.token}', SCOPE '{self.address}')"

    def size(self) -> int:
        """Return the bytes of the file and its WAL."""
        return sum(path.stat().st_size for path in self.path.parent.glob(f"{self.path.name}*"))


class Quack(Service):
    """Quack server; all catalogs share one token, which is generated for one life of the server's directory."""

    name: ClassVar[str] = "quack"
    title: ClassVar[str] = "Quack server"
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "Failed to bind")
    ready_line: ClassVar[str] = "serves by way of port "
    _token = ""

    def version(self) -> str:
        return version("duckdb-extension-quack")

    def make_catalog(self) -> QuackCatalog:
        """Return a new, empty catalog that is being served."""
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
        self._secret.touch(0o600)
        self._secret.write_text(self._token)

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
        self._port = same_or_free(self._port)
        command: list[str | Path] = [sys.executable, "-I", PROGRAM, self.data_directory, str(self._port), self._secret]
        return Child.start(self.title, command, self.log_path)
