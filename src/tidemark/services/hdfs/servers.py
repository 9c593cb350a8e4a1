"""HDFS 3.4 on loopback: a NameNode, which keeps names and blocks' places, and one DataNode, which keeps the blocks.

One copy of each block is kept. Clients speak to both; what asks over HTTP (WebHDFS) does as well.
"""

from __future__ import annotations

import json
import re
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service, Surroundings
from tidemark.services.hdfs.configuration import write_configuration
from tidemark.services.hdfs.files import WebHdfs
from tidemark.services.http import open_url
from tidemark.services.own import OwnServer
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, SHORT_LIVED_OPTIONS, class_path, runtime_files
from tidemark.services.programs.process import (
    Child,
    free_ports,
    give,
    is_free,
    server_environment,
    unprivileged_account,
    wait_for_line,
)
from tidemark.services.programs.provision import provision

LOCK = "hdfs"
HEAP_MB = 512
READY_S = 90.0
ANSWER_S = 30.0
LOOK_S = 0.1
PACKAGE = "org.apache.hadoop.hdfs.server"
OPENED = ("java.lang", "java.nio", "java.net")  # what Hadoop reaches into, of a JVM since 17
REFUSED = re.compile("['%]")
REPORTED = "Successfully sent block report"
USER = "tidemark"  # nobody asks whether it is: permissions are off
# What the NameNode logs of a file that a client closes: that it is closed, or that its last block was not reported yet.
CLOSED = "DIR* completeFile: "
NOT_YET = re.compile(r"BLOCK\* blk_\S+ is [^\n]* 0 < +minimum = 1\) in file")
STATE = "Hadoop:service=NameNode,name=FSNamesystemState"


@dataclass(frozen=True, slots=True)
class Closes:
    """Files that were closed, and how often a client was told to ask again first."""

    closed: int
    refused: int


class HdfsServer(OwnServer):
    """What both have in common: where they run from, what they are started with."""

    locks: ClassVar[tuple[str, ...]] = (LOCK,)
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "Port in use")
    main: ClassVar[str]
    info: ClassVar[str]  # what it answers about itself under
    ports: ClassVar[int]

    def __init__(self, workspace: Workspace, directory: Path) -> None:
        super().__init__(workspace, directory)
        self._jars: list[Path] = []
        self._ports: list[int] = []  # the second is of its web server

    @abstractmethod
    def _site(self) -> dict[str, object]:
        """Its settings, of which `_ports` are known."""

    def version(self) -> str:
        return str(self._ask(self.info)["SoftwareVersion"])

    def _ask(self, bean: str) -> Mapping[str, Any]:
        """What it says of itself under the name `bean`."""
        query = urlencode({"qry": bean})
        with open_url(f"http://127.0.0.1:{self._ports[1]}/jmx?{query}", ANSWER_S) as answer:
            found = json.load(answer)["beans"]
        return dict(found[0]) if found else {}

    def _program_files(self) -> tuple[Path, ...]:
        return (*self._jars, *runtime_files())

    def _provision(self) -> None:
        self._jars = provision(LOCK, self.workspace)

    def _prepare(self) -> None:
        if found := REFUSED.search(str(self.directory.resolve())):
            raise ServiceError(
                f"{self.title} cannot keep its data where a path has {found[0]!r}: it hands paths to a shell, and to "
                f"patterns, as they are. Move the workspace: {self.directory}."
            )
        give(private_directory(self.data_directory))
        give(private_directory(self.directory / "tmp"))

    def _launch(self) -> Child:
        # Where it was before, if it ran: clients, and the other one, know that place.
        kept = self._ports and all(map(is_free, self._ports))
        self._ports = self._ports if kept else free_ports(self.ports)
        return self._serve(self._command(), **self._told())

    def _told(self) -> dict[str, str]:
        return {"HOME": str(self.directory), "HADOOP_USER_NAME": USER}

    def _command(self, *arguments: str) -> list[str | Path]:
        # Paths are from the folder that it runs in: a comma in one would make two of it, and an escape none.
        own = {"hadoop.tmp.dir": "tmp", "dfs.replication": 1, "dfs.permissions.enabled": False}
        folder = write_configuration(self.directory / "conf", {**own, **self._site()})
        options = [*COMMON_OPTIONS, f"-Xmx{HEAP_MB}m", "-Djava.io.tmpdir=tmp", "-XX:+ExitOnOutOfMemoryError"]
        options += [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        options += SHORT_LIVED_OPTIONS if arguments else ()
        classes = class_path([Path(folder.name), *self._jars])
        return [JAVA, *options, "-cp", classes, f"{PACKAGE}.{self.main}", *arguments]


class NameNode(HdfsServer):
    """As nobody when we are root, else as whoever we are; asks nobody for a name or a password."""

    name: ClassVar[str] = "hdfs-namenode"
    title: ClassVar[str] = "HDFS NameNode"
    main: ClassVar[str] = "namenode.NameNode"
    info: ClassVar[str] = "Hadoop:service=NameNode,name=NameNodeInfo"
    ports: ClassVar[int] = 2

    @property
    def address(self) -> str:
        """What paths of it begin with, without a slash at the end."""
        return f"hdfs://127.0.0.1:{self._ports[0]}"

    @property
    def web(self) -> WebHdfs:
        """Its files as HTTP has them, which asks the servers and no client library."""
        return WebHdfs(f"http://127.0.0.1:{self._ports[1]}")

    def closes(self, since: int = 0) -> Closes:
        """The files that clients closed, by its log from byte `since` on."""
        with self.log_path.open("rb") as log:
            log.seek(since)
            said = log.read().decode(errors="replace")
        return Closes(said.count(CLOSED), len(NOT_YET.findall(said)))

    def said_bytes(self) -> int:
        """How long its log is: what `closes` may begin with later."""
        return self.log_path.stat().st_size

    def takes_writes(self) -> bool:
        """Whether there is room on a DataNode, and it waits for no blocks that it knows of."""
        has_room = float(self._ask(STATE).get("CapacityRemaining", 0)) > 0
        return has_room and self._ask(self.info).get("Safemode") == ""

    def _prepare(self) -> None:
        super()._prepare()
        command = self._command("-format", "-force", "-nonInteractive")
        Child.start(
            "HDFS's formatting of names",
            command,
            self.directory / "format.log",
            env=server_environment(**self._told()),
            cwd=self.directory,
            account=unprivileged_account(),
        ).run_to_end(READY_S)

    def _site(self) -> dict[str, object]:
        rpc, http = self._ports or (0, 0)
        return {
            "fs.defaultFS": f"hdfs://127.0.0.1:{rpc}",
            "dfs.namenode.name.dir": "data/names",
            "dfs.namenode.rpc-address": f"127.0.0.1:{rpc}",
            "dfs.namenode.rpc-bind-host": "127.0.0.1",
            "dfs.namenode.http-address": f"127.0.0.1:{http}",
            "dfs.namenode.datanode.registration.ip-hostname-check": False,
            # One DataNode reports all blocks at once: of another half minute of waiting nothing would come.
            "dfs.namenode.safemode.extension": 0,
        }

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        del log_start
        wait_until(child, lambda: bool(self._ask(self.info)))


class DataNode(HdfsServer):
    """The one that keeps blocks; ready once the NameNode counts on it and takes writes."""

    name: ClassVar[str] = "hdfs-datanode"
    title: ClassVar[str] = "HDFS DataNode"
    needs: ClassVar[tuple[type[Service], ...]] = (NameNode,)
    main: ClassVar[str] = "datanode.DataNode"
    info: ClassVar[str] = "Hadoop:service=DataNode,name=DataNodeInfo"
    ports: ClassVar[int] = 3

    def __init__(self, workspace: Workspace, directory: Path, names: NameNode) -> None:
        super().__init__(workspace, directory)
        self.names = names

    @classmethod
    def from_config(cls, around: Surroundings) -> Self:
        return cls(around.workspace, around.directory, around.server(NameNode))

    def _site(self) -> dict[str, object]:
        blocks, http, ipc = self._ports
        return {
            "fs.defaultFS": self.names.address,
            "dfs.datanode.data.dir": "data/blocks",
            "dfs.datanode.hostname": "127.0.0.1",  # where the NameNode sends who reads over HTTP
            "dfs.datanode.address": f"127.0.0.1:{blocks}",
            "dfs.datanode.http.address": f"127.0.0.1:{http}",
            "dfs.datanode.ipc.address": f"127.0.0.1:{ipc}",
        }

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        # The NameNode counts one that was killed among the living for minutes.
        wait_for_line(child, REPORTED, READY_S, log_start)
        wait_until(child, self.names.takes_writes)


def wait_until(child: Child, is_ready: Callable[[], bool]) -> None:
    """Return once `is_ready` says so; an answer that does not come is none yet. ServiceError with the log's end."""
    deadline = time.monotonic() + READY_S
    while True:
        child.check()
        with suppress(OSError, ValueError, KeyError):
            if is_ready():
                return
        if time.monotonic() > deadline:
            raise child.failure(f"was not ready within {READY_S:.0f} s")
        time.sleep(LOOK_S)
