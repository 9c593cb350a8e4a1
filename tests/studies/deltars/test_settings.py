from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidemark.config import load
from tidemark.errors import ConfigError
from tidemark.pipeline.plan import Plan, make_plan
from tidemark.studies.deltars.samples import DeltarsSettings
from tidemark.studies.deltars.study import Tables

SHIPPED = Path(__file__).parents[3] / "config.yaml"


def plan(*overrides: str) -> Plan:
    return make_plan(load(SHIPPED, ["studies=[deltars]", *overrides]))


def test_each_system_writes_each_table_with_each_available_processor_number() -> None:
    found = plan("deltars.systems={delta-rs-hdfs: {}, delta-rs-local: {}}", "protocol=quick")
    cores = [each for each in (1, 2) if each <= len(os.sched_getaffinity(0))]
    assert {DeltarsSettings.of(spec).cell for spec in found.series} == {
        (data, count) for data in ("supplier_sf1", "supplier_sf10", "supplier_sf100", "lineitem_sf1") for count in cores
    }
    assert len(found.series) == 2 * 4 * len(cores)
    assert all(spec.cpus == DeltarsSettings.of(spec).cores and spec.dataset_directory == "" for spec in found.series)


def test_label_of_an_old_plan_tells_table_and_processors() -> None:
    assert DeltarsSettings.of(SimpleNamespace(mode="supplier_sf0.1-2", settings=())).cell == ("supplier_sf0.1", 2)


def test_protocol_may_set_processors_per_system() -> None:
    sizes = (
        "tables: {supplier_sf1: 3}, cores: [1, 2], instead: {before: {cores: [1]}, legacy: {cores: [2]}}, repeats: 1"
    )
    systems = "deltars.systems={delta-rs-local: {}, before: {like: delta-rs-local-before}}"
    found = plan(f"deltars.protocols={{mine: {{{sizes}}}}}", "protocol=mine", systems)
    cores = {name: {spec.cpus for spec in found.series if spec.name == name} for name in ("delta-rs-local", "before")}
    assert cores == {"delta-rs-local": {1, 2} & set(range(len(os.sched_getaffinity(0)) + 1)), "before": {1}}


def test_unavailable_processor_numbers_are_left_out_with_a_note() -> None:
    sizes = "deltars.protocols={mine: {tables: {supplier_sf1: 3}, cores: [1, 1000], repeats: 2}}"
    found = plan(sizes, "protocol=mine", "deltars.systems={delta-rs-local: {}}")
    assert {DeltarsSettings.of(spec).cores for spec in found.series} == {1}
    assert [spec.repeat for spec in found.series] == [1, 2]
    (note,) = found.notes
    assert note.startswith("study 'deltars': clients with 1000 processors were asked for, this machine has")


def test_likely_time_of_a_write_through_servers_includes_its_overhead() -> None:
    sizes = "deltars.protocols={mine: {tables: {supplier_sf1: 2}, slow: {supplier_sf1: 2}, cores: [1], repeats: 1}}"
    found = plan(sizes, "protocol=mine", "deltars.systems={delta-rs-local: {}, legacy: {}}")
    took = {spec.system: Tables.likely_seconds(spec) for spec in found.series}
    assert took["delta-rs-local"] < 1 and 90 < took["legacy"] < 132  # as it took


def test_likely_time_of_a_large_table_follows_its_rows() -> None:
    sizes = "{tables: {lineitem_sf1: 1, lineitem_sf10: 1}, slow: {lineitem_sf1: 1}, cores: [1], repeats: 1}"
    found = plan(
        f"deltars.protocols={{mine: {sizes}}}", "protocol=mine", "deltars.systems={delta-rs-local: {}, legacy: {}}"
    )
    took = {(spec.system, DeltarsSettings.of(spec).data): Tables.likely_seconds(spec) for spec in found.series}
    # 6 million rows through Kafka took some ten minutes.
    assert 500 < took["legacy", "lineitem_sf1"] < 800
    assert 10 < took["delta-rs-local", "lineitem_sf1"] < 15 and 100 < took["delta-rs-local", "lineitem_sf10"] < 150


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (
            "deltars.protocols.smoke={tables: {supplier_sf1: 1}, cores: [1], instead: {legcy: {cores: [1]}}, "
            "repeats: 1}",
            r"protocols\.smoke\.instead': found 'legcy'; allowed: .*did you mean 'legacy'",
        ),
        ("deltars.protocols.smoke={tables: {orders_sf1: 3}, cores: [1], repeats: 1}", r"found the table 'orders_sf1'"),
        ("deltars.protocols.smoke={tables: {supplier_sf0: 3}, cores: [1], repeats: 1}", r"allowed: supplier_sf and"),
        ("deltars.protocols.smoke={tables: {supplier_sf1: 0}, cores: [1], repeats: 1}", r"at least 1"),
        ("deltars.protocols.smoke={tables: {supplier_sf1: 1}, cores: [0], repeats: 1}", r"at least 1"),
        ("deltars.systems={delta-rs: {}}", r"systems\.delta-rs': found 'delta-rs', which is a table; allowed: .*hdfs"),
        ("deltars.systems={delta-rs-hdf: {}}", r"did you mean 'delta-rs-hdfs'"),
    ],
)
def test_invalid_setting_is_named(override: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        plan(override, "protocol=smoke")
