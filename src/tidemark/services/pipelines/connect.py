"""Kafka Connect in one process (standalone), with the Iceberg sink on its class path; connectors come over its REST."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from tidemark.errors import ServiceError
from tidemark.paths import Workspace, private_directory
from tidemark.services.base import Service, Surroundings
from tidemark.services.http import open_url
from tidemark.services.kafka import Kafka
from tidemark.services.kafka_properties import LOGGING, LOGGING_FILE
from tidemark.services.programs.java import COMMON_OPTIONS, JAVA, class_path, runtime_files
from tidemark.services.programs.process import (
    Child,
    free_ports,
    give,
    wait_for_line,
)
from tidemark.services.programs.provision import provision

HEAP_MB = 1024
START_S = 180.0
REQUEST_S = 90.0  # that an answer may take: a connector is started before its creation is answered
LOOK_S = 0.1
PROPERTIES_FILE = "worker.properties"
# Plugins are found by the service files that the jars bring, which takes less than reading all classes of all jars.
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


class KafkaConnect(Service):
    """A worker of Kafka 4.1 on a free loopback port; as nobody when we are root, else as whoever we are.

    It keeps no connectors: after each start they are to be created anew. What they have read is kept by the broker.
    """

    name: ClassVar[str] = "kafka-connect"
    title: ClassVar[str] = "Kafka Connect"
    needs: ClassVar[tuple[type[Service], ...]] = (Kafka,)
    locks: ClassVar[tuple[str, ...]] = ("connect",)
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "BindException", "Failed to bind")
    flush_ms: ClassVar[int] = 60_000  # between commits of what sinks have read (offset.flush.interval.ms): as shipped
    session_ms: ClassVar[int] = 45_000  # after which the broker takes a consumer for dead: as shipped

    def __init__(self, workspace: Workspace, directory: Path, kafka: Kafka) -> None:
        super().__init__(workspace, directory)
        self.kafka = kafka
        self._jars: list[Path] = []
        self._port = 0

    @classmethod
    def from_config(cls, around: Surroundings) -> Self:
        return cls(around.workspace, around.directory, around.server(Kafka))

    @property
    def is_external(self) -> bool:
        return False

    def version(self) -> str:
        named = re.findall(r"Kafka version: (\S+)", self.log_path.read_text(errors="replace"))
        if not named:
            raise ServiceError(f"{self.title} named no version in {self.log_path}.")
        return str(named[-1])

    def create(self, connector: str, config: Mapping[str, str]) -> None:
        """Create the connector, and return once its task runs; ServiceError, with why, where it does not."""
        self._ask("PUT", f"connectors/{connector}/config", dict(config))
        deadline = time.monotonic() + REQUEST_S
        while time.monotonic() < deadline:
            self.check()
            if self._tasks(connector):
                return
            time.sleep(LOOK_S)
        raise ServiceError(f"the connector {connector} runs no task; the log of {self.title} is {self.log_path}.")

    def check_tasks(self, connector: str) -> None:
        """ServiceError where a task of the connector has failed."""
        self.check()
        self._tasks(connector)

    def delete(self, connector: str) -> None:
        """End the connector; what it has not committed stays undone."""
        self._ask("DELETE", f"connectors/{connector}")

    def _tasks(self, connector: str) -> bool:
        """Whether it has a task that runs."""
        tasks = self._ask("GET", f"connectors/{connector}/status").get("tasks", [])
        for task in tasks:
            if task["state"] == "FAILED":
                raise ServiceError(f"a task of the connector {connector} failed: {task.get('trace', '')[:2000]}")
        return any(task["state"] == "RUNNING" for task in tasks)

    def _ask(self, method: str, what: str, content: Mapping[str, str] | None = None) -> dict[str, Any]:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/{what}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with open_url(request, REQUEST_S) as answer:
                return json.loads(answer.read() or b"{}")  # type: ignore[no-any-return]
        except urllib.error.HTTPError as error:
            if method == "GET" and error.code == 404:
                return {}  # it is not there yet
            said = error.read().decode(errors="replace")[:2000]
            raise ServiceError(f"{self.title} refused {method} {what}: {said or error}") from error
        except OSError as error:
            raise ServiceError(f"{self.title} does not answer {method} {what}: {error}") from error

    def _reach(self) -> None:
        self._ask("GET", "")

    def _program_files(self) -> tuple[Path, ...]:
        return (*self._jars, *runtime_files())

    def _provision(self) -> None:
        self._jars = provision("connect", self.workspace)

    def _prepare(self) -> None:
        give(private_directory(self.data_directory))
        give(private_directory(self.directory / "tmp"))

    def _launch(self) -> Child:
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

    def _wait_until_ready(self, child: Child, log_start: int) -> None:
        wait_for_line(child, "Kafka Connect started", START_S, log_start)
        self._reach()


class KafkaConnectPrompt(KafkaConnect):
    """The same, which looks up from waiting for events once a second, and whose death is noticed soon."""

    name: ClassVar[str] = "kafka-connect-prompt"
    title: ClassVar[str] = "Kafka Connect (prompt)"
    flush_ms: ClassVar[int] = 1_000
    session_ms: ClassVar[int] = 6_000  # the least that a broker allows
