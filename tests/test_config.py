"""Tests of the configuration: valid input is parsed, and errors are named with their place."""

from __future__ import annotations

import copy
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.schema import schema
from tidemark.studies.study import registry

SHIPPED = Path(__file__).parents[1] / "config.yaml"


def test_changed_values_are_those_that_are_not_the_default() -> None:
    assert load(SHIPPED).changed() == {}
    given = ["protocol=smoke", "streams.systems={delta-rs: {}}", "disturbance.retries=3", "streams.batch_size=1000"]
    assert load(SHIPPED, given).changed() == {
        "protocol": "smoke",
        "disturbance": {"retries": 3},
        "streams": {"systems": {"delta-rs": {}}},
    }


def test_shipped_file_is_valid_and_kept_in_the_effective_configuration() -> None:
    config = load(SHIPPED)
    assert config.protocol == "quick" and config.studies == ("streams",)
    written = yaml.safe_load(SHIPPED.read_text())
    effective = json.loads(config.effective)

    def kept(part: dict[str, Any], of: dict[str, Any], path: str) -> None:
        for key, value in part.items():
            if isinstance(value, dict):
                kept(value, of[key], f"{path}.{key}")
            else:
                assert of[key] == value, f"{path}.{key}"

    kept(written, effective, "")


def test_every_key_has_a_description() -> None:
    def walk(rule: Any, path: str) -> None:
        for key, below in (rule.get("properties") or {}).items():
            assert below.get("description"), f"{path}.{key}"
            walk(below, f"{path}.{key}")
        if isinstance(rule.get("additionalProperties"), dict):
            walk(rule["additionalProperties"], f"{path}.*")

    walk(schema(), "")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("protocol=quik", r"--config: key 'protocol': found 'quik'; allowed: .*did you mean 'quick'"),
        ("protocl=smoke", r"key 'protocl': .*did you mean 'protocol'"),
        ("streams.batch_size=1", r"key 'streams\.batch_size': found 1; allowed: at least 2"),
        ("streams.batch_size=.nan", r"key 'streams\.batch_size': found nan; allowed: a finite number"),
        ("streams.protocols.quick.window_seconds=.nan", r"streams.protocols.quick.window_seconds.*finite"),
        ("streams.protocols.mine.window_seconds=1", r"needed as well: runs"),
        ("batch_size=10", r"key 'batch_size': found a key of a study's section; write it as streams\.batch_size"),
        ("studies=[stream]", r"did you mean 'streams'"),
        ("seed=-1", r"at least 0"),
        ("streams.modes=[singel]", r"did you mean 'single'"),
        ("streams.modes=[single, single]", r"names 'single' twice; allowed: once"),
        ("streams.systems.ducklake=3", r"allowed: object"),
        ("streams.systems={}", r"at least 1"),
        ("dataset.source=path", r"dataset.path.*found nothing"),
        ("dataset.path=[]", r"dataset\.path.*found 0 files.*allowed: one file or more"),
        ("dataset={source: synthetic, path: /no.parquet}", r"dataset\.path.*source 'synthetic'.*'auto' or 'path'"),
        ("dataset.rows=1000000000000000000000000", r"dataset\.rows.*at most"),
        ('streams.systems={"a\\n": {like: ducklake}}', r"allowed: one line of printable characters"),
        ("streams.protocols={../../x: {window_seconds: 1, runs: 2}}", r"a name without '/'"),
        ("streams={sweep: {s: {axis: batch_size, values: [-5]}}, sweeps: [s]}", r"sweep\.s\.values.*found -5; .*1 to"),
        ("streams={sweep: {s: {axis: encoding, values: [no]}}, sweeps: [s]}", r"sweep\.s\.values"),
        ("streams={sweep: {s: {axis: encoding, values: [nonsense]}}, sweeps: [s]}", r"found 'nonsense'; .*record"),
        ("services.kafka_adress=x", r"did you mean 'kafka_address'"),
    ],
)
def test_invalid_setting_is_named(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_plan(load(SHIPPED, [override]))


@pytest.mark.parametrize("asked", ["all", "[all]", "streams", "[streams]"])
def test_studies_are_named_one_by_one_or_all_at_once(asked: str) -> None:
    known = ("catalogs", "deltars", "freshness", "ingest", "lhbench", "streams") if "all" in asked else ("streams",)
    assert load(SHIPPED, [f"studies={asked}"]).studies == known


def test_whole_number_written_with_a_point_is_one() -> None:
    own = "streams.protocols={own: {window_seconds: 5, runs: 2.0, rounds: 2.0}}"
    found = make_plan(load(SHIPPED, ["streams.batch_size=10.0", own, "protocol=own"])).series
    assert "batch-10" in {spec.mode for spec in found} and {type(spec.repeat) for spec in found} == {int}


def test_plan_without_series_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"asks for no series: .*1024 processors were asked for"):
        own = "deltars.protocols={own: {tables: {supplier_sf1: 1}, cores: [1024], repeats: 1}}"
        make_plan(load(SHIPPED, ["studies=[deltars]", own, "protocol=own"]))


def test_a_wrong_value_in_the_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("protocol: smoke\nstreams:\n  batch_size: many\n")
    with pytest.raises(
        ConfigError, match=r"config\.yaml:3: key 'streams\.batch_size': found \"many\"; allowed: integer"
    ):
        load(path)


@pytest.mark.parametrize("text", ["[1, 2]", "# no key\n", "protocol: [", "a: !!python/none 1", "\x00", "x: &a [*a]"])
def test_invalid_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        load(path)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "none.yaml")


def test_an_unknown_system_and_an_unknown_option_are_named() -> None:
    with pytest.raises(ConfigError, match=r"systems\.duckdb.*did you mean 'ducklake'"):
        make_plan(load(SHIPPED, ["streams.systems={duckdb: {like: ducklak}}"]))
    with pytest.raises(ConfigError, match=r"systems\.ducklake\.colour"):
        make_plan(load(SHIPPED, ["streams.systems.ducklake={colour: red}"]))


def test_series_keeps_its_directory_unless_its_own_settings_change() -> None:
    def directories(*overrides: str) -> dict[str, str]:
        plan = make_plan(load(SHIPPED, ["streams.systems={'null': {}, ducklake: {}}", *overrides]))
        return {f"{spec.name} {spec.mode}": spec.directory for spec in plan.series}

    before = directories()
    assert directories("streams.systems.ducklake.title=Mine") == before
    assert directories("keep_tables=true") == before
    others = directories("streams.threads=2")
    assert before and all(others[key] != before[key] for key in before)
    assert directories("seed=2", f"dataset.path={SHIPPED}") != before


def test_the_order_is_drawn_from_the_seed() -> None:
    def order(seed: int) -> list[str]:
        systems = {f"n{number}": {"like": "null"} for number in range(8)}
        plan = make_plan(load(SHIPPED, [f"streams.systems={json.dumps(systems)}", f"seed={seed}", "protocol=thesis"]))
        assert [spec.position for spec in plan.series] == list(range(16))
        return [f"{spec.name}/{spec.mode}" for spec in plan.series]

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(1)) == sorted(order(2))


def test_each_series_is_measured_once_before_any_is_repeated() -> None:
    def plan_of(repeats: int) -> Plan:
        quick = f"streams.protocols={{quick: {{window_seconds: 10, runs: 3, repeats: {repeats}}}}}"
        return make_plan(load(SHIPPED, [quick, "streams.systems={ducklake: {}, delta-rs: {}}"]))

    plan = plan_of(3)
    assert [spec.repeat for spec in plan.series] == [1] * 4 + [2] * 4 + [3] * 4
    rounds = [[spec.repeated_id for spec in plan.series if spec.repeat == number] for number in (1, 2, 3)]
    assert sorted(rounds[0]) == sorted(rounds[1]) == sorted(rounds[2])
    assert len({tuple(each) for each in rounds}) > 1, "each round in an order of its own"
    assert len({spec.directory for spec in plan.series}) == len({spec.id for spec in plan.series}) == 12
    assert {spec.directory for spec in plan_of(1).series} == {
        spec.directory for spec in plan.series if spec.repeat == 1
    }


@pytest.mark.parametrize("study", sorted(registry()))
def test_one_key_repeats_every_series_of_a_study(study: str) -> None:
    def series(*overrides: str) -> list[tuple[str, int]]:
        plan = make_plan(load(SHIPPED, [f"studies=[{study}]", *overrides]))
        return [(spec.repeated_id, spec.repeat) for spec in plan.series]

    planned = series()
    thrice = series("repeats=3")
    assert sorted(thrice) == sorted({(name, number) for name, _ in planned for number in (1, 2, 3)})
    assert [number for _, number in thrice] == sorted(number for _, number in thrice)
    assert {name for name, _ in series("repeats=1")} == {name for name, _ in planned}


TWICE = "streams.protocols={quick: {window_seconds: 8, runs: 2, repeats: 2}}"


def test_sweep_has_its_own_number_of_repeats() -> None:
    sweep = "streams.sweep={reading: {axis: read_ahead, values: [1, 2], modes: [single], repeats: 3}}"
    plan = make_plan(
        load(
            SHIPPED,
            [
                "streams.sweeps=[main, reading]",
                sweep,
                "streams.systems={ducklake: {}}",
                "streams.modes=[single]",
                TWICE,
            ],
        )
    )
    repeats = {name: [spec.repeat for spec in plan.series if spec.sweep == name] for name in ("main", "reading")}
    assert sorted(repeats["main"]) == [1, 2]
    assert sorted(repeats["reading"]) == [1, 1, 2, 2, 3, 3]


def test_threads_are_capped_at_the_machines_number_with_a_note() -> None:
    most = os.cpu_count() or 1
    sweep = "streams.sweep={threads: {axis: threads, values: [1, 100000], modes: [single], repeats: 1}}"
    plan = make_plan(load(SHIPPED, ["streams.sweeps=[threads]", sweep, "streams.systems={ducklake: {}}"]))
    assert sorted(dict(spec.settings)["threads"] for spec in plan.series) == sorted({1, most})
    assert plan.notes == (
        f"sweep 'threads': 100000 threads were asked for, this machine has {most}; measured with {most}",
    )


leaf = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.just([]) | st.just({})
value = st.recursive(
    leaf, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3)
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, below in items:
        found += places(below, (*path, key))
    return found


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_mutated_file_gives_a_configuration_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """tests/scale has the same with ten times as many files."""
    load_a_mutation(tmp_path_factory, data)


@cache
def shipped() -> str:
    return load(SHIPPED).effective


def load_a_mutation(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Change up to three places of the shipped configuration at random, and plan what comes of it."""
    tree = json.loads(shipped())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([p for p in places(tree) if p]))
        node = tree
        for key in place[:-1]:
            node = node[key]
        action = data.draw(st.sampled_from(["replace", "delete", "add"]))
        if action == "replace":
            node[place[-1]] = data.draw(value)
        elif action == "delete":
            del node[place[-1]]
        elif isinstance(node, dict):
            node[data.draw(st.text(max_size=6))] = copy.deepcopy(data.draw(value))
    path = tmp_path_factory.getbasetemp() / "mutated.yaml"
    path.write_text(yaml.dump(tree, Dumper=yaml.CSafeDumper, allow_unicode=True))
    try:
        make_plan(load(path))
    except ConfigError as error:
        assert str(path) in str(error)


@pytest.mark.parametrize(
    ("key", "address", "said"),
    [
        ("postgres_address", "postgresql://me:tide-5ecret@db:5432/x", r"value for password.*PGPASSWORD.*PGPASSFILE"),
        ("postgres_address", "postgresql://db/x?password=tide-5ecret", r"value for password"),
        ("postgres_address", "host=db user=me password='tide-5ecret'", r"value for password"),
        ("postgres_address", "host=db sslkey=k sslpassword=tide-5ecret", r"value for sslpassword"),
        ("postgres_address", "host=db tide-5ecret", r"libpq cannot read"),
        ("kafka_address", "SASL_SSL://me:tide-5ecret@broker:9092", r"user information.*host:port"),
        ("iceberg_rest_address", "http://me:tide-5ecret@rest:8181", r"user information.*TIDEMARK_POLARIS_SECRET"),
        ("iceberg_rest_address", "http://rest:8181/?token=tide-5ecret", r"a query"),
        ("polaris_address", "http://me:tide-5ecret@polaris:8181/", r"user information.*polaris_secret_file"),
        ("polaris_address", "http://me:tide-5ecret@polaris/and/a/path", r"user information"),
        ("polaris_client_id", "me:tide-5ecret", r"behind a ':'"),
        ("connect_address", "http://me:tide-5ecret@connect:8083", r"user information.*host and port alone"),
        ("flink_address", "http://flink:8081/?token=tide-5ecret", r"a query"),
        ("spark_master", "spark://me:tide-5ecret@spark:7077", r"user information"),
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(key: str, address: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"protocol: smoke\nservices:\n  {key}: {json.dumps(address)}\n")
    with pytest.raises(ConfigError, match=rf"config\.yaml:3: key 'services\.{key}': found .*{said}") as caught:
        load(path)
    assert "5ecret" not in str(caught.value)
    with pytest.raises(ConfigError, match=rf"--config: key 'services\.{key}'"):
        load(SHIPPED, [f"services.{key}={json.dumps(address)}"])


def test_secret_in_the_address_of_a_studys_engine_is_refused_as_well() -> None:
    with pytest.raises(ConfigError, match=r"key 'lhbench\.engine\.master': found user information") as caught:
        load(SHIPPED, ["lhbench.engine.master=spark://me:tide-5ecret@spark:7077"])
    assert "5ecret" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "address"),
    [
        ("postgres_address", "postgresql://me@db:5432/x"),
        ("postgres_address", "host=db user=me passfile=/home/me/.pgpass sslmode=require"),
        ("kafka_address", "one:9092,two:9092"),
        ("iceberg_rest_address", "http://[::1]:8181/api/catalog"),
        ("flink_address", "http://[::1]:8081/"),
        ("spark_master", "spark://one:7077,two:7077"),
        ("spark_master", "local[3]"),
    ],
)
def test_address_without_a_secret_is_accepted_unchanged(key: str, address: str) -> None:
    config = load(SHIPPED, [f"services.{key}={json.dumps(address)}"])
    assert getattr(config.services, key) == address


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("kafka_address=broker", r"services\.kafka_address'"),
        ("kafka_address='broker:9092, other:9092'", r"services\.kafka_address'"),
        ("iceberg_rest_address=rest:8181", r"services\.iceberg_rest_address'"),
        ("connect_address=connect:8083", r"services\.connect_address'"),
        ("flink_address=http://flink", r"services\.flink_address'"),
        ("flink_address=https://flink:8081", r"services\.flink_address'"),
        ("spark_master=yarn", r"services\.spark_master'"),
        ("spark_master=local[0]", r"services\.spark_master'"),
        ("connect_address=http://connect:8083", r"kafka_address'.* needed: the address of the broker"),
    ],
)
def test_address_of_a_wrong_form_is_refused(given: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load(SHIPPED, [f"services.{given}"])


@pytest.mark.parametrize("study", list(registry()))
def test_unknown_system_is_named_with_the_allowed_ones(study: str) -> None:
    with pytest.raises(ConfigError, match=rf"key '{study}\.systems\.foo': found no system 'foo'; allowed: .+, "):
        make_plan(load(SHIPPED, [f"studies=[{study}]", f"{study}.systems={{foo: {{}}}}"]))
