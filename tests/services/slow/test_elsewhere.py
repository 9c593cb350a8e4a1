"""Engines that the user runs: a Kafka Connect worker, a Flink session cluster, a Spark standalone cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from tests.clusters import flink_session, spark_standalone

from tidemark.errors import ServiceError
from tidemark.paths import Workspace
from tidemark.services.engines.connect import KafkaConnect
from tidemark.services.engines.flink import Flink
from tidemark.services.engines.spark import SparkIceberg
from tidemark.services.http import open_url
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.services.leftovers import drop_leftovers
from tidemark.services.outside import folder_of, read
from tidemark.services.postgres import Postgres
from tidemark.services.proxies import DelayProxy

pytestmark = [pytest.mark.timeout(300)]

NUMBERS = "CREATE TEMPORARY TABLE numbers (number INT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')"
NOWHERE = "CREATE TEMPORARY TABLE nowhere (number INT) WITH ('connector' = 'blackhole')"
COPY = [NUMBERS, NOWHERE, "INSERT INTO nowhere SELECT number FROM numbers"]
SINK = "org.apache.iceberg.connect.IcebergSinkConnector"


def asked(url: str) -> Any:
    with open_url(url, 10) as answer:
        return json.load(answer)


@contextmanager
def killed_after(program: str, *arguments: str | Path) -> Iterator[None]:
    """Run `program` in another process until it prints "made"; kill it after the `with` block."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stdout is not None and process.stdout.readline() == "made\n"
        yield
    finally:
        process.kill()
        process.wait(30)


IN_CONNECT = """
import json, sys, time
from pathlib import Path
from tidemark.paths import Workspace
from tidemark.services.engines.connect import KafkaConnect

workspace = Workspace(Path(sys.argv[1]))
KafkaConnect(workspace, workspace.work / "none", address=sys.argv[2]).create("tidemark-left", json.loads(sys.argv[3]))
print("made", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def connect(shared_workspace: Workspace) -> Iterator[tuple[KafkaConnect, dict[str, str]]]:
    """Yield a user's worker with one of the user's connectors, and the configuration of a working connector."""
    work = shared_workspace.work
    with (
        Postgres(shared_workspace, work / "postgres") as postgres,
        IcebergRest(shared_workspace, work / "rest", postgres, str(work / "warehouse")) as rest,
        Kafka(shared_workspace, work / "kafka", heap_mb=256) as kafka,
        KafkaConnect(shared_workspace, work / "connect", kafka) as worker,
    ):
        for topic in ("events", "control"):
            kafka.create_topic(topic)
        catalog = load_catalog("theirs", type="rest", uri=rest.uri)
        catalog.create_namespace("theirs")
        catalog.create_table("theirs.trips", schema=pa.schema([("id", pa.int64())]))
        config = {
            "connector.class": SINK,
            "tasks.max": "1",
            "topics": "events",
            "iceberg.tables": "theirs.trips",
            "iceberg.control.topic": "control",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": rest.uri,
            "iceberg.kafka.bootstrap.servers": kafka.bootstrap,
        }
        worker.create("theirs", config)
        yield worker, config


def test_connector_on_a_users_worker_is_removed_at_the_end_and_after_a_kill(
    connect: tuple[KafkaConnect, dict[str, str]], workspace: Workspace
) -> None:
    worker, config = connect
    ours = KafkaConnect(workspace, workspace.work / "none", address=f"{worker.uri}/")
    ours.start()
    assert ours.is_external and ours.version() == worker.version() == "4.1.0" and not ours.pids()
    ours.create("tidemark-one", config)
    ours.check_tasks("tidemark-one")
    assert set(asked(f"{worker.uri}/connectors")) == {"theirs", "tidemark-one"}
    ours.remove_data()
    assert asked(f"{worker.uri}/connectors") == ["theirs"] and not list(folder_of(workspace).glob("*.jsonl"))
    with killed_after(IN_CONNECT, workspace.root, worker.uri, json.dumps(config)):
        assert set(asked(f"{worker.uri}/connectors")) == {"theirs", "tidemark-left"}
    drop_leftovers(workspace)
    assert asked(f"{worker.uri}/connectors") == ["theirs"] and not list(folder_of(workspace).glob("*.jsonl"))


def test_failed_task_on_a_users_worker_is_restarted_then_reported(
    connect: tuple[KafkaConnect, dict[str, str]], workspace: Workspace
) -> None:
    worker, config = connect
    ours = KafkaConnect(workspace, workspace.work / "none", address=worker.uri)
    with pytest.raises(ServiceError, match=r"has no plugin org\.example\.Sink, but .*IcebergSinkConnector"):
        ours.create("tidemark-two", {**config, "connector.class": "org.example.Sink"})
    assert asked(f"{worker.uri}/connectors") == ["theirs"]
    host, port = config["iceberg.catalog.uri"].removeprefix("http://").split(":")
    target = cast(Any, SimpleNamespace(host_and_port=lambda: (host, int(port))))
    way = DelayProxy(workspace, workspace.work / "way", target, 0)
    with way:
        closed = "http://{}:{}".format(*way.host_and_port())
    with pytest.raises(ServiceError, match=r"(?s)a task of the connector tidemark-two failed: .*Connection refused"):
        ours.create("tidemark-two", {**config, "iceberg.catalog.uri": closed})
    with way:  # at its previous port
        assert closed.endswith(f":{way.host_and_port()[1]}")
        ours.check_tasks("tidemark-two")
        assert len(ours.restarts) == 1
        ours.check_tasks("tidemark-two")
        assert len(ours.restarts) == 1
    ours.remove_data()
    assert asked(f"{worker.uri}/connectors") == ["theirs"]


IN_FLINK = f"""
import sys, time
from pathlib import Path
from tidemark.paths import Workspace
from tidemark.services.engines.flink import Flink

workspace = Workspace(Path(sys.argv[1]))
with Flink(workspace, workspace.work / "flink", sys.argv[2]) as flink:
    flink.run("tidemark-left", {COPY!r}, {{}})
    print("made", flush=True)
    time.sleep(600)
"""


def test_job_on_a_users_session_cluster_is_cancelled_at_the_end_and_after_a_kill(
    workspace: Workspace, listening: Callable[..., set[str]]
) -> None:
    def running(address: str) -> list[str]:
        return [each["name"] for each in asked(f"{address}/jobs/overview")["jobs"] if each["state"] == "RUNNING"]

    with flink_session(workspace, workspace.work / "theirs") as address:
        with Flink(workspace, workspace.work / "flink", f"{address}/") as ours:
            assert ours.is_elsewhere and ours.version() == "2.1.1"
            ours.run("tidemark-one", COPY, {"execution.checkpointing.interval": "200 ms"})
            ours.check_job()
            assert running(address) == ["tidemark-one"] and listening(ours.pids()) == {"127.0.0.1"}
            assert ours.checkpoint_storage("tidemark-one") == "FileSystemCheckpointStorage"
            assert not list(ours.data_directory.glob("*/checkpoints")), "they are the cluster's"
            ours.cancel("tidemark-one")
            assert running(address) == [] and not list(folder_of(workspace).glob("*.jsonl"))
        with killed_after(IN_FLINK, workspace.root, address):
            assert running(address) == ["tidemark-left"]
        (ledger,) = folder_of(workspace).glob("*.jsonl")
        assert [made.name for made in read(ledger)] == ["tidemark-left"] and running(address) == ["tidemark-left"]
        drop_leftovers(workspace)
        assert running(address) == [] and not ledger.exists()
    with pytest.raises(ServiceError, match=r"did not answer GET /config: .*services\.flink_address"):
        Flink(workspace, workspace.work / "flink", address).start()


@pytest.mark.long(reason="a Spark cluster with a worker of its own takes a minute to start")
def test_statements_run_on_a_users_spark_cluster(workspace: Workspace) -> None:
    with (
        spark_standalone(workspace, workspace.work / "theirs") as master,
        SparkIceberg(workspace, workspace.work / "spark", master=master) as ours,
    ):
        assert ours.is_elsewhere and not ours.is_external
        assert ours.sql("SET spark.master").rows[0][1] == master
        place = ours.data_directory / "lake"
        catalog = "spark.sql.catalog.lake"
        for name, value in ((catalog, "org.apache.iceberg.spark.SparkCatalog"), (f"{catalog}.type", "hadoop")):
            ours.sql(f"SET {name}={value}")
        ours.sql(f"SET {catalog}.warehouse={place}")
        # Executors run this; they get Iceberg's classes only from the driver.
        ours.sql("CREATE TABLE lake.db.numbers USING iceberg AS SELECT id FROM range(0, 1000, 1, 4)")
        assert ours.sql("SELECT count(*), sum(id) FROM lake.db.numbers").rows == ((1000, 499500),)
        executors = list((workspace.work / "theirs" / "work").glob("app-*/*/stderr"))
        assert executors, "the work was done there"
