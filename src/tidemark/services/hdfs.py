"""HDFS 3.4 on loopback: a NameNode (names and block locations) and one DataNode (blocks), and what serves from it.

Replication is 1. Clients, including those of WebHDFS, connect to both servers. An Arrow Flight server returns complete
Hudi tables on HDFS, read by DuckDB in a process of its own.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys
import urllib.error
import urllib.request
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Self
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service, ServiceContext, files_below
from tidemark.services.http import fetch, open_url
from tidemark.services.own import JavaServer
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, SHORT_LIVED_OPTIONS, class_path
from tidemark.services.programs.process import Child, free_ports, give, is_free, wait_for_line, wait_until
from tidemark.services.programs.tools import tool_packages

FILES_S = 120.0  # for an answer with a file


@dataclass(frozen=True, slots=True)
class Listed:
    """A file below a folder of HDFS."""

    path: PurePosixPath  # relative to that folder
    size: int  # bytes


@dataclass(frozen=True, slots=True)
class WebHdfs:
    """Files over HTTP, as the servers report them, independent of the client libraries under test.

    `address` is that of the NameNode, http://host:port. Paths are absolute.
    """

    address: str

    def listed(self, folder: str) -> list[Listed]:
        """Return all files below `folder`, sorted by path; empty if the folder does not exist."""
        return sorted(self._below(folder, PurePosixPath()), key=lambda each: each.path)

    def _below(self, folder: str, inside: PurePosixPath) -> Iterator[Listed]:
        try:
            found = self._ask("GET", folder, op="LISTSTATUS")["FileStatuses"]["FileStatus"]
        except FileNotFoundError:
            return
        for each in found:
            name = each["pathSuffix"]
            if each["type"] == "DIRECTORY":
                yield from self._below(f"{folder}/{name}", inside / name)
            else:
                yield Listed(inside / name, int(each["length"]))

    def fetch(self, folder: str, target: Path) -> list[Listed]:
        """Copy all files below `folder` to the local folder `target`, which is created, and return their list."""
        files = self.listed(folder)
        for each in files:
            place = target / each.path
            private_directory(place.parent)
            with self._open("GET", f"{folder}/{each.path}", op="OPEN") as answer, place.open("wb") as file:
                shutil.copyfileobj(answer, file, 1 << 20)
            if place.stat().st_size != each.size:
                raise ServiceError(
                    f"HDFS reports that {folder}/{each.path} has {each.size:,} bytes, and gave {place.stat().st_size:,}"
                )
        return files

    def text(self, folder: str, suffix: str) -> str:
        """Return the concatenated content of the files below `folder` whose names end with `suffix`."""
        found = []
        for each in self.listed(folder):
            if each.path.name.endswith(suffix):
                with self._open("GET", f"{folder}/{each.path}", op="OPEN") as answer:
                    found.append(answer.read().decode())
        return "".join(found)

    def remove(self, folder: str) -> None:
        """Remove `folder` recursively; do nothing if it does not exist."""
        self._ask("DELETE", folder, op="DELETE", recursive="true")

    def _ask(self, method: str, path: str, **query: str) -> dict[str, Any]:
        with self._open(method, path, **query) as answer:
            return json.load(answer)  # type: ignore[no-any-return]

    def _open(self, method: str, path: str, **query: str) -> Any:
        request = urllib.request.Request(f"{self.address}/webhdfs/v1{quote(path)}?{urlencode(query)}", method=method)
        try:
            return open_url(request, FILES_S)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise FileNotFoundError(path) from error
            text = error.read().decode(errors="replace")[:2000]
            raise ServiceError(f"HDFS refused {method} {path}: {text or error}") from error
        except OSError as error:
            raise ServiceError(f"HDFS does not answer {method} {path}: {error}") from error


HEAP_MB = 512
READY_S = 90.0
ANSWER_S = 30.0
PACKAGE = "org.apache.hadoop.hdfs.server"
OPENED = ("java.lang", "java.nio", "java.net")  # packages that Hadoop accesses by reflection on JVM 17 and later
REFUSED = re.compile("['%]")
REPORTED = "Successfully sent block report"
USER = "tidemark"  # any name works: permissions are disabled
# NameNode log entries for a file that a client closes: closed, or its last block is not reported yet.
CLOSED = "DIR* completeFile: "
NOT_YET = re.compile(r"BLOCK\* blk_\S+ is [^\n]* 0 < +minimum = 1\) in file")
STATE = "Hadoop:service=NameNode,name=FSNamesystemState"
LOGGING = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
# Folders of the distribution that the web servers require and no jar contains; empty ones are enough to answer
# requests.
PAGES = ("hdfs", "datanode", "static")


def write_configuration(folder: Path, site: Mapping[str, object]) -> Path:
    """Create `folder` with `site` as both site files and a logging configuration, and return it."""
    give(private_directory(folder))
    words = {name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in site.items()}
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>\n"
        for name, value in words.items()
    )
    text = f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n'
    for name, content in (("core-site.xml", text), ("hdfs-site.xml", text), ("log4j.properties", LOGGING)):
        (folder / name).write_text(content)
        give(folder / name)
    for page in PAGES:
        give(private_directory(folder / "webapps"))
        give(private_directory(folder / "webapps" / page))
    return folder


@dataclass(frozen=True, slots=True)
class Closes:
    """Files that were closed, and close attempts that the NameNode refused until the client retried."""

    closed: int
    refused: int


class HdfsServer(JavaServer):
    """Base of both servers: jars, configuration and JVM options."""

    locks: ClassVar[tuple[str, ...]] = ("hdfs",)
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "Port in use")
    main: ClassVar[str]
    info: ClassVar[str]  # JMX bean with its own state
    ports: ClassVar[int]
    _ports: Sequence[int] = ()  # the second port is that of its web server

    @abstractmethod
    def _site(self) -> dict[str, object]:
        """Return the server's settings, with the addresses in `_ports`."""

    def version(self) -> str:
        return str(self._ask(self.info)["SoftwareVersion"])

    def _ask(self, bean: str) -> Mapping[str, Any]:
        """Return the attributes of the JMX bean `bean`; empty if there is none."""
        query = urlencode({"qry": bean})
        found = json.loads(fetch(f"http://127.0.0.1:{self._ports[1]}/jmx?{query}", ANSWER_S))["beans"]
        return dict(found[0]) if found else {}

    def _prepare(self) -> None:
        if found := REFUSED.search(str(self.directory.resolve())):
            raise ServiceError(
                f"{self.title} cannot keep its data where a path has {found[0]!r}: it hands paths to a shell, and to "
                f"patterns, as they are. Move the workspace: {self.directory}."
            )
        super()._prepare()

    def _launch(self) -> Child:
        # Reuse the previous ports if they are free: clients and the other server know those addresses.
        kept = self._ports and all(map(is_free, self._ports))
        self._ports = self._ports if kept else free_ports(self.ports)
        return self._serve(self._command(), **self._told())

    def _told(self) -> dict[str, str]:
        return {"HOME": str(self.directory), "HADOOP_USER_NAME": USER}

    def _command(self, *arguments: str) -> list[str | Path]:
        # Paths are relative to the working directory: a comma in a path would split it, and escaping does not help.
        own = {"hadoop.tmp.dir": "tmp", "dfs.replication": 1, "dfs.permissions.enabled": False}
        folder = write_configuration(self.directory / "conf", {**own, **self._site()})
        options = [*COMMON_OPTIONS, f"-Xmx{HEAP_MB}m", "-Djava.io.tmpdir=tmp", "-XX:+ExitOnOutOfMemoryError"]
        options += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        options += SHORT_LIVED_OPTIONS if arguments else ()
        classes = class_path([Path(folder.name), *self._jars])
        return [JAVA, *options, "-cp", classes, f"{PACKAGE}.{self.main}", *arguments]


class NameNode(HdfsServer):
    """HDFS NameNode, unprivileged if Tidemark is root; it requires neither a user name nor a password."""

    name: ClassVar[str] = "hdfs-namenode"
    title: ClassVar[str] = "HDFS NameNode"
    main: ClassVar[str] = "namenode.NameNode"
    info: ClassVar[str] = "Hadoop:service=NameNode,name=NameNodeInfo"
    ports: ClassVar[int] = 2

    @property
    def address(self) -> str:
        """Prefix of its paths, without a trailing slash."""
        return f"hdfs://127.0.0.1:{self._ports[0]}"

    @property
    def web(self) -> WebHdfs:
        """WebHDFS client for its files, which uses the servers and no client library."""
        return WebHdfs(f"http://127.0.0.1:{self._ports[1]}")

    def closes(self, since: int = 0) -> Closes:
        """Count the files that clients closed, from byte `since` of its log."""
        with self.log_path.open("rb") as log:
            log.seek(since)
            text = log.read().decode(errors="replace")
        return Closes(text.count(CLOSED), len(NOT_YET.findall(text)))

    def said_bytes(self) -> int:
        """Return the current length of its log in bytes, for use as `since` in `closes`."""
        return self.log_path.stat().st_size

    def takes_writes(self) -> bool:
        """Return True if a DataNode has space left and the NameNode is not in safe mode, waiting for known blocks."""
        has_room = float(self._ask(STATE).get("CapacityRemaining", 0)) > 0
        return has_room and self._ask(self.info).get("Safemode") == ""

    def _prepare(self) -> None:
        super()._prepare()
        command = self._command("-format", "-force", "-nonInteractive")
        self._run("HDFS's formatting of names", "format.log", command, READY_S, **self._told())

    def _site(self) -> dict[str, object]:
        rpc, http = self._ports or (0, 0)
        return {
            "fs.defaultFS": f"hdfs://127.0.0.1:{rpc}",
            "dfs.namenode.name.dir": "data/names",
            "dfs.namenode.rpc-address": f"127.0.0.1:{rpc}",
            "dfs.namenode.rpc-bind-host": "127.0.0.1",
            "dfs.namenode.http-address": f"127.0.0.1:{http}",
            "dfs.namenode.datanode.registration.ip-hostname-check": False,
            # The single DataNode reports all blocks at once, so the default extension of 30 s would gain nothing.
            "dfs.namenode.safemode.extension": 0,
        }

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        del log_start
        wait_until(child, lambda: bool(self._ask(self.info)), READY_S)


class _Follower(Service):
    """A server that is told of the NameNode."""

    def __init__(self, workspace: Workspace, directory: Path, names: NameNode) -> None:
        super().__init__(workspace, directory)
        self.names = names

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        return cls(around.workspace, around.directory, around.server(NameNode))


class DataNode(_Follower, HdfsServer):
    """HDFS DataNode; ready once it has registered with the NameNode, which then accepts writes."""

    name: ClassVar[str] = "hdfs-datanode"
    title: ClassVar[str] = "HDFS DataNode"
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode,)
    main: ClassVar[str] = "datanode.DataNode"
    info: ClassVar[str] = "Hadoop:service=DataNode,name=DataNodeInfo"
    ports: ClassVar[int] = 3

    def _site(self) -> dict[str, object]:
        blocks, http, ipc = self._ports
        return {
            "fs.defaultFS": self.names.address,
            "dfs.datanode.data.dir": "data/blocks",
            "dfs.datanode.hostname": "127.0.0.1",  # host name in the NameNode's redirects to WebHDFS clients
            "dfs.datanode.address": f"127.0.0.1:{blocks}",
            "dfs.datanode.http.address": f"127.0.0.1:{http}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
        }

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        # The NameNode considers a killed DataNode alive for minutes, so wait for this start's block report.
        wait_for_line(child, REPORTED, READY_S, log_start)
        wait_until(child, self.names.takes_writes, READY_S)


PROGRAM = Path(__file__).parent / "programs" / "serve_hudi.py"
NEWEST = Path(__file__).parent / "programs" / "hudi_files.py"
TOOL = "avro-hdfs"
TOLD = "packages.json"


class Flight(_Follower):
    """Flight server whose tickets are table paths; DuckDB and PyArrow are those of the stack."""

    name: ClassVar[str] = "flight"
    title: ClassVar[str] = "Arrow Flight server (DuckDB)"
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode, DataNode)
    tools: ClassVar[tuple[str, ...]] = (TOOL,)
    ready_line: ClassVar[str] = "Listens on port: "

    @property
    def address(self) -> str:
        """Address that clients connect to."""
        return f"grpc://127.0.0.1:{self._port}"

    def version(self) -> str:
        return f"PyArrow {version('pyarrow')}, DuckDB {version('duckdb')}"

    def _program_files(self) -> tuple[Path, ...]:
        found = [PROGRAM, NEWEST]
        for name in ("pyarrow", "_duckdb", "duckdb"):
            spec = importlib.util.find_spec(name)
            for folder in (spec.submodule_search_locations or ()) if spec else ():
                found += files_below(Path(folder))
        return (*found, *files_below(tool_packages(TOOL, self.workspace) / "hdfs_native"))

    def _launch(self) -> Child:
        found = tool_packages(TOOL, self.workspace).absolute()
        order = {"packages": [str(found)], "newest": str(NEWEST), "names": self.names.address}
        (self.directory / TOLD).write_text(json.dumps(order))
        return self._serve([sys.executable, "-I", PROGRAM, TOLD], HOME=str(self.directory), HADOOP_USER_NAME=USER)
