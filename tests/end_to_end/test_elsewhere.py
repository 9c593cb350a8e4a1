"""Pipelines on engines that the user runs, from the configuration to the oracle; nothing of them is left there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tests.clusters import flink_session, spark_standalone

from tidemark.paths import Workspace
from tidemark.services.engines.connect import KafkaConnect
from tidemark.services.http import open_url
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.services.postgres import Postgres

from .conftest import MakeSandbox
from .sandbox import MEASURE_ONLY, Sandbox

pytestmark = pytest.mark.long(reason="pipelines against servers that the test starts itself, a minute or more each")

RATE, SECONDS, WARM = 100, 3, 50
SMOKE = {
    "policies": [],
    "intervals": ["1s"],
    "rate": RATE,
    "rates": [],
    "policy": "1s",
    "kills": 1,
    "kill_rate": RATE,
    "kill_seconds": 3,
    "window_seconds": SECONDS,
    "drain_seconds": 300,
}


@dataclass(frozen=True, slots=True)
class Theirs:
    """External servers that are already running, and the objects on them."""

    workspace: Workspace
    kafka: Kafka
    rest: IcebergRest

    def everything(self) -> set[str]:
        groups = AdminClient({"bootstrap.servers": self.kafka.bootstrap}).list_consumer_groups().result(15).valid
        return {*self.kafka.topics(), *(each.group_id for each in groups), *self.namespaces()}

    def namespaces(self) -> list[str]:
        return [".".join(each) for each in asked(f"{self.rest.uri}/v1/namespaces")["namespaces"]]

    @property
    def services(self) -> dict[str, str]:
        return {"kafka_address": self.kafka.bootstrap, "iceberg_rest_address": self.rest.uri}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Theirs]:
    assert cache
    workspace = Workspace(tmp_path_factory.mktemp("theirs"))
    work = workspace.work
    with (
        Postgres(workspace, work / "postgres") as postgres,
        IcebergRest(workspace, work / "rest", postgres, str(work / "warehouse")) as rest,
        Kafka(workspace, work / "kafka", heap_mb=256) as kafka,
    ):
        yield Theirs(workspace, kafka, rest)


def asked(url: str) -> Any:
    with open_url(url, 10) as answer:
        return json.load(answer)


def measured(make_sandbox: MakeSandbox, theirs: Theirs, system: str, **engine: str) -> tuple[Sandbox, dict[str, Any]]:
    """Measure `system`; return its run without kills, after checking it and that nothing is left on the servers."""
    before = theirs.everything()
    freshness = {"systems": {system: {}}, "protocols": {"smoke": SMOKE}, "warm": WARM}
    services = {**theirs.services, **engine}
    given = {"studies": ["freshness"], "protocol": "smoke", "freshness": freshness, "services": services}
    sandbox = make_sandbox(given)
    made = sandbox.run("all", *MEASURE_ONLY)
    assert made.returncode == 0, made.stdout
    found = {name: run for name, run in sandbox.runs().items() if "kills" not in name}
    (run,) = found.values()
    oracle = run["oracle"]
    assert oracle["verdict"] and oracle["found"] == oracle["expected"] == WARM + RATE * SECONDS
    assert run["system"]["catalog"] == "Iceberg REST, a server of the user's own"
    assert any("a server of the user's own, of which nothing is seen" in note for note in run["system"]["notes"])
    assert not sandbox.left_running() and theirs.everything() == before
    return sandbox, run


def reason_of_the_kills(sandbox: Sandbox, system: str) -> str:
    outcome = sandbox.outcomes()[f"{system}/1s-{RATE}-json-kills-1"]
    assert outcome["status"] == "not-run"
    return str(outcome["reason"])


def test_kafka_connect_worker_of_the_user(make_sandbox: MakeSandbox, theirs: Theirs) -> None:
    with KafkaConnect(theirs.workspace, theirs.workspace.work / "connect", theirs.kafka) as worker:
        sandbox, run = measured(make_sandbox, theirs, "kafka-connect-iceberg", connect_address=worker.uri)
        assert asked(f"{worker.uri}/connectors") == []
    assert run["system"]["settings"]["iceberg.control.commit.interval-ms"] == "1000"
    assert run["versions"]["Kafka Connect"] == "4.1.0" and "Kafka Connect" in run["found"]["unseen"]
    assert "services.connect_address" in reason_of_the_kills(sandbox, "kafka-connect-iceberg")


def test_flink_session_cluster_of_the_user(make_sandbox: MakeSandbox, theirs: Theirs) -> None:
    with flink_session(theirs.workspace, theirs.workspace.work / "flink") as address:
        sandbox, run = measured(make_sandbox, theirs, "flink-iceberg", flink_address=address)
        states = {each["state"] for each in asked(f"{address}/jobs/overview")["jobs"]}
        assert states == {"CANCELED"}
    assert run["versions"]["Flink"] == "2.1.1" and "Flink" in run["found"]["unseen"]
    assert run["system"]["settings"]["checkpoint_storage"] == "FileSystemCheckpointStorage"
    assert "services.flink_address" in reason_of_the_kills(sandbox, "flink-iceberg")


def test_spark_standalone_cluster_of_the_user(make_sandbox: MakeSandbox, theirs: Theirs) -> None:
    with spark_standalone(theirs.workspace, theirs.workspace.work / "spark") as master:
        sandbox, run = measured(make_sandbox, theirs, "spark-iceberg", spark_master=master)
        (killed,) = (each for name, each in sandbox.runs().items() if "kills" in name)
        assert list((theirs.workspace.work / "spark" / "work").glob("app-*/*/stderr"))
    assert killed["oracle"]["verdict"] and len(killed["found"]["kills"]) == 1, "its driver is ours"
    assert "Spark (Iceberg)" in run["found"]["unseen"]
