"""Arrow Flight on loopback: returns complete Hudi tables on HDFS, read by DuckDB in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Self

from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceContext, files_below
from tidemark.services.hdfs import USER, DataNode, NameNode
from tidemark.services.own import OwnServer
from tidemark.services.programs.process import Child, wait_for_line
from tidemark.services.programs.tools import tool_packages

PROGRAM = Path(__file__).parent / "programs" / "serve_hudi.py"
NEWEST = Path(__file__).parent / "programs" / "hudi_files.py"
TOOL = "avro-hdfs"
TOLD = "packages.json"
PORT_LINE = "Listens on port: "
READY_S = 60.0


class Flight(OwnServer):
    """Flight server whose tickets are table paths; DuckDB and PyArrow are those of the stack."""

    name: ClassVar[str] = "flight"
    title: ClassVar[str] = "Arrow Flight server (DuckDB)"
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode)
    tools: ClassVar[tuple[str, ...]] = (TOOL,)

    def __init__(self, workspace: Workspace, directory: Path, names: NameNode) -> None:
        super().__init__(workspace, directory)
        self._names = names

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory, around.server(NameNode))

    @property
    def address(self) -> str:
        """Address that clients connect to."""
        return f"grpc://127.0.0.1:{self._port_in_log(PORT_LINE, self._log_start)}"

    def version(self) -> str:
        return f"PyArrow {version('pyarrow')}, DuckDB {version('duckdb')}"

    def _provision(self) -> None:
        pass  # the pipeline installs the tool; the stack contains the rest

    def _prepare(self) -> None:
        self.data_directory.mkdir(mode=0o700)

    def _program_files(self) -> tuple[Path, ...]:
        found = [PROGRAM, NEWEST]
        for name in ("pyarrow", "_duckdb", "duckdb"):
            spec = importlib.util.find_spec(name)
            for folder in (spec.submodule_search_locations or ()) if spec else ():
                found += files_below(Path(folder))
        return (*found, *files_below(tool_packages(TOOL, self.workspace) / "hdfs_native"))

    def _launch(self) -> Child:
        found = tool_packages(TOOL, self.workspace).absolute()
        order = {"packages": [str(found)], "newest": str(NEWEST), "names": self._names.address}
        (self.directory / TOLD).write_text(json.dumps(order))
        return self._serve([sys.executable, "-I", PROGRAM, TOLD], HOME=str(self.directory), HADOOP_USER_NAME=USER)

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, PORT_LINE, READY_S, log_start)
