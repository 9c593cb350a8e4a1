from __future__ import annotations

import os
import shutil
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.kafka import Kafka, archive_classes, format_storage
from tidemark.services.programs.process import free_ports
from tidemark.services.programs.provision import provision

SMALL = 256  # MiB of heap


@pytest.fixture(scope="module")
def kafka(shared_workspace: Workspace) -> Iterator[Kafka]:
    with Kafka(shared_workspace, shared_workspace.work / "kafka", heap_mb=SMALL) as server:
        yield server


def test_broker_is_the_pinned_version(kafka: Kafka) -> None:
    assert kafka.version() == "4.1.0"


def test_broker_listens_on_loopback_only(kafka: Kafka, listening: Callable[[Iterable[int]], set[str]]) -> None:
    assert listening(kafka.pids()) == {"127.0.0.1"}


def test_messages_arrive_in_order_and_deleted_topics_free_the_disk(kafka: Kafka) -> None:
    kafka.create_topic("trips")
    assert kafka.topics() == ["trips"]
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "message.max.bytes": 16_000_000})
    sent = [b"first", b"x" * 8_000_000, b"last"]
    for value in sent:
        producer.produce("trips", value)
    assert producer.flush(20) == 0
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "none", "enable.auto.commit": False})
    consumer.assign([TopicPartition("trips", 0, 0)])
    received: list[bytes] = []
    deadline = time.monotonic() + 20
    while len(received) < len(sent) and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            received.append(message.value() or b"")
    consumer.close()
    assert received == sent

    assert list(kafka.data_directory.glob("trips-*"))
    kafka.delete_topic("trips")
    deadline = time.monotonic() + 20
    while (left := list(kafka.data_directory.glob("trips-*"))) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    assert kafka.topics() == []


def test_topics_are_not_created_on_access(kafka: Kafka) -> None:
    with pytest.raises(ServiceError, match="no-such-topic"):
        kafka.delete_topic("no-such-topic")
    kafka.create_topic("twice")
    with pytest.raises(ServiceError, match="already exists"):
        kafka.create_topic("twice")
    kafka.delete_topic("twice")


def test_files_are_listed_and_lie_in_the_workspace(kafka: Kafka) -> None:
    files = kafka.files()
    assert any(p.name == "kafka_2.13-4.1.0.jar" for p in files.program)
    assert any(p.name == "modules" for p in files.program)
    assert any(p.name == "meta.properties" for p in files.data)
    (pid,) = kafka.pids()
    opened = {f.path for f in psutil.Process(pid).open_files() if f.mode != "r"}
    assert opened and all(path.startswith(str(kafka.directory)) for path in opened)


def test_external_cluster_is_reached_and_left_running(kafka: Kafka) -> None:
    outside = Kafka(kafka.workspace, kafka.directory / "none", kafka.bootstrap)
    with outside:
        assert outside.bootstrap == kafka.bootstrap
        assert (outside.pids(), outside.files().program) == ([], ())
    kafka.check()


def mapped(kafka: Kafka) -> set[str]:
    (pid,) = kafka.pids()
    return {region.path for region in psutil.Process(pid).memory_maps()}


def test_classes_are_loaded_from_the_archive_that_the_cold_proof_checks(kafka: Kafka) -> None:
    (archive,) = (path for path in kafka.files().program if path.suffix == ".jsa")
    assert str(archive) in mapped(kafka)


@pytest.fixture
def cache_of_copies(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a separate cache, copied from the shared one with modification times and complete class archives."""
    assert archive_classes(workspace, provision("kafka", workspace))
    format_storage(workspace, provision("kafka", workspace))
    copies = tmp_path / "copies"
    for name in ("jars/kafka", "kafka-storage", "class-data"):
        shutil.copytree(workspace.cache / name, copies / name)
    monkeypatch.setenv("TIDEMARK_CACHE", str(copies))
    return copies


def test_moved_cache_keeps_its_archive(workspace: Workspace, cache_of_copies: Path) -> None:
    before = sorted((cache_of_copies / "class-data").iterdir())
    with Kafka(workspace, workspace.work / "kafka", heap_mb=SMALL) as server:
        assert [path for path in mapped(server) if path.startswith(str(cache_of_copies / "class-data"))]
    assert sorted((cache_of_copies / "class-data").iterdir()) == before


def test_damaged_archive_is_rebuilt(workspace: Workspace, cache_of_copies: Path) -> None:
    for archive in (cache_of_copies / "class-data").glob("kafka-*/classes.jsa"):
        archive.chmod(0o600)
        os.truncate(archive, archive.stat().st_size // 2)
    with Kafka(workspace, workspace.work / "kafka", heap_mb=SMALL) as server:
        assert [path for path in mapped(server) if path.endswith(".jsa")]
        assert "truncated" not in server.log_path.read_text()
        server.create_topic("works")
        assert server.version() == "4.1.0"


def test_broker_replaces_a_taken_port_keeps_its_data_and_reports_a_kill_and_a_crash(
    workspace: Workspace,
    wait_until_gone: Callable[[Iterable[int]], list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Kafka(workspace, workspace.work / "kafka", heap_mb=SMALL)
    server.prepare()
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        taken = occupied.getsockname()[1]
        offered = iter([[taken, *free_ports(1)], free_ports(2)])
        with monkeypatch.context() as patch:
            patch.setattr("tidemark.services.kafka.free_ports", lambda _count: next(offered))
            server.start()
        assert server.bootstrap != f"127.0.0.1:{taken}", "a port that is taken is replaced"
    server.create_topic("kept")
    pids = server.pids()
    server.stop()
    server.stop()
    assert wait_until_gone(pids) == [] and server.pids() == []
    with server:
        assert server.topics() == ["kept"], "a second start uses the same data"
        send_and_wait(server, signal.SIGKILL)
        with pytest.raises(ServiceError) as caught:
            server.check()
        assert "SIGKILL" in str(caught.value) and str(server.log_path) in str(caught.value)
    with server:
        send_and_wait(server, signal.SIGSEGV)
        assert "A fatal error has been detected by the Java Runtime Environment" in server.log_path.read_text()
        assert not list(server.directory.rglob("hs_err*")), "the report of a crash is in the log"


def send_and_wait(server: Kafka, number: signal.Signals) -> None:
    """Send the signal, and wait until the process has ended and can be waited for."""
    os.kill(server.pids()[0], number)
    deadline = time.monotonic() + 10  # the main thread is a zombie before the other threads have ended
    while not server.has_ended() and time.monotonic() < deadline:
        time.sleep(0.05)


def test_cluster_id_may_begin_with_a_hyphen(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=b"\xf8" + bytes(15)))
    jars = provision("kafka", workspace)
    monkeypatch.setenv("TIDEMARK_CACHE", str(tmp_path / "cache"))
    formatted = format_storage(workspace, jars)
    assert "cluster.id=-AAAAAAAAAAAAAAAAAAAAA" in (formatted / "meta.properties").read_text()


def test_each_broker_starts_with_its_own_writable_copy_of_the_storage(workspace: Workspace) -> None:
    formatted = format_storage(workspace, provision("kafka", workspace))
    before = {path.name: path.read_bytes() for path in formatted.iterdir()}
    with Kafka(workspace, workspace.work / "kafka", heap_mb=SMALL) as server:
        server.create_topic("mine")
    with Kafka(workspace, workspace.work / "kafka-2", heap_mb=SMALL) as server:
        assert server.topics() == []
    assert {path.name: path.read_bytes() for path in formatted.iterdir()} == before
