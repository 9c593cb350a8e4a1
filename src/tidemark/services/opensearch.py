"""OpenSearch's server, made of its jars: no package registry has its distribution.

Its main class runs with a folder that is laid out like the distribution's. This folder has the one module that a single
node needs, the transport over Netty. There is no plugin, and no agent that checks what Java code may do.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import ClassVar

from tidemark.paths import private_directory
from tidemark.services.http import fetch
from tidemark.services.own import JavaServer
from tidemark.services.programs import java
from tidemark.services.programs.process import Child, give, same_or_free

HEAP_MB = 1024  # the distribution's
MODULE = "transport-netty4"
MODULES = f"modules/{MODULE}"  # the folder with its jars
CLASS = "org.opensearch.transport.Netty4ModulePlugin"
LOGGING = """\
appender.log.type = Console
appender.log.name = log
appender.log.layout.type = PatternLayout
appender.log.layout.pattern = [%d] %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.log.ref = log
"""


class OpenSearch(JavaServer):
    """One node on loopback; unprivileged if Tidemark is root."""

    name: ClassVar[str] = "opensearch"
    title: ClassVar[str] = "OpenSearch"
    locks: ClassVar[tuple[str, ...]] = ("opensearch",)
    has_one_port: ClassVar[bool] = True
    ready_line: ClassVar[str] = "INFO Node: started"
    ready_s: ClassVar[float] = 180.0
    version_pattern: ClassVar[str] = r"Node: version\[([^\]]+)\]"

    def _reach(self) -> None:
        fetch(f"{self.uri}/_cluster/health?wait_for_status=green&timeout=30s", 60)

    @property
    def _home(self) -> Path:
        return self.directory / "home"

    def _prepare(self) -> None:
        super()._prepare()
        shutil.rmtree(self._home, ignore_errors=True)
        for name in (".", "config", "modules", MODULES, "plugins", "logs"):
            give(private_directory(self._home / name))
        (release,) = (jar.stem.removeprefix(f"{MODULE}-client-") for jar in self._jars if jar.name.startswith(MODULE))
        described = {"name": MODULE, "description": "HTTP", "classname": CLASS, "java.version": 21}
        described |= {"version": release, "opensearch.version": release}
        descriptor = "".join(f"{key}={value}\n" for key, value in described.items())
        (self._home / MODULES / "plugin-descriptor.properties").write_text(descriptor)
        for jar in filter(_is_of_module, self._jars):
            (self._home / MODULES / jar.name).symlink_to(jar)
        (self._home / "config" / "log4j2.properties").write_text(LOGGING)

    def _launch(self) -> Child:
        self._port = same_or_free(self._port)
        settings = {
            "path.data": self.data_directory,
            "network.host": "127.0.0.1",
            "http.port": self._port,
            "transport.port": 0,  # any: no other node connects
            "discovery.type": "single-node",
            "cluster.routing.allocation.disk.threshold_enabled": "false",  # a full disk is an error anyway
        }
        options = [*java.COMMON_OPTIONS, f"-Xms{HEAP_MB}m", f"-Xmx{HEAP_MB}m", "-XX:+ExitOnOutOfMemoryError"]
        options += [f"-Djava.io.tmpdir={self.directory / 'tmp'}", "-Dlog4j.shutdownHookEnabled=false"]
        options += [f"-Dopensearch.path.home={self._home}", f"-Dopensearch.path.conf={self._home / 'config'}"]
        jars = java.class_path(jar for jar in self._jars if not _is_of_module(jar))
        command: list[str | Path] = [java.JAVA, *options, "-cp", jars, "org.opensearch.bootstrap.OpenSearch"]
        return self._serve([*command, *(f"-E{key}={value}" for key, value in settings.items())])


def _is_of_module(jar: Path) -> bool:
    return "netty" in jar.name
