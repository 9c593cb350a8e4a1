"""A series depends on the locks of the programs that it runs, and a plan fetches only these programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tidemark.config import load
from tidemark.paths import REPOSITORY
from tidemark.pipeline.plan import Plan, make_plan, programs, provided
from tidemark.services import registry
from tidemark.services.servers import in_order
from tidemark.software import stacks

SYSTEMS = 'streams.systems={"null": {}, ducklake: {}, iceberg-pyiceberg: {}}'


@pytest.fixture
def envs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the locks that a test may change."""
    copy = shutil.copytree(REPOSITORY / "envs", tmp_path / "envs")
    monkeypatch.setattr(stacks, "ENVS", copy)
    return copy


def made(*overrides: str) -> Plan:
    return make_plan(load(REPOSITORY / "config.yaml", ["streams.modes=[batch]", "protocol=smoke", *overrides]))


def fingerprints() -> dict[str, str]:
    return {spec.name: spec.fingerprint for spec in made(SYSTEMS).series}


def changed(lock: Path) -> None:
    lock.write_text(lock.read_text() + "\n# another one\n")


def test_unused_lock_makes_no_series_due_and_is_not_fetched(envs: Path) -> None:
    before = fingerprints()
    planted = shutil.copytree(envs / "jars" / "postgres", envs / "jars" / "nobody")
    assert fingerprints() == before
    changed(planted / "jgo.lock.toml")
    assert fingerprints() == before
    assert "nobody" not in programs(made(SYSTEMS))


@pytest.mark.parametrize(
    ("lock", "old"),
    [
        ("jars/kafka/jgo.lock.toml", {"null", "ducklake", "iceberg-pyiceberg"}),
        ("jars/postgres/jgo.lock.toml", {"ducklake", "iceberg-pyiceberg"}),
        ("jars/iceberg-rest/jgo.lock.toml", {"iceberg-pyiceberg"}),
        ("thesis.lock", {"null", "ducklake", "iceberg-pyiceberg"}),
        ("current.lock", set()),
    ],
)
def test_changed_lock_makes_the_series_due_that_run_from_it(envs: Path, lock: str, old: set[str]) -> None:
    before = fingerprints()
    changed(envs / lock)
    after = fingerprints()
    assert {name for name in before if before[name] != after[name]} == old


@pytest.mark.parametrize(
    ("overrides", "wanted"),
    [
        (['streams.systems={"null": {}}'], ["kafka"]),
        (["streams.systems={delta-rs: {}}"], ["kafka"]),
        (["streams.systems={ducklake: {}}"], ["kafka", "postgres"]),
        (["streams.systems={iceberg-duckdb: {}}"], ["iceberg-rest", "kafka", "postgres"]),
        (
            ["streams.systems={iceberg-duckdb: {}}", "streams.catalog=polaris", "services.polaris_path=/polaris"],
            ["kafka", "postgres"],
        ),
        (["streams.systems={ducklake: {}}", "services.kafka_address=127.0.0.1:9092"], ["postgres"]),
        (['streams.systems={"null": {}}', "services.kafka_address=127.0.0.1:9092"], []),
    ],
)
def test_plan_fetches_the_programs_of_its_series(overrides: list[str], wanted: list[str]) -> None:
    plan = made(*overrides)
    assert list(programs(plan)) == wanted
    assert provided(plan) == ([f".tidemark/programs/{'+'.join(wanted)}.json"] if wanted else [])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("kafka_address=kafka:9092", {"connect", "flink", "postgres", "spark", "spark-delta"}),
        ("connect_address=http://connect:8083", {"flink", "postgres", "spark", "spark-delta"}),
        ("flink_address=http://flink:8081", {"connect", "flink", "postgres", "spark", "spark-delta"}),
        ("spark_master=spark://spark:7077", {"connect", "flink", "postgres", "spark", "spark-delta"}),
    ],
)
def test_external_engine_is_not_fetched_except_for_a_client_it_needs(given: str, wanted: set[str]) -> None:
    systems = "freshness.systems={kafka-connect-iceberg: {}, flink-iceberg: {}, spark-delta: {}}"
    theirs = ["services.kafka_address=kafka:9092", "services.iceberg_rest_address=http://rest:8181"]
    plan = made("studies=[freshness]", systems, *theirs, f"services.{given}")
    assert set(programs(plan)) == wanted
    prompt = "freshness.systems={kafka-connect-iceberg: {prompt: true}}"
    assert set(programs(made("studies=[freshness]", prompt, *theirs, f"services.{given}"))) == {"connect", "postgres"}


def test_same_series_on_another_engine_is_another_series() -> None:
    asked = ["studies=[freshness]", "freshness.systems={spark-delta: {}}", "services.kafka_address=kafka:9092"]
    masters = ("null", "local[1]", "spark://one:7077", "spark://two:7077")
    found = [{spec.fingerprint for spec in made(*asked, f"services.spark_master={each}").series} for each in masters]
    assert len(set.union(*found)) == sum(map(len, found))


def test_study_may_set_a_separate_spark_master() -> None:
    asked = ["studies=[lhbench]", "lhbench.systems={delta-on-spark: {}}", "services.spark_master=local[1]"]
    assert {spec.services.spark_master for spec in made(*asked).series} == {"local[1]"}
    theirs = made(*asked, "lhbench.engine={master: 'spark://one:7077'}").series
    assert {spec.services.spark_master for spec in theirs} == {"spark://one:7077"}


def test_every_server_is_registered_and_names_existing_locks() -> None:
    found = registry()
    assert {"kafka", "postgres", "iceberg-rest", "iceberg-rest-nio", "polaris"} <= found.keys()
    for kind in in_order(found.values()):
        assert kind.address_key is None or kind.address_key in json.loads(made().config.effective)["services"]
        for name in kind.locks:
            assert (REPOSITORY / "envs" / "jars" / name / "jgo.lock.toml").is_file()
