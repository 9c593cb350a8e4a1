"""Kafka Connect: started here in one process (standalone) with the Iceberg sink, or an external worker.

Connectors are created through the REST interface. On an external worker each has a unique name, is recorded before it
is created, and is stopped and deleted at the end; failed tasks there are restarted a limited number of times.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Self

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.base import Service, ServiceContext
from tidemark.services.http import fetch
from tidemark.services.kafka import Kafka
from tidemark.services.own import JavaServer
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, LOGGING, LOGGING_FILE, class_path
from tidemark.services.programs.process import Child, free_ports

HEAP_MB = 1024
REQUEST_S = 90.0  # for a response: a connector is started before its creation is answered
LOOK_S = 0.1
MOST_RESTARTS = 3  # of a connector's tasks on an external worker
CONFLICT, NOT_THERE = 409, 404
PROPERTIES_FILE = "worker.properties"
# Plugins are found by the jars' service files, which is faster than scanning all classes of all jars.
PROPERTIES = """\
bootstrap.servers={bootstrap}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
value.converter.schemas.enable=false
offset.storage.file.filename=data/offsets
offset.flush.interval.ms={flush_ms}
listeners=HTTP://127.0.0.1:{port}
plugin.discovery=service_load
consumer.auto.offset.reset=earliest
consumer.session.timeout.ms={session_ms}
"""


class KafkaConnect(JavaServer):
    """A Kafka 4.1 worker on a free loopback port; unprivileged if Tidemark is root, else the current user.

    It stores no connectors: create them again after each start. The broker stores their consumer offsets.
    With `address`, http://host:port, it is an external worker.
    """

    name: ClassVar[str] = "kafka-connect"
    title: ClassVar[str] = "Kafka Connect"
    needs: ClassVar[tuple[type[Service], ...]] = (Kafka,)
    locks: ClassVar[tuple[str, ...]] = ("connect",)
    address_key: ClassVar[str | None] = "connect_address"
    visits: ClassVar[bool] = True
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "BindException", "Failed to bind")
    ready_line: ClassVar[str] = "Kafka Connect started"
    ready_s: ClassVar[float] = 180.0
    version_pattern: ClassVar[str] = Kafka.version_pattern
    flush_ms: ClassVar[int] = 60_000  # interval of offset commits by sinks (offset.flush.interval.ms), default value
    session_ms: ClassVar[int] = 45_000  # after which the broker considers a consumer dead, default value

    def __init__(
        self, workspace: Workspace, directory: Path, kafka: Kafka | None = None, address: str | None = None
    ) -> None:
        super().__init__(workspace, directory, address)
        self.kafka = kafka
        self.restarts: list[str] = []  # reasons for restarts of the connector's tasks

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        address = cls.address_in(around.config)
        return cls(around.workspace, around.directory, None if address else around.server(Kafka), address)

    @property
    def told(self) -> Mapping[str, str]:
        """Settings that determine how soon it wakes from polling; empty for an external worker (unknown)."""
        if self.is_external:
            return {}
        return {"offset.flush.interval.ms": str(self.flush_ms), "session.timeout.ms": str(self.session_ms)}

    def version(self) -> str:
        if self.is_external:
            return str(self._ask("GET", "").get("version", "not reported by the worker"))
        return super().version()

    def create(self, connector: str, config: Mapping[str, str]) -> None:
        """Create the connector, and return once its task runs; raise ServiceError, with the reason, if it does not."""
        self.restarts = []
        if self.is_external:
            self._require(config["connector.class"])
        self._note(connector)
        self._ask("PUT", f"connectors/{connector}/config", dict(config))
        self._wait(connector)

    def check_tasks(self, connector: str) -> None:
        """Raise ServiceError if a task of the connector failed; an external worker first restarts it a few times."""
        self.check()
        _, failed = self._tasks(connector)
        if failed is None:
            return
        if not self.is_external or len(self.restarts) == MOST_RESTARTS:
            raise ServiceError(failed)
        self.restarts.append(failed)
        self._ask("POST", f"connectors/{connector}/restart?includeTasks=true&onlyFailed=true")
        self._wait(connector, patiently=True)

    def drop(self, name: str) -> None:
        """Delete the connector `name`; work it has not committed is lost. Do nothing if it does not exist."""
        if self.is_external and self._ask("GET", f"connectors/{name}"):
            # A connector that is deleted without a stop ends later, and recreates the topics that it reads.
            with suppress(ServiceError):  # Kafka Connect before 3.5 cannot stop connectors
                self._ask("PUT", f"connectors/{name}/stop")
                self._wait(name, until_it_runs=False)
        self._ask("DELETE", f"connectors/{name}")
        self._strike(name)

    def _require(self, plugin: str) -> None:
        """Raise ServiceError if the worker does not have the plugin."""
        found = [each["class"] for each in self._ask("GET", "connector-plugins")]
        if plugin not in found:
            raise ServiceError(
                f"{self.title} at {self.uri} has no plugin {plugin}, but {', '.join(sorted(found)) or 'none'}; put "
                "Iceberg's sink for Kafka Connect into a folder of its plugin.path"
            )

    def _wait(self, connector: str, until_it_runs: bool = True, patiently: bool = False) -> None:
        """Wait until a task runs, or none does; `patiently`: a failed task is expected to restart."""
        deadline = time.monotonic() + REQUEST_S
        while True:
            self.check()
            runs, failed = self._tasks(connector)
            if runs == until_it_runs and (not runs or failed is None):
                return
            late = time.monotonic() > deadline
            if failed is not None and until_it_runs and (late or not patiently):
                raise ServiceError(failed)
            if late:
                state = "no task" if until_it_runs else "a task still"
                where = self.uri if self.is_external else self.log_path
                raise ServiceError(f"the connector {connector} runs {state}; see {self.title}, {where}.")
            time.sleep(LOOK_S)

    def _tasks(self, connector: str) -> tuple[bool, str | None]:
        """Return whether the connector has a running task, and the error of a failed task or None."""
        tasks = self._ask("GET", f"connectors/{connector}/status").get("tasks", [])
        failed = [str(task.get("trace", "")) for task in tasks if task["state"] == "FAILED"]
        text = f"a task of the connector {connector} failed: {failed[0][:2000]}" if failed else None
        return any(task["state"] == "RUNNING" for task in tasks), text

    def _ask(self, method: str, what: str, content: Mapping[str, str] | None = None) -> Any:
        """Return the response, empty if the resource does not exist; retry while the worker is rebalancing (409)."""
        data = None if content is None else json.dumps(content).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.uri}/{what}", data, headers, method=method)
        deadline = time.monotonic() + REQUEST_S
        while True:
            try:
                return json.loads(fetch(request, REQUEST_S) or b"{}")
            except urllib.error.HTTPError as error:
                if method in ("GET", "DELETE") and error.code == NOT_THERE:
                    return {}  # it does not exist yet, or no longer
                text = error.read().decode(errors="replace")[:2000]
                if error.code != CONFLICT or time.monotonic() > deadline:
                    raise ServiceError(f"{self.title} refused {method} {what}: {text or error}") from error
            except OSError as error:
                raise ServiceError(f"{self.title} does not answer {method} {what}: {error}") from error
            time.sleep(LOOK_S)

    def _reach(self) -> None:
        self._ask("GET", "")

    def _launch(self) -> Child:
        assert self.kafka is not None
        (self._port,) = free_ports(1)
        (self.directory / LOGGING_FILE).write_text(LOGGING)
        text = PROPERTIES.format(
            bootstrap=self.kafka.bootstrap, port=self._port, flush_ms=self.flush_ms, session_ms=self.session_ms
        )
        (self.directory / PROPERTIES_FILE).write_text(text)
        options = [*COMMON_OPTIONS, f"-Xmx{HEAP_MB}m", "-Djava.io.tmpdir=tmp"]
        options += [f"-Dlog4j2.configurationFile={LOGGING_FILE}", "-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError"]
        main = "org.apache.kafka.connect.cli.ConnectStandalone"
        command: list[str | Path] = [JAVA, *options, "-cp", class_path(self._jars), main, PROPERTIES_FILE]
        return self._serve(command, HOME=str(self.directory))


class KafkaConnectPrompt(KafkaConnect):
    """Worker that wakes from polling for events every second and whose failure is noticed soon; always started here."""

    name: ClassVar[str] = "kafka-connect-prompt"
    title: ClassVar[str] = "Kafka Connect (prompt)"
    address_key: ClassVar[str | None] = None
    flush_ms: ClassVar[int] = 1_000
    session_ms: ClassVar[int] = 6_000  # the minimum that a broker accepts
