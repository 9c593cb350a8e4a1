"""Apache Kafka in KRaft mode: one node that is broker and controller."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tidemark import integrity
from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.base import ServiceContext
from tidemark.services.own import JavaServer
from tidemark.services.programs import java
from tidemark.services.programs.process import Child, free_ports, give
from tidemark.services.programs.provision import private_beside, provision

ANSWER_TIMEOUT_S = 15.0
# Together with the heap size, these determine how the JVM lays out classes and objects.
JVM_OPTIONS = ("-XX:+UseG1GC", "-XX:+ExitOnOutOfMemoryError")
# One node, one replica. Topics live as long as a run and are then deleted: nothing expires earlier, and their
# files are removed immediately, not after the default minute. The folder is relative to the working directory
# because a properties file cannot represent every path.
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs=data
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
delete.topic.enable=true
message.max.bytes=67108864
replica.fetch.max.bytes=67108864
socket.request.max.bytes=104857600
log.retention.ms=-1
log.retention.bytes=-1
log.segment.delete.delay.ms=1000
log.initial.task.delay.ms=1000
"""


def _code(error: ServiceError) -> int | None:
    """Return the Kafka error code behind `error`, or None if there is none."""
    cause = error.__cause__
    return int(cause.args[0].code()) if isinstance(cause, KafkaException) else None


def _java(jars: Sequence[Path], *options: str) -> list[str | Path]:
    common = [*java.COMMON_OPTIONS, "-Djava.io.tmpdir=tmp", f"-Dlog4j2.configurationFile={java.LOGGING_FILE}"]
    return [java.JAVA, *common, *options, "-cp", java.class_path(jars)]


def write_properties(directory: Path, port: int, controller_port: int) -> Path:
    """Write the properties and logging configuration for a broker in `directory`; return the properties file."""
    (directory / java.LOGGING_FILE).write_text(java.LOGGING)
    properties = directory / "server.properties"
    properties.write_text(PROPERTIES.format(port=port, controller_port=controller_port))
    return properties


def format_storage(workspace: Workspace, jars: Sequence[Path]) -> Path:
    """Return a data directory formatted by Kafka's storage tool, to be copied for each broker; made once.

    A broker does not start without a formatted directory, and the tool takes about a second for its JVM each time. It
    writes ids of the cluster and the node but no port, so the result is valid for starts on any ports.
    """
    made_of = PROPERTIES + "".join(jar.name for jar in jars)
    formatted = workspace.cache / "kafka-storage" / hashlib.sha256(made_of.encode()).hexdigest()[:16]
    with integrity.made_once(formatted) as wanted:
        if wanted:
            with private_beside(formatted) as incoming:
                for name in ("data", "tmp"):
                    (incoming / name).mkdir(mode=0o700)
                cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
                command = [*_java(jars, *java.SHORT_LIVED_OPTIONS), "kafka.tools.StorageTool", "format"]
                # One argument with its option: an id may begin with a hyphen and would be parsed as an option.
                command += [f"--cluster-id={cluster}", "-c", write_properties(incoming, *free_ports(2))]
                Child.start("Kafka's storage tool", command, incoming / "format.log").run_to_end(90)
                (incoming / "data").rename(formatted)
    return formatted


def archive_classes(workspace: Workspace, jars: Sequence[Path]) -> Path | None:
    """Return the archive of classes that a broker loads between start and shutdown; built once."""
    trainee = _Trainee(workspace, workspace.work / "kafka-training")
    return java.class_data(workspace, "kafka", JVM_OPTIONS, jars, trainee)


class Kafka(JavaServer):
    """Kafka 4.1 on two free loopback ports; runs unprivileged if Tidemark is root, else as the current user.

    `address`: the bootstrap servers of an external cluster; None: start a broker here with `heap_mb` MiB of heap.
    """

    name: ClassVar[str] = "kafka"
    title: ClassVar[str] = "Kafka"
    locks: ClassVar[tuple[str, ...]] = ("kafka",)
    address_key: ClassVar[str] = "kafka_address"
    port_taken: ClassVar[tuple[str, ...]] = ("Address already in use", "BindException")
    ready_line: ClassVar[str] = "Kafka Server started"
    ready_s: ClassVar[float] = 120.0
    version_pattern: ClassVar[str] = r"Kafka version: (\S+)"  # brokers do not report it to clients
    role: ClassVar[str] = "broker"

    def __init__(self, workspace: Workspace, directory: Path, address: str | None = None, heap_mb: int = 1024) -> None:
        super().__init__(workspace, directory, address)
        self._heap_mb = heap_mb
        self._formatted = Path()

    @classmethod
    def from_config(cls, around: ServiceContext) -> Self:
        config = around.config
        return cls(around.workspace, around.directory, config.kafka_address, config.kafka_heap_mb)

    @classmethod
    def provide(cls, workspace: Workspace) -> None:
        jars = provision("kafka", workspace)
        format_storage(workspace, jars)
        archive_classes(workspace, jars)

    @property
    def bootstrap(self) -> str:
        """Value of the client option `bootstrap.servers`."""
        return self.external_at or f"127.0.0.1:{self._port}"

    def create_topic(self, name: str) -> None:
        """Create the topic `name` with one partition and one replica; raise ServiceError if the broker refuses."""
        topic = NewTopic(name, num_partitions=1, replication_factor=1)
        self._note(name)
        try:
            self._administer(f"create topic {name}", lambda admin: admin.create_topics([topic])[name])
        except ServiceError as error:
            if _code(error) == KafkaError.TOPIC_ALREADY_EXISTS:
                self._strike(name)  # it belongs to another user
            raise

    def delete_topic(self, name: str) -> None:
        """Delete the topic `name`; the broker removes its files one or two seconds later."""
        self._administer(f"delete topic {name}", lambda admin: admin.delete_topics([name])[name])
        self._strike(name)

    def drop(self, name: str) -> None:
        try:
            self.delete_topic(name)
        except ServiceError as error:
            if _code(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            self._strike(name)

    def topic_folders(self, name: str) -> list[Path]:
        """Return the log folders of the topic `name`, also during its deletion; empty for an external broker."""
        if self.is_external:
            return []
        return [*self.data_directory.glob(f"{name}-0"), *self.data_directory.glob(f"{name}-0.*")]

    def topics(self) -> list[str]:
        """Return the names of the topics, without internal ones."""
        found = self._admin().list_topics(timeout=ANSWER_TIMEOUT_S).topics
        return sorted(name for name in found if not name.startswith("__"))

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _administer(self, what: str, ask: Callable[[AdminClient], Any]) -> None:
        admin = self._admin()
        try:
            ask(admin).result(timeout=ANSWER_TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            raise ServiceError(f"{self.title} could not {what}: {error}. Its log is {self.log_path}.") from error

    def _reach(self) -> None:
        self._admin().list_topics(timeout=ANSWER_TIMEOUT_S)

    def _provision(self) -> None:
        super()._provision()
        self._formatted = format_storage(self.workspace, self._jars)
        self._class_data = archive_classes(self.workspace, self._jars)

    def _prepare(self) -> None:
        super()._prepare()
        for path in self._formatted.iterdir():
            # Copy without the mode: the cache may be read-only.
            give(shutil.copyfile(path, self.data_directory / path.name))

    def _launch(self) -> Child:
        self._port, controller_port = free_ports(2)
        properties = write_properties(self.directory, self._port, controller_port)
        heap = f"{self._heap_mb}m"
        command = _java(self._jars, f"-Xms{heap}", f"-Xmx{heap}", *JVM_OPTIONS, *self._class_options())
        return self._serve([*command, "kafka.Kafka", properties])


class _Trainee(java.Trainee, Kafka):
    """A broker that records the classes it loads."""

    def _provision(self) -> None:
        self._jars = provision("kafka", self.workspace)
        self._formatted = format_storage(self.workspace, self._jars)

    def practise(self) -> None:
        """Create, write (like a run), read and delete a topic."""
        self.create_topic("practice")
        address = {"bootstrap.servers": self.bootstrap, "log_level": 3}
        producer = Producer({**address, "enable.idempotence": True, "compression.type": "lz4"})
        for _ in range(1000):
            producer.produce("practice", bytes(400))
        left = producer.flush(ANSWER_TIMEOUT_S)
        consumer = Consumer({**address, "group.id": "practice", "enable.auto.commit": False})
        consumer.assign([TopicPartition("practice", 0, 0)])
        messages = consumer.consume(1000, ANSWER_TIMEOUT_S)
        consumer.close()
        if left or len(messages) < 1000:
            raise ServiceError(f"{self.title} did not give back what it was given. Its log is {self.log_path}.")
        self.delete_topic("practice")
